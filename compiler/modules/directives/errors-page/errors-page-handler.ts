/** The handler `errors_page`: supplies the pages for errors that nothing else answers. */
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
import { preferredType } from '../../representations/accept.ts';
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

/** Media types of error pages. If a client prefers several of them equally, it gets the one that comes first here. */
const PAGE_TYPES = ['text/html', 'application/json', 'text/plain'] as const;

/** Matches request IDs that are short and harmless enough to be shown. A request ID may come from the client. */
const SAFE_REQUEST_ID = /^[\w.:=+/@-]{1,128}$/;

/** Header fields that allow caches to store a response. */
const CACHING_FIELDS: ReadonlySet<string> = new Set(['cache-control', 'expires', 'age', 'surrogate-control']);

/** A compiled `errors_page` step. */
interface ErrorPages {
	readonly theme: ErrorPageTheme;
	readonly title: Template | undefined;
	readonly text: Template | undefined;
	readonly pageFolder: { readonly path: string; readonly reader: FileReader } | undefined;
}

export function compileErrorsPage(step: ErrorsPageStep, cx: CompileContext, next: Handler): Handler {
	const { folder, title, text, intercept } = step;
	const pages: ErrorPages = {
		theme: step.theme ?? 'auto',
		title: title === undefined ? undefined : cx.template(title, 'empty'),
		text: text === undefined ? undefined : cx.template(text, 'empty'),
		pageFolder: folder === undefined ? undefined : { path: folder, reader: cx.lease('files', {}) },
	};
	cx.enableErrorPages();
	const answerError = (x: Exchange): void | Promise<void> => answerWithPage(x, x.error!.status, pages);
	if (!intercept) {
		return x => {
			x.errorPage = answerError;
			return next(x);
		};
	}
	const isIntercepted = compileStatuses(intercept, cx);
	const interceptResponse = (x: Exchange): void | Promise<void> => {
		const { status, headers } = x.response;
		if (x.isAborted || x.upgradeCallback !== undefined || status < 400 || !isIntercepted(status)) return;
		// gRPC clients read the status from gRPC's own fields, not from a page.
		if (headers.get('content-type')?.toLowerCase().startsWith('application/grpc')) return;
		return answerWithPage(x, status, pages);
	};
	return x => {
		x.errorPage = answerError;
		const pending = next(x);
		return pending instanceof Promise ? pending.then(() => interceptResponse(x)) : interceptResponse(x);
	};
}

/** Answers with the page for a status. Keeps all header fields except those that describe the replaced body. */
function answerWithPage(x: Exchange, status: number, pages: ErrorPages): void | Promise<void> {
	const { request, response } = x;
	const pageType = preferredType(request.headers.getCombined('accept'), PAGE_TYPES) ?? 'text/plain';
	if (isStream(response.body)) response.body.cancel();
	response.body = null;
	response.trailers = undefined;
	response.status = status;
	setErrorPageFields(x, status);
	if (pageType !== 'text/html' || pages.pageFolder === undefined) return sendBuiltInPage(x, pageType, pages);
	const file = openPage(pages.pageFolder, status);
	if (!(file instanceof Promise)) return sendPageFile(x, file, pages);
	return file.then(file => sendPageFile(x, file, pages));
}

function setErrorPageFields(x: Exchange, status: number): void {
	const { headers } = x.response;
	// In a 416 response, `Content-Range` contains the complete length of the file (RFC 9110 §14.4).
	const contentRange = status === 416 ? headers.get('content-range') : undefined;
	dropContentFields(headers);
	headers.filter(name => !CACHING_FIELDS.has(name.toLowerCase()));
	// The page depends on the request, and the error may be temporary.
	headers.set('Cache-Control', 'no-store');
	headers.add('Vary', 'Accept');
	if (contentRange !== undefined) headers.set('Content-Range', contentRange);
	const cause = x.error?.cause;
	if (cause instanceof HttpError) for (const [name, value] of cause.headers) headers.set(name, value);
}

/** Opens the most specific page for a status in a folder. Returns undefined if the folder has no readable page for the status. */
function openPage(
	{ path, reader }: NonNullable<ErrorPages['pageFolder']>,
	status: number,
): OpenFile | undefined | Promise<OpenFile | undefined> {
	const names = pageNames(status);
	const openFrom = (index: number): OpenFile | undefined | Promise<OpenFile | undefined> => {
		for (let i = index; i < names.length; i++) {
			try {
				// Links are followed, because the names are fixed: any link is the administrator's intention.
				const file = reader.open(path, `/${names[i]}`, true);
				if (!(file instanceof Promise)) return file;
				return file.catch((error: unknown) => {
					if (error instanceof FileError) return openFrom(i + 1);
					throw error;
				});
			} catch (error) {
				if (!(error instanceof FileError)) throw error;
			}
		}
		return undefined;
	};
	return openFrom(0);
}

/** Returns the file names of the pages for a status, the most specific name first. */
export function pageNames(status: number): readonly string[] {
	return [`${status}.html`, `${Math.floor(status / 100)}xx.html`, 'error.html'];
}

function sendPageFile(x: Exchange, file: OpenFile | undefined, pages: ErrorPages): void {
	if (file === undefined) {
		sendBuiltInPage(x, 'text/html', pages);
		return;
	}
	const { response } = x;
	response.headers.set('Content-Type', 'text/html; charset=utf-8');
	try {
		response.body = file.body(0, file.size);
	} catch (error) {
		// A FileError means that the file was truncated after it was opened.
		if (!(error instanceof FileError)) throw error;
		sendBuiltInPage(x, 'text/html', pages);
	}
}

function sendBuiltInPage(x: Exchange, pageType: (typeof PAGE_TYPES)[number], pages: ErrorPages): void {
	const { response } = x;
	const { status, headers } = response;
	const reasonPhrase = STATUS_CODES[status] ?? 'Error';
	const { error: originalError } = x;
	// An intercepted response is not an error of this server, but its page may also contain placeholders such as
	// `{http.error.status}`.
	x.error ??= { status, message: reasonPhrase };
	const configuredTitle = pages.title?.render(x);
	const configuredText = pages.text?.render(x);
	x.error = originalError;
	const content: ErrorPageContent = {
		status,
		title: configuredTitle ?? reasonPhrase,
		text: configuredText ?? defaultErrorText(status),
		requestId: requestIdOf(x),
	};
	headers.set('Content-Type', pageType === 'application/json' ? pageType : `${pageType}; charset=utf-8`);
	headers.set('X-Content-Type-Options', 'nosniff');
	switch (pageType) {
		case 'text/html':
			headers.set('Content-Security-Policy', PAGE_CONTENT_SECURITY_POLICY);
			response.body = htmlErrorPage(content, pages.theme, pages.title === undefined || pages.text === undefined);
			break;
		case 'application/json':
			response.body = jsonErrorPage(content, reasonPhrase, configuredText === '' ? undefined : configuredText);
			break;
		case 'text/plain':
			response.body = textErrorPage(content);
	}
}

/**
 * Returns an ID by which the request can be found in logs: the request ID of the response, `{uuid}`, the request ID of the request,
 * or the trace ID.
 */
function requestIdOf(x: Exchange): string | undefined {
	const candidates = [
		x.response.headers.get('x-request-id'),
		x.variable(UUID_VARIABLE),
		x.request.headers.get('x-request-id'),
		x.log?.fields?.traceID,
	];
	return candidates.find((id): id is string => typeof id === 'string' && SAFE_REQUEST_ID.test(id));
}
