/** Finds the placeholders that directives such as `map` define, so that they are not reported as unknown. */
import type { Directive } from '../../modules/contract/directive.ts';
import type { Line } from '../../syntax/ast.ts';

/** Returns the names, without braces. They are searched on first use, because most files have no unknown placeholder. */
export function mappedNamesOf(
	directives: ReadonlyMap<string, Directive>,
	blocks: () => Iterable<{ readonly lines: readonly Line[] }>,
): () => ReadonlySet<string> {
	let names: Set<string> | undefined;
	return () => {
		if (!names) {
			names = new Set();
			for (const { lines } of blocks()) gather(lines, directives, names);
		}
		return names;
	};
}

function gather(lines: readonly Line[], directives: ReadonlyMap<string, Directive>, names: Set<string>): void {
	for (const line of lines) {
		const { words, block, alternative } = line;
		const module = directives.get(words[0]!.text);
		if (module?.kind === 'handler') {
			for (const { text } of module.definesPlaceholders?.(line) ?? []) {
				if (isPlaceholder(text)) names.add(text.slice(1, -1));
			}
		}
		if (block) gather(block.lines, directives, names);
		if (alternative) gather([alternative], directives, names);
	}
}

/** Reports whether a string consists of a single placeholder. */
export function isPlaceholder(text: string): boolean {
	return /^\{[^{}]+\}$/.test(text);
}
