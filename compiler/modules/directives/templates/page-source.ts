/** Lets a handler mark the parts of its text that came from the request, so that a template does not execute them. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Insertion, TemplateSource } from '../../templates/lexer.ts';

/** Variable that holds a page to be executed. */
export const PAGE_VARIABLE = 'svc.templates.page';

/** A response to be executed as a template. */
export interface Page {
	/** The error whose routes are answering: they start a new page. */
	readonly error: object | undefined;
	/** True once it has been executed: its text is no longer a template. */
	executed: boolean;
	/** The text with the data removed, and the body built from it. */
	source: TemplateSource | undefined;
	body: unknown;
}

/** Returns the page for which an exchange is answering, or undefined if the response will not be executed. */
export function pageOf(x: Exchange): Page | undefined {
	const page = x.variable(PAGE_VARIABLE) as Page | undefined;
	return page && page.error === x.error && !page.executed ? page : undefined;
}

/** Noncharacters that delimit data; they never leave this file. */
const BEGIN = '\ufdd0';
const END = '\ufdd1';
const MARKS = /[\ufdd0\ufdd1]/g;

/** Marks a value as data. For `cx.template`. */
export function markData(value: string): string {
	return `${BEGIN}${value.replace(MARKS, '\ufffd')}${END}`;
}

/** Splits a text with marked data into its source and the text to send. */
export function splitMarked(marked: string): { source: TemplateSource; text: string } {
	let skeleton = '';
	let text = '';
	const data: Insertion[] = [];
	let from = 0;
	for (let at = marked.indexOf(BEGIN); at !== -1; at = marked.indexOf(BEGIN, from)) {
		const end = marked.indexOf(END, at);
		if (end === -1) break;
		const before = marked.slice(from, at);
		const value = marked.slice(at + 1, end);
		skeleton += before;
		text += before + value;
		data.push({ at: skeleton.length, value });
		from = end + 1;
	}
	const rest = marked.slice(from);
	return { source: { text: skeleton + rest, data }, text: text + rest };
}
