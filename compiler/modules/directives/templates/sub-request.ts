/** Requests that a page makes to its own site: `httpInclude`. */
import { isStream } from '../../../exchange/body.ts';
import { Exchange, Request } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { escapePathWhereNeeded, escapeQueryWhereNeeded } from '../../../exchange/uri-escape.ts';
import { DEFAULT_EXECUTION_BOUNDS } from '../../templates/run.ts';
import { readWholeBody } from './whole-body.ts';

/** Variable of a sub-request that holds the {@link SubRequestAllowance} that it shares with the page that made it. */
const ALLOWANCE_VARIABLE = 'svc.templates.allowance';
/** Maximum depth to which pages that request other pages may be nested. */
const MAX_NESTING_DEPTH = 3;
/** Maximum number of sub-requests for one client request, at all depths together. */
const MAX_SUB_REQUESTS = 50;
/** Maximum size in bytes of the response to a sub-request. */
const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;

/**
 * What a page may still use: its nesting depth, and the numbers of sub-requests and execution steps that are left for all pages of
 * one client request together.
 */
export interface SubRequestAllowance {
	readonly depth: number;
	readonly requests: { remaining: number };
	readonly steps: { stepsLeft: number };
}

/** Returns the allowance of a request. A sub-request shares the allowance of the page that made it. */
export function allowanceOf(x: Exchange): SubRequestAllowance {
	const inheritedAllowance = x.variable(ALLOWANCE_VARIABLE) as SubRequestAllowance | undefined;
	return (
		inheritedAllowance ?? {
			depth: 0,
			requests: { remaining: MAX_SUB_REQUESTS },
			steps: { stepsLeft: DEFAULT_EXECUTION_BOUNDS.maxSteps },
		}
	);
}

/** The result of a sub-request: the body of the response, or the reason why the sub-request failed. */
export type SubResponse = { readonly text: string } | { readonly failure: string };

/**
 * Request fields that a sub-request does not inherit from the client's request, because they concern the connection, the body,
 * ranges or preconditions.
 */
const UNINHERITED_FIELDS = new Set([
	...['connection', 'upgrade', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'content-length', 'content-type'],
	...['expect', 'range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
	'accept-encoding',
]);

/**
 * Makes a GET request to the site itself; `uri` is a path with an optional query. Returns a promise only if a handler is
 * asynchronous. Failures are part of the result.
 */
export function requestFromSite(
	pageExchange: Exchange,
	allowance: SubRequestAllowance,
	wholeSite: Handler,
	uri: string,
): SubResponse | Promise<SubResponse> {
	if (allowance.depth >= MAX_NESTING_DEPTH) return { failure: 'virtual request cycle' };
	if (!/^\/(?!\/)/.test(uri)) return { failure: `"${uri}" is not a path of this site` };
	if (--allowance.requests.remaining < 0) return { failure: `a page makes more than ${MAX_SUB_REQUESTS} requests` };
	const x = createSubExchange(pageExchange, uri);
	x.variables.set(ALLOWANCE_VARIABLE, { ...allowance, depth: allowance.depth + 1 } satisfies SubRequestAllowance);
	pageExchange.onGone(() => x.markGone());
	try {
		const pending = wholeSite(x);
		return pending instanceof Promise
			? pending.then(() => toSubResponse(x)).catch(toFailureResponse)
			: toSubResponse(x);
	} catch (error) {
		return toFailureResponse(error);
	}
}

function createSubExchange(pageExchange: Exchange, uri: string): Exchange {
	const { request, received } = pageExchange;
	const withoutFragment = uri.replace(/#.*$/s, '');
	const queryStart = withoutFragment.indexOf('?');
	const requestLine = {
		method: 'GET',
		path: escapePathWhereNeeded(queryStart === -1 ? withoutFragment : withoutFragment.slice(0, queryStart)),
		query: queryStart === -1 ? undefined : escapeQueryWhereNeeded(withoutFragment.slice(queryStart + 1)),
		authority: received.authority,
	};
	const headers = request.headers.clone();
	headers.filter(name => !UNINHERITED_FIELDS.has(name.toLowerCase()));
	headers.add('Accept-Encoding', 'identity');
	const subRequest = new Request(
		{ ...requestLine, authority: request.authority },
		request.scheme,
		request.host,
		headers,
		null,
	);
	const transport = { sendInterim: () => {}, watch: () => {} };
	const x = new Exchange(
		pageExchange.protocol,
		pageExchange.connection,
		requestLine,
		subRequest,
		transport,
		pageExchange.startedAt,
	);
	// The sub-request sees the same time as the page.
	x.now = () => pageExchange.now();
	return x;
}

function toSubResponse(x: Exchange): SubResponse | Promise<SubResponse> {
	const { status, headers, body } = x.response;
	if (x.isAborted || x.upgradeCallback) return { failure: 'the site gave no answer' };
	if (status >= 400) {
		if (isStream(body)) body.cancel();
		return { failure: `http ${status}` };
	}
	const coding = headers.get('content-encoding');
	if (coding !== undefined && coding.toLowerCase() !== 'identity') {
		if (isStream(body)) body.cancel();
		return { failure: `the answer is encoded (${coding})` };
	}
	const bufferedBody = readWholeBody(body, MAX_RESPONSE_BYTES, 'the answer to an httpInclude');
	return bufferedBody instanceof Promise
		? bufferedBody.then(toTextResponse).catch(toFailureResponse)
		: toTextResponse(bufferedBody);
}

function toTextResponse(body: unknown): SubResponse {
	if (typeof body === 'string') return { text: body };
	return {
		text: body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString() : '',
	};
}

function toFailureResponse(error: unknown): SubResponse {
	if (error instanceof HttpError) return { failure: `http ${error.status}: ${error.message}` };
	return { failure: error instanceof Error ? error.message : String(error) };
}
