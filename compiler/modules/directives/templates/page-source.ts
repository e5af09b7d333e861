/** Lets a handler mark the parts of its response body that came from the request, so that they are not executed as a template. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { DataInsertion, TemplateSource } from '../../templates/lexer.ts';

/** Variable that holds a page to be executed. */
export const PAGE_VARIABLE = 'svc.templates.page';

/** A response to be executed as a template. */
export interface TemplatePage {
	/** The error whose error routes are answering; they begin a new page. */
	readonly error: object | undefined;
	/** True once the page has been executed: its body is then no longer a template. */
	executed: boolean;
	/** The template with the marked data taken out, and the body built from it. */
	source: TemplateSource | undefined;
	body: unknown;
}

/** Returns the page that an exchange's response belongs to; undefined if the response will not be executed as a template. */
export function templatePageOf(x: Exchange): TemplatePage | undefined {
	const page = x.variable(PAGE_VARIABLE) as TemplatePage | undefined;
	return page && page.error === x.error && !page.executed ? page : undefined;
}

/** Noncharacters that delimit data. They occur only in marked text, until `splitMarked` removes them. */
const BEGIN = '\ufdd0';
const END = '\ufdd1';
const MARKS = /[\ufdd0\ufdd1]/g;

/** Marks a value as data, in a template rendered by `cx.template`. */
export function markData(value: string): string {
	return `${BEGIN}${value.replace(MARKS, '\ufffd')}${END}`;
}

/** Splits text with marked data into the template to execute and the text to send if it is not executed. */
export function splitMarked(marked: string): { source: TemplateSource; text: string } {
	let skeleton = '';
	let text = '';
	const data: DataInsertion[] = [];
	let from = 0;
	for (let at = marked.indexOf(BEGIN); at !== -1; at = marked.indexOf(BEGIN, from)) {
		const end = marked.indexOf(END, at);
		if (end === -1) break;
		const before = marked.slice(from, at);
		const value = marked.slice(at + 1, end);
		skeleton += before;
		text += before + value;
		data.push({ offset: skeleton.length, value });
		from = end + 1;
	}
	const rest = marked.slice(from);
	return { source: { text: skeleton + rest, data }, text: text + rest };
}
