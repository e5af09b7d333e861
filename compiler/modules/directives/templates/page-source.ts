/** Marks for request data in a response body, so that the data is not executed as part of a template. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { DataInsertion, TemplateSource } from '../../templates/lexer.ts';

/** Variable that holds the {@link TemplatePage} of the current response. */
export const TEMPLATE_PAGE_VARIABLE = 'svc.templates.page';

/** A response to be executed as a template. */
export interface TemplatePage {
	/** The error for which error routes made the response; undefined for other responses. Another error begins a new page. */
	readonly error: object | undefined;
	/** True once the page has been executed. Its body is then no longer a template. */
	isExecuted: boolean;
	/** The template without the marked data; undefined if no data was marked. `body` is the body from which it was made. */
	source: TemplateSource | undefined;
	body: unknown;
}

/** Returns the page of an exchange's response; undefined if the response will not be executed as a template. */
export function templatePageOf(x: Exchange): TemplatePage | undefined {
	const page = x.variable(TEMPLATE_PAGE_VARIABLE) as TemplatePage | undefined;
	return page && page.error === x.error && !page.isExecuted ? page : undefined;
}

/** Unicode noncharacters that surround marked data. `splitMarked` removes them. */
const BEGIN_MARK = '\ufdd0';
const END_MARK = '\ufdd1';
const MARKS = /[\ufdd0\ufdd1]/g;

/** Marks the value of a placeholder as data. */
export function markData(value: string): string {
	return `${BEGIN_MARK}${value.replace(MARKS, '\ufffd')}${END_MARK}`;
}

/** Removes the marks. Returns the template to execute, without the data, and the text to send if it is not executed. */
export function splitMarked(markedText: string): { source: TemplateSource; text: string } {
	let templateText = '';
	let plainText = '';
	const insertions: DataInsertion[] = [];
	let position = 0;
	for (
		let markStart = markedText.indexOf(BEGIN_MARK);
		markStart !== -1;
		markStart = markedText.indexOf(BEGIN_MARK, position)
	) {
		const markEnd = markedText.indexOf(END_MARK, markStart);
		if (markEnd === -1) break;
		const literal = markedText.slice(position, markStart);
		const value = markedText.slice(markStart + 1, markEnd);
		templateText += literal;
		plainText += literal + value;
		insertions.push({ offset: templateText.length, value });
		position = markEnd + 1;
	}
	const remainder = markedText.slice(position);
	return { source: { text: templateText + remainder, data: insertions }, text: plainText + remainder };
}
