/** Lets a handler mark the request data in its response body, so that this data is not executed as a template. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { DataInsertion, TemplateSource } from '../../templates/lexer.ts';

/** Variable that holds a page to be executed. */
export const PAGE_VARIABLE = 'svc.templates.page';

/** A response to be executed as a template. */
export interface TemplatePage {
	/** The error that error routes are answering, if any. A new error begins a new page. */
	readonly error: object | undefined;
	/** True once the page has been executed. Its body is then no longer a template. */
	isExecuted: boolean;
	/** The template without the marked data, and the body from which it was made. */
	source: TemplateSource | undefined;
	body: unknown;
}

/** Returns the page of an exchange's response; undefined if the response will not be executed as a template. */
export function templatePageOf(x: Exchange): TemplatePage | undefined {
	const page = x.variable(PAGE_VARIABLE) as TemplatePage | undefined;
	return page && page.error === x.error && !page.isExecuted ? page : undefined;
}

/** Noncharacters before and after marked data. They occur in text only until `splitMarked` removes them. */
const BEGIN_MARK = '\ufdd0';
const END_MARK = '\ufdd1';
const MARKS = /[\ufdd0\ufdd1]/g;

/** Marks the value of a placeholder as data. */
export function markData(value: string): string {
	return `${BEGIN_MARK}${value.replace(MARKS, '\ufffd')}${END_MARK}`;
}

/** Removes the marks. Returns the template to execute, without the data, and the text to send if it is not executed. */
export function splitMarked(marked: string): { source: TemplateSource; text: string } {
	let templateText = '';
	let text = '';
	const data: DataInsertion[] = [];
	let position = 0;
	for (let begin = marked.indexOf(BEGIN_MARK); begin !== -1; begin = marked.indexOf(BEGIN_MARK, position)) {
		const end = marked.indexOf(END_MARK, begin);
		if (end === -1) break;
		const literal = marked.slice(position, begin);
		const value = marked.slice(begin + 1, end);
		templateText += literal;
		text += literal + value;
		data.push({ offset: templateText.length, value });
		position = end + 1;
	}
	const remainder = marked.slice(position);
	return { source: { text: templateText + remainder, data }, text: text + remainder };
}
