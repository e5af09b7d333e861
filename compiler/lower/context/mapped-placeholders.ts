/** Finds the placeholders that directives such as `map` define, so that they are not reported as unknown. */
import type { Directive } from '../../modules/contract/directive.ts';
import type { Line } from '../../syntax/ast.ts';

/**
 * Returns a function that lists the names, without braces, of the placeholders that directives define. The names are collected at
 * the first call, because most files have no unknown placeholder.
 */
export function mappedPlaceholderNames(
	directives: ReadonlyMap<string, Directive>,
	blocks: () => Iterable<{ readonly lines: readonly Line[] }>,
): () => ReadonlySet<string> {
	let mappedNames: Set<string> | undefined;
	return () => {
		if (!mappedNames) {
			mappedNames = new Set();
			for (const { lines } of blocks()) collectMappedNames(lines, directives, mappedNames);
		}
		return mappedNames;
	};
}

function collectMappedNames(
	lines: readonly Line[],
	directives: ReadonlyMap<string, Directive>,
	mappedNames: Set<string>,
): void {
	for (const line of lines) {
		const { words, block, alternative } = line;
		const module = directives.get(words[0]!.text);
		if (module?.kind === 'handler') {
			for (const { text } of module.definesPlaceholders?.(line) ?? []) {
				if (isPlaceholder(text)) mappedNames.add(text.slice(1, -1));
			}
		}
		if (block) collectMappedNames(block.lines, directives, mappedNames);
		if (alternative) collectMappedNames([alternative], directives, mappedNames);
	}
}

/** Reports whether a text consists of a single placeholder. */
export function isPlaceholder(text: string): boolean {
	return /^\{[^{}]+\}$/.test(text);
}
