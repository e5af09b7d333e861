/** The lint rule `format/unformatted`, which reports configuration text that is not formatted. */
import type { Dialect } from '../../dialects/dialect.ts';
import { firstDifferingLine } from '../../syntax/format-difference.ts';
import { Newline, tokenize } from '../../syntax/tokens.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const unformatted: LintRule = {
	name: 'format/unformatted',
	severity: 'warning',
	summary: 'The text is not formatted.',
	documentation: '`svc fmt --overwrite` formats it. Imported files are not checked.',
	check: cx => {
		const [source] = cx.subject.sources;
		if (!cx.dialect || !source) return;
		const formatted = cx.subject.formatMainFile(source.text);
		const line = firstDifferingLine(source.text, formatted);
		if (line === undefined) return;
		const start = source.lineStarts[Math.min(line, source.lineStarts.length) - 1]!;
		const newline = source.text.indexOf('\n', start);
		const end = Math.max(start, newline === -1 ? source.text.length : newline);
		const safety = hasSameWords(source.text, formatted, cx.dialect) ? 'safe' : 'unsafe';
		cx.report({ source, start, end }, 'From here on, the text is not formatted.', {
			hint: '`svc fmt --overwrite` fixes that.',
			fix: { safety, edits: [{ span: { source, start: 0, end: source.text.length }, text: formatted }] },
		});
	},
};

/**
 * Reports whether two texts have the same words and braces. If the formatted text has others, the formatter has taken something for a
 * mistake, such as a brace at the end of a word, or has added a newline to a quote that is never closed.
 */
function hasSameWords(before: string, after: string, dialect: Dialect): boolean {
	const otherWords = wordsOf(after, dialect);
	const words = wordsOf(before, dialect);
	return words.length === otherWords.length && words.every((word, index) => word === otherWords[index]);
}

function wordsOf(text: string, dialect: Dialect): string[] {
	return tokenize(text, dialect)
		.filter(({ tokenType, payload }) => tokenType !== Newline && (payload === undefined || payload.text !== undefined))
		.map(({ image, payload }) => `${payload?.quote ?? 'none'} ${payload?.text ?? image.replaceAll('\r', '')}`);
}
