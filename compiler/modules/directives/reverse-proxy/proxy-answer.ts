/** Answers with the upstream's response, or runs routes in its place. */
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import type { ProxyFacts } from '../../../codegen/context/proxy-facts.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { VIA_BY_PROTOCOL, VIA_NAME } from '../../../exchange/forwarded-request.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { isJoinableStream } from '../../../exchange/joinable-stream.ts';
import { UpstreamError, type UpstreamResponse } from '../../../exchange/leases.ts';
import { type RuleFinder, replacementStatus } from '../responses/response-rules.ts';
import { bufferedBody } from './buffered-body.ts';
import { HANDLED_RESPONSE_VARIABLE, HandledResponse } from './handled-response.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** The status of an exchange whose client left before the upstream answered. It is only recorded. */
const CLIENT_CLOSED_REQUEST = 499;

/** How responses are handled. */
export interface AnswerSettings {
	readonly pool: UpstreamPool;
	/** Edits the response's fields. */
	readonly edit: ((x: Exchange, headers: HeaderList) => void) | undefined;
	readonly rules: RuleFinder | undefined;
	/** Number of bytes of a response body to read before passing it on; 0 disables buffering. */
	readonly buffers: number;
	/** Maximum milliseconds of an upgraded connection; 0 for no limit. */
	readonly streamTimeout: number;
	/** Milliseconds for which upgraded connections continue after a configuration reload has removed their pool. */
	readonly streamCloseDelay: number;
}

/** Answers with the upstream's response, whose head has just arrived. `upgrade`: the protocol that was requested. */
export function answerFromUpstream(
	x: Exchange,
	facts: ProxyFacts,
	upstream: UpstreamResponse,
	upgrade: string | undefined,
	settings: AnswerSettings,
): void | Promise<void> {
	facts.answeredAt = performance.now();
	facts.response = upstream;
	const { headers } = upstream;
	if (upstream.upgradedStream) {
		join(x, upstream, upgrade, settings);
		return;
	}
	const rule = settings.rules?.(x, upstream.status, headers);
	if (rule?.routes) return handleResponse(x, facts, rule.routes, settings);
	const { response } = x;
	response.status = rule === undefined ? upstream.status : replacementStatus(rule, x);
	response.body = upstream.body;
	passFields(x, upstream, settings);
	// Server-sent events are never buffered.
	if (settings.buffers === 0 || headers.get('content-type')?.startsWith('text/event-stream') === true) return;
	return bufferedBody(upstream.body, settings.buffers).then(
		body => {
			response.body = body;
		},
		error => {
			response.body = null;
			throw new HttpError(502, 'The upstream closed the connection before its response was complete.', {
				cause: error,
			});
		},
	);
}

/** Joins the client's stream with the upstream's, after a 101 response. */
function join(x: Exchange, upstream: UpstreamResponse, upgrade: string | undefined, settings: AnswerSettings): void {
	const stream = upstream.upgradedStream!;
	if (upstream.headers.get('upgrade')?.toLowerCase() !== upgrade?.toLowerCase()) {
		stream.on('error', () => {});
		stream.destroy();
		throw new HttpError(502, 'The upstream switched to a protocol that was not requested.');
	}
	x.upgrade(client => {
		const leave = settings.pool.joined(() => {
			stream.destroy();
			client.destroy();
		}, settings.streamCloseDelay);
		let timer: NodeJS.Timeout | undefined;
		if (settings.streamTimeout > 0) {
			timer = setTimeout(
				() => {
					stream.destroy();
					client.destroy();
				},
				Math.min(settings.streamTimeout, 2 ** 31 - 1),
			);
		}
		stream.once('close', () => {
			clearTimeout(timer);
			leave();
		});
		spliceStreams(client, stream);
	});
	passFields(x, upstream, settings);
}

/** Copies the fields of the upstream's response, after those that directives have set. */
function passFields(x: Exchange, upstream: UpstreamResponse, { edit }: AnswerSettings): void {
	const { response } = x;
	const { headers } = upstream;
	addVia(upstream);
	edit?.(x, headers);
	const own = response.headers;
	// The upstream made this response, so its `Server` field replaces this server's, even if it has none.
	own.delete('server');
	if (own.size === 0) response.headers = headers;
	else for (let i = 0, size = headers.size; i < size; i++) own.add(headers.nameAt(i), headers.valueAt(i));
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
			headers.add('Via', `${protocol.startsWith('HTTP/') ? protocol.slice(5) : '1.1'} ${VIA_NAME}`);
	}
}

/**
 * Runs the routes of `handle_response` instead of sending the upstream's response. The routes may copy that response; afterwards,
 * the rest of its body is canceled.
 */
function handleResponse(
	x: Exchange,
	facts: ProxyFacts,
	routes: Handler,
	{ edit }: AnswerSettings,
): void | Promise<void> {
	const upstream = facts.response!;
	addVia(upstream);
	edit?.(x, upstream.headers);
	const handled = new HandledResponse(upstream);
	x.variables.set(HANDLED_RESPONSE_VARIABLE, handled);
	x.answeredBy = '';
	let pending: void | Promise<void>;
	try {
		pending = routes(x);
	} catch (error) {
		handled.close();
		throw error;
	}
	if (pending instanceof Promise) return pending.finally(() => handled.close());
	handled.close();
}

/** Throws the error of a failed attempt as an HttpError. If the client has left, only records a status. */
export function failProxiedRequest(x: Exchange, facts: ProxyFacts, error: unknown): void {
	if (x.isGone) {
		x.response.status = CLIENT_CLOSED_REQUEST;
		x.response.body = null;
		return;
	}
	if (!(error instanceof UpstreamError)) throw error;
	facts.failure = error.message;
	// The client's own body was at fault, because it was malformed, truncated, too large or too slow.
	if (error.cause instanceof HttpError) throw error.cause;
	const message = `Upstream ${facts.upstream?.address}: ${error.message}.`;
	throw new HttpError(error.phase === 'timeout' ? 504 : 502, message, { cause: error });
}

/**
 * Passes bytes both ways with backpressure. When one side ends, the other's writing side ends and the opposite direction
 * continues; when one fails, the other is closed too.
 */
function spliceStreams(client: Duplex, upstream: Duplex): void {
	if (isJoinableStream(client) && client.joinTo(upstream)) return;
	client.pipe(upstream);
	upstream.pipe(client);
	follow(client, upstream);
	follow(upstream, client);
}

function follow(side: Duplex, other: Duplex): void {
	side.on('error', () => other.destroy());
	side.on('close', () => {
		// After an orderly end, the other side still receives the data already sent to it.
		if (side.readableEnded && !other.writableFinished && !other.destroyed) other.once('finish', () => other.destroy());
		else other.destroy();
	});
}
