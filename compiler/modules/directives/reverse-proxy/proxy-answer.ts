/** Answers with the upstream's response, or runs routes that replace it. */
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import type { ProxyFacts } from '../../../codegen/context/proxy-facts.ts';
import { asBrokenResponse } from '../../../exchange/broken-response.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { VIA_BY_PROTOCOL, VIA_PSEUDONYM } from '../../../exchange/forwarded-request.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { isJoinableStream } from '../../../exchange/joinable-stream.ts';
import { UpstreamError, type UpstreamResponse } from '../../../exchange/leases.ts';
import { type RuleFinder, replacementStatus } from '../responses/response-rules.ts';
import { bufferBody } from './buffered-body.ts';
import { HANDLED_RESPONSE_VARIABLE, HandledResponse } from './handled-response.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** Status that is recorded for an exchange whose client left before the upstream answered. It is never sent. */
const CLIENT_CLOSED_STATUS = 499;

/** Settings for answering with the responses of upstreams. */
export interface AnswerSettings {
	readonly pool: UpstreamPool;
	/** Edits the header fields of the upstream's response. */
	readonly editHeaders: ((x: Exchange, headers: HeaderList) => void) | undefined;
	readonly findRule: RuleFinder | undefined;
	/** Maximum number of bytes of a response body to read before passing it on; 0 disables buffering. */
	readonly bufferBytes: number;
	/** Maximum lifetime of an upgraded connection in milliseconds; 0 for no limit. */
	readonly streamTimeoutMs: number;
	/** Milliseconds for which upgraded connections continue after a configuration reload has removed their pool. */
	readonly streamCloseDelayMs: number;
}

/** Answers with an upstream's response whose head has just arrived. `upgrade` is the protocol that was requested, if any. */
export function answerFromUpstream(
	x: Exchange,
	facts: ProxyFacts,
	upstreamResponse: UpstreamResponse,
	upgrade: string | undefined,
	settings: AnswerSettings,
): void | Promise<void> {
	facts.answeredAt = performance.now();
	facts.response = upstreamResponse;
	if (upstreamResponse.mayBeTruncated === true) x.response.mayBeTruncated = true;
	const { headers } = upstreamResponse;
	if (upstreamResponse.upgradedStream) {
		joinStreams(x, upstreamResponse, upgrade, settings);
		return;
	}
	const rule = settings.findRule?.(x, upstreamResponse.status, headers);
	if (rule?.routesHandler) return handleResponse(x, facts, rule.routesHandler, settings);
	const { response } = x;
	response.status = rule === undefined ? upstreamResponse.status : replacementStatus(rule, x);
	response.body = upstreamResponse.body;
	addUpstreamFields(x, upstreamResponse, settings);
	// Server-sent events are never buffered.
	if (settings.bufferBytes === 0 || headers.get('content-type')?.startsWith('text/event-stream') === true) return;
	return bufferBody(upstreamResponse.body, settings.bufferBytes).then(
		body => {
			response.body = body;
		},
		error => {
			response.body = null;
			throw asBrokenResponse(error);
		},
	);
}

/** Joins the client's stream with the upstream's, after a 101 response. */
function joinStreams(
	x: Exchange,
	upstreamResponse: UpstreamResponse,
	upgrade: string | undefined,
	settings: AnswerSettings,
): void {
	const upstreamStream = upstreamResponse.upgradedStream!;
	if (upstreamResponse.headers.get('upgrade')?.toLowerCase() !== upgrade?.toLowerCase()) {
		upstreamStream.on('error', () => {});
		upstreamStream.destroy();
		throw new HttpError(502, 'The upstream switched to a protocol that was not requested.');
	}
	x.upgrade(client => {
		const unregisterStream = settings.pool.registerStream(() => {
			upstreamStream.destroy();
			client.destroy();
		}, settings.streamCloseDelayMs);
		let timer: NodeJS.Timeout | undefined;
		if (settings.streamTimeoutMs > 0) {
			timer = setTimeout(
				() => {
					upstreamStream.destroy();
					client.destroy();
				},
				Math.min(settings.streamTimeoutMs, 2 ** 31 - 1),
			);
		}
		upstreamStream.once('close', () => {
			clearTimeout(timer);
			unregisterStream();
		});
		spliceStreams(client, upstreamStream);
	});
	addUpstreamFields(x, upstreamResponse, settings);
}

