/** The most lines that a text may have: each becomes objects of many times its size before anything can be judged. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { Source } from './source.ts';

/** Some ten times the lines of a configuration of ten thousand sites. */
const MOST_LINES = 1_000_000;

/** Reports a text with more lines; true when it has not. */
export function checkLines({ name, text }: { readonly name: string; readonly text: string }, report: Report): boolean {
	let lines = 1;
	for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
		if (++lines <= MOST_LINES) continue;
		const span = { source: new Source({ name, text }), start: at + 1, end: at + 1 };
		const message = `The text has more than ${MOST_LINES.toLocaleString('en')} lines.`;
		report({ code: 'syntax/too-many-lines', severity: 'error', message, span });
		return false;
	}
	return true;
}
