/** The handler `errors_page`: supplies the page of errors that nothing else answers. */
import { compileStatuses } from '../../../codegen/context/statuses.ts';
import { UUID_VARIABLE } from '../../../codegen/placeholders/request.ts';
import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { dropContentFields } from '../../../exchange/failed-response.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { FileError, type FileReader, type OpenFile } from '../../../exchange/leases.ts';
import { STATUS_CODES } from '../../../exchange/status-codes.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { namedType } from '../../representations/accept.ts';
import {
	defaultErrorText,
	type ErrorPageContent,
	type ErrorPageTheme,
	htmlErrorPage,
	jsonErrorPage,
	PAGE_CONTENT_SECURITY_POLICY,
	textErrorPage,
} from './built-in-page.ts';
import type { ErrorsPageStep } from './errors-page.ts';

/** Types of error pages. Of those that a client prefers equally, the first is sent. */
const TYPES = ['text/html', 'application/json', 'text/plain'] as const;

/** An ID that may come from the client: no longer than this, and of these characters. */
const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/;

/** Fields that allow a response to be stored. */
const OF_CACHING: ReadonlySet<string> = new Set(['cache-control', 'expires', 'age', 'surrogate-control']);

/** An `errors_page` step, compiled. */
interface ErrorPages {
	readonly theme: ErrorPageTheme;
	readonly title: Template | undefined;
	readonly text: Template | undefined;
	readonly folder: { readonly path: string; readonly reader: FileReader } | undefined;
}

/** Compiles an `errors_page` step. */
export function compileErrorsPage(step: ErrorsPageStep, cx: CompileContext, next: Handler): Handler {
	const { folder, title, text, intercept } = step;
	const pages: ErrorPages = {
		theme: step.theme ?? 'auto',
		title: title === undefined ? undefined : cx.template(title, 'empty'),
		text: text === undefined ? undefined : cx.template(text, 'empty'),
		folder: folder === undefined ? undefined : { path: folder, reader: cx.lease('files', {}) },
	};
	cx.answerErrors();
	const page = (x: Exchange): void | Promise<void> => answer(x, x.error!.status, pages);
	if (!intercept) {
		return x => {
			x.errorPage = page;
			return next(x);
		};
	}
	const isIntercepted = compileStatuses(intercept, cx);
	const after = (x: Exchange): void | Promise<void> => {
		const { status, headers } = x.response;
		if (x.aborted || x.upgradeCallback !== undefined || status < 400 || !isIntercepted(status)) return;
		// A client of gRPC reads the status in the fields of its own protocol.
		if (headers.get('content-type')?.toLowerCase().startsWith('application/grpc')) return;
		return answer(x, status, pages);
	};
	return x => {
		x.errorPage = page;
		const pending = next(x);
		return pending instanceof Promise ? pending.then(() => after(x)) : after(x);
	};
}

/** Answers with the page for a status. Only the body and the fields that describe it are replaced. */
function answer(x: Exchange, status: number, pages: ErrorPages): void | Promise<void> {
	const { request, response } = x;
	const type = namedType(request.headers.combined('accept'), TYPES) ?? 'text/plain';
	if (isStream(response.body)) response.body.cancel();
	response.body = null;
	response.trailers = undefined;
	response.status = status;
	clearFields(x, status);
	if (type !== 'text/html' || pages.folder === undefined) return sendBuiltIn(x, type, pages);
	const opened = openPage(pages.folder, status);
	if (!(opened instanceof Promise)) return sendFile(x, opened, pages);
	return opened.then(file => sendFile(x, file, pages));
}

function clearFields(x: Exchange, status: number): void {
	const { headers } = x.response;
	// With 416, it is the length of the whole (RFC 9110 §14.4).
	const range = status === 416 ? headers.get('content-range') : undefined;
	dropContentFields(headers);
	headers.filter(name => !OF_CACHING.has(name.toLowerCase()));
	// The page depends on the request, and the error may be over the next moment.
	headers.set('Cache-Control', 'no-store');
	headers.add('Vary', 'Accept');
	if (range !== undefined) headers.set('Content-Range', range);
	const cause = x.error?.cause;
	if (cause instanceof HttpError) for (const [name, value] of cause.headers) headers.set(name, value);
}

/** Returns the most precise page of a folder for a status; undefined if there is none that can be read. */
function openPage(
	{ path, reader }: NonNullable<ErrorPages['folder']>,
	status: number,
): OpenFile | undefined | Promise<OpenFile | undefined> {
	const names = pageNames(status);
	const from = (index: number): OpenFile | undefined | Promise<OpenFile | undefined> => {
		for (let i = index; i < names.length; i++) {
			try {
				// The names are fixed, so a link is the administrator's intention.
				const opened = reader.open(path, `/${names[i]}`, true);
				if (!(opened instanceof Promise)) return opened;
				return opened.catch((error: unknown) => {
					if (error instanceof FileError) return from(i + 1);
					throw error;
				});
			} catch (error) {
				if (!(error instanceof FileError)) throw error;
			}
		}
		return undefined;
	};
	return from(0);
}

/** Returns the names of the files for a status, the most precise first. */
export function pageNames(status: number): readonly string[] {
	return [`${status}.html`, `${Math.floor(status / 100)}xx.html`, 'error.html'];
}

function sendFile(x: Exchange, file: OpenFile | undefined, pages: ErrorPages): void {
	if (file === undefined) {
		sendBuiltIn(x, 'text/html', pages);
		return;
	}
	const { response } = x;
	response.headers.set('Content-Type', 'text/html; charset=utf-8');
	try {
		response.body = file.body(0, file.size);
	} catch (error) {
		// The file has just been truncated.
		if (!(error instanceof FileError)) throw error;
		sendBuiltIn(x, 'text/html', pages);
	}
}

function sendBuiltIn(x: Exchange, type: (typeof TYPES)[number], pages: ErrorPages): void {
	const { response } = x;
	const { status, headers } = response;
	const phrase = STATUS_CODES[status] ?? 'Error';
	const { error } = x;
	// An error response that was intercepted has placeholders, too.
	x.error ??= { status, message: phrase };
	const title = pages.title?.render(x);
	const message = pages.text?.render(x);
	x.error = error;
	const content: ErrorPageContent = {
		status,
		title: title ?? phrase,
		text: message ?? defaultErrorText(status),
		requestId: requestIdOf(x),
	};
	headers.set('Content-Type', type === 'application/json' ? type : `${type}; charset=utf-8`);
	headers.set('X-Content-Type-Options', 'nosniff');
	switch (type) {
		case 'text/html':
			headers.set('Content-Security-Policy', PAGE_CONTENT_SECURITY_POLICY);
			response.body = htmlErrorPage(content, pages.theme, pages.title === undefined || pages.text === undefined);
			break;
		case 'application/json':
			response.body = jsonErrorPage(content, phrase, message === '' ? undefined : message);
			break;
		case 'text/plain':
			response.body = textErrorPage(content);
	}
}

/** Returns the ID by which the request can be found in logs: that of the response, `{uuid}`, that of the request, or its trace. */
function requestIdOf(x: Exchange): string | undefined {
	const candidates = [
		x.response.headers.get('x-request-id'),
		x.variable(UUID_VARIABLE),
		x.request.headers.get('x-request-id'),
		x.log?.fields?.traceID,
	];
	return candidates.find((id): id is string => typeof id === 'string' && REQUEST_ID.test(id));
}