/** Adds the header fields of the upstream's response to the fields that directives have already set. */
function addUpstreamFields(x: Exchange, upstreamResponse: UpstreamResponse, { editHeaders }: AnswerSettings): void {
	const { response } = x;
	const { headers } = upstreamResponse;
	addVia(upstreamResponse);
	editHeaders?.(x, headers);
	const responseHeaders = response.headers;
	// The upstream made this response, so this server's own `Server` field is removed even if the upstream sent none.
	responseHeaders.delete('server');
	if (responseHeaders.size === 0) response.headers = headers;
	else for (let i = 0, size = headers.size; i < size; i++) responseHeaders.add(headers.nameAt(i), headers.valueAt(i));
}

function addVia({ headers, protocol }: UpstreamResponse): void {
	switch (protocol) {
		case 'HTTP/1.1':
			headers.add('Via', VIA_BY_PROTOCOL['HTTP/1.1']);
			break;
		case 'HTTP/1.0':
			headers.add('Via', VIA_BY_PROTOCOL['HTTP/1.0']);
			break;
		default:
			headers.add('Via', `${protocol.startsWith('HTTP/') ? protocol.slice(5) : '1.1'} ${VIA_PSEUDONYM}`);
	}
}

/**
 * Runs the routes of `handle_response` instead of sending the upstream's response. The routes may copy that response. After they
 * have run, its body is canceled unless it was copied.
 */
function handleResponse(
	x: Exchange,
	facts: ProxyFacts,
	routes: Handler,
	{ editHeaders }: AnswerSettings,
): void | Promise<void> {
	const upstreamResponse = facts.response!;
	addVia(upstreamResponse);
	editHeaders?.(x, upstreamResponse.headers);
	const handledResponse = new HandledResponse(upstreamResponse);
	x.variables.set(HANDLED_RESPONSE_VARIABLE, handledResponse);
	x.answeredBy = '';
	let pending: void | Promise<void>;
	try {
		pending = routes(x);
	} catch (error) {
		handledResponse.close();
		throw error;
	}
	if (pending instanceof Promise) return pending.finally(() => handledResponse.close());
	handledResponse.close();
}

/** Throws the error of a failed attempt as an HttpError. If the client has disconnected, only records status 499. */
export function failProxiedRequest(x: Exchange, facts: ProxyFacts, error: unknown): void {
	if (x.isGone) {
		x.response.status = CLIENT_CLOSED_STATUS;
		x.response.body = null;
		return;
	}
	if (!(error instanceof UpstreamError)) throw error;
	facts.failure = error.message;
	// If the cause is an HttpError, the client's request body caused the failure: it was malformed, truncated, too large or too
	// slow.
	if (error.cause instanceof HttpError) throw error.cause;
	const message = `Upstream ${facts.upstream?.address}: ${error.message}.`;
	throw new HttpError(error.phase === 'timeout' ? 504 : 502, message, { cause: error });
}

/**
 * Passes bytes in both directions with backpressure. When one stream ends, the writing side of the other stream is ended, and the
 * opposite direction continues. When one stream fails, the other stream is destroyed, too.
 */
function spliceStreams(client: Duplex, upstream: Duplex): void {
	if (isJoinableStream(client) && client.joinTo(upstream)) return;
	client.pipe(upstream);
	upstream.pipe(client);
	closeWith(client, upstream);
	closeWith(upstream, client);
}

function closeWith(stream: Duplex, otherStream: Duplex): void {
	stream.on('error', () => otherStream.destroy());
	stream.on('close', () => {
		// After an orderly end, the other side still receives the data already sent to it.
		if (stream.readableEnded && !otherStream.writableFinished && !otherStream.destroyed)
			otherStream.once('finish', () => otherStream.destroy());
		else otherStream.destroy();
	});
}
