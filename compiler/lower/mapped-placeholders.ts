/** The placeholders that the `map` directives of some blocks make, so that they are not called unknown. */
import type { Line } from '../syntax/ast.ts';

/** Names without braces. Looked for when first asked: most files have no placeholder that is not known anyway. */
export function mappedNamesOf(blocks: () => Iterable<{ readonly lines: readonly Line[] }>): () => ReadonlySet<string> {
	let names: Set<string> | undefined;
	return () => {
		if (!names) {
			names = new Set();
			for (const { lines } of blocks()) gather(lines, names);
		}
		return names;
	};
}

function gather(lines: readonly Line[], names: Set<string>): void {
	for (const { words, block, alternative } of lines) {
		if (words[0]!.text === 'map') {
			// The first argument, or the second behind a matcher, is the source.
			const from = /^[/*@]/.test(words[1]?.text ?? '') ? 3 : 2;
			for (const { text } of words.slice(from)) if (isPlaceholder(text)) names.add(text.slice(1, -1));
		}
		if (block) gather(block.lines, names);
		if (alternative) gather([alternative], names);
	}
}

/** True for a text that is one placeholder and nothing else. */
export function isPlaceholder(text: string): boolean {
	return /^\{[^{}]+\}$/.test(text);
}
