/** Limits the number of lines in a text before it is parsed, because parsing turns each line into many times larger objects. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { Source } from '../source/source.ts';

/** Maximum number of lines, about ten times the lines of a configuration with ten thousand sites. */
const MAX_LINES = 1_000_000;

/** Reports a text with too many lines. Returns true if the text is within the limit. */
export function checkLineCount(
	{ name, text }: { readonly name: string; readonly text: string },
	report: Report,
): boolean {
	let lineCount = 1;
	for (let newline = text.indexOf('\n'); newline !== -1; newline = text.indexOf('\n', newline + 1)) {
		if (++lineCount <= MAX_LINES) continue;
		const span = { source: new Source({ name, text }), start: newline + 1, end: newline + 1 };
		const message = `The text has more than ${MAX_LINES.toLocaleString('en')} lines.`;
		report({ code: 'syntax/too-many-lines', severity: 'error', message, span });
		return false;
	}
	return true;
}
