/** Functions for messages: formatting of lists of names, and the span of several words. */
import type { SourceSpan } from '../../source/source.ts';
import type { Word } from '../../syntax/ast.ts';

/** Returns the span from the first word to the last word in the same file. */
export function spanOfWords(words: readonly Word[]): SourceSpan {
	const first = words[0]!.span;
	const last = words.findLast(word => word.span.source === first.source)!.span;
	return { source: first.source, start: first.start, end: Math.max(last.end, first.end) };
}

/** Formats names as `a, b and c`. */
export function formatNameList(names: readonly string[], conjunction: 'and' | 'or' = 'and'): string {
	const quoted = names.map(name => `\`${name}\``);
	if (quoted.length < 2) return quoted.join('');
	return `${quoted.slice(0, -1).join(', ')} ${conjunction} ${quoted[quoted.length - 1]}`;
}
