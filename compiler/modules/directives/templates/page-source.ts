/** How a handler says which parts of its text came from the request, so that a template does not execute them. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Insertion, TemplateSource } from '../../templates/lexer.ts';

/** Variable under which a page that will be executed is kept. */
export const PAGE_VARIABLE = 'svc.templates.page';

/** A response on its way to being executed. */
export interface Page {
	/** The error whose routes are answering: they begin a page of their own. */
	readonly error: object | undefined;
	/** True once it has been executed: its text is no template any more. */
	executed: boolean;
	/** The text with the data taken out, and the body that it is the source of. */
	source: TemplateSource | undefined;
	body: unknown;
}

/** The page that an exchange is answering for, or undefined when the answer will not be executed. */
export function pageOf(x: Exchange): Page | undefined {
	const page = x.variable(PAGE_VARIABLE) as Page | undefined;
	return page && page.error === x.error && !page.executed ? page : undefined;
}

/** Noncharacters that stand around data; they never leave this file. */
const BEGIN = '\ufdd0';
const END = '\ufdd1';
const MARKS = /[\ufdd0\ufdd1]/g;

/** Marks a value as data. For `cx.template`. */
export function markData(value: string): string {
	return `${BEGIN}${value.replace(MARKS, '\ufffd')}${END}`;
}

/** A text whose data is marked: its source, and the text as it would be sent. */
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
