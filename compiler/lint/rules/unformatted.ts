/** The lint rule `format/unformatted`, which reports configuration text that is not formatted. */
import { firstDifferingLine } from '../../syntax/format-difference.ts';
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
		cx.report({ source, start, end }, 'From here on, the text is not formatted.', {
			hint: '`svc fmt --overwrite` fixes that.',
			fix: { safety: 'safe', edits: [{ span: { source, start: 0, end: source.text.length }, text: formatted }] },
		});
	},
};
