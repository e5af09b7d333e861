/** The handler of `mirror`: sends a copy of each request to another upstream and discards the response to it. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest, UpstreamResponse } from '../../../exchange/leases.ts';
import { MirrorExchange } from '../../../exchange/mirror-exchange.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileForwarding, type Forwarding } from '../reverse-proxy/forwarding.ts';
import type { UpstreamPool } from '../reverse-proxy/upstream-pool.ts';
import { CopiedBody } from './copied-body.ts';
import type { MirrorStep } from './mirror.ts';
import type { MirrorGate, MirrorOutcome } from './mirror-gate.ts';

/** Default maximum size of a copied body in bytes. */
export const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;
/** Default milliseconds from sending a copy to the end of its response. */
export const DEFAULT_TIMEOUT_MS = 30_000;
export const DEFAULT_MAX_IN_FLIGHT = 128;

/** Header field that marks a copy, so that mirrors that lead to each other do not copy endlessly. */
const MIRRORED_FIELD = 'X-Mirrored';
/** One mirror may always keep at least this many bytes of bodies in memory on one thread, even if `max_body` is smaller. */
const MIN_MEMORY_LIMIT_BYTES = 16 * 1024 * 1024;
/** Maximum number of bytes that are read of a response to a copy. If the response is longer, its connection is closed. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
/** After reading this many bytes of a response without waiting, the thread processes other events. */
const YIELD_AFTER_BYTES = 256 * 1024;

/** Compiles a `mirror` step. Its handler always continues with `next`, whatever happens to the copy. */
export function compileMirror(step: MirrorStep, cx: CompileContext, next: Handler): Handler {
	const forwarding = compileForwarding(step, cx);
	const { settings } = forwarding;
	if (settings.dynamic) {
		cx.refuse(
			'The upstreams of a mirror cannot be looked up with `dynamic`.',
			'mirror/dynamic',
			'Write their addresses.',
		);
	}
	if (settings.transport?.type === 'fastcgi') {
		cx.refuse('A mirror receives HTTP, not FastCGI.', 'mirror/fastcgi', 'Write the address of an HTTP server.');
	}
	const isSampled = step.sample && cx.matcher(step.sample, 'sample');
	const maxBodyBytes = step.max_body ?? DEFAULT_MAX_BODY_BYTES;
	const mirror: CompiledMirror = {
		forwarding,
		gate: cx.lease('mirror_gate', {
			upstream: settings.name ?? settings.to.join(' '),
			maxInFlight: step.max_in_flight ?? DEFAULT_MAX_IN_FLIGHT,
			maxBytes: Math.max(MIN_MEMORY_LIMIT_BYTES, maxBodyBytes),
		}),
		copiesBody: step.body !== false,
		maxBodyBytes,
		timeoutMs: step.timeout ?? DEFAULT_TIMEOUT_MS,
	};
	return x => {
		if (isSampled !== undefined && !isSampled(x)) return next(x);
		const sendPreparedCopy = beginCopy(x, mirror);
		if (sendPreparedCopy === undefined) return next(x);
		// The client's request is started before the copy is sent, so that the copy does not delay it.
		try {
			return next(x);
		} finally {
			sendPreparedCopy();
		}
	};
}

/** A compiled `mirror` step. */
interface CompiledMirror {
	readonly forwarding: Forwarding;
	readonly gate: MirrorGate;
	readonly copiesBody: boolean;
	readonly maxBodyBytes: number;
	/** Maximum milliseconds from sending a copy to the end of its response. */
	readonly timeoutMs: number;
}

/**
 * Prepares the copy of a request in its current state. Returns the function that sends the copy. Returns undefined if there is no
 * copy, or if it will be sent when a later directive has read the body to its end.
 */
function beginCopy(x: Exchange, mirror: CompiledMirror): (() => void) | undefined {
	const { request } = x;
	const { gate, copiesBody, maxBodyBytes } = mirror;
	if (!mayBeCopied(x)) return undefined;
	if (request.headers.get('x-mirrored') !== undefined) {
		gate.counts.countDropped('already_mirrored');
		return undefined;
	}
	const { body } = request;
	const hasBody = copiesBody && body !== null;
	if (hasBody && (bodyByteLength(body) ?? 0) > maxBodyBytes) {
		gate.counts.countDropped('body_too_large');
		return undefined;
	}
	let send: SendCopy | undefined;
	try {
		send = prepareCopy(x, mirror);
	} catch {
		// A value that cannot be rendered must not fail the client's request.
		gate.counts.countSent('failed');
	}
	if (send === undefined) return undefined;
	const sendCopy = send;
	if (!hasBody) return () => sendCopy(null);
	if (isStream(body)) {
		const copiedBody = new CopiedBody(body, gate, maxBodyBytes, {
			onComplete: sendCopy,
			onDropped: reason => gate.counts.countDropped(reason),
		});
		request.body = copiedBody;
		x.finishListeners ??= [];
		x.finishListeners.push(() => copiedBody.giveUp('body_unread'));
		return undefined;
	}
	const bodyCopy = typeof body === 'string' ? Buffer.from(body, 'utf8') : Uint8Array.from(body);
	if (gate.reserve(bodyCopy.byteLength)) return () => sendCopy(bodyCopy);
	gate.counts.countDropped('out_of_memory');
	return undefined;
}

/** Reports whether HTTP allows a copy of the request to be sent to another server (RFC 9110 §7.6.2, §9.3.6, §9.3.8). */
function mayBeCopied({ request: { method, headers } }: Exchange): boolean {
	if (method === 'CONNECT' || method === 'TRACE') return false;
	return method !== 'OPTIONS' || !/^0+$/.test(headers.get('max-forwards') ?? '');
}

function bodyByteLength(body: Body): number | undefined {
	if (body === null) return 0;
	return typeof body === 'string' ? Buffer.byteLength(body) : isStream(body) ? body.length : body.byteLength;
}

/** Sends a copy with this body; null for none. The memory of the body has already been reserved. Never throws. */
type SendCopy = (body: Uint8Array | null) => void;

function prepareCopy(x: Exchange, { forwarding, gate, timeoutMs }: CompiledMirror): SendCopy | undefined {
	const { pool, resolveAddresses: addressesOf, selectUpstream: select } = forwarding;
	const upstream = select(x, undefined, addressesOf?.(x));
	if (!upstream) {
		gate.counts.countDropped('no_upstream');
		return undefined;
	}
	const upstreamRequest = forwarding.buildUpstreamRequest(x, upstream, null);
	if (upstreamRequest.upgrade !== undefined) {
		gate.counts.countDropped('upgrade');
		return undefined;
	}
	// `Accept-Encoding` was added because this server can decode gzip, but the response to a copy is discarded.
	if (upstreamRequest.decodeGzip) upstreamRequest.headers.delete('accept-encoding');
	upstreamRequest.headers.delete('expect');
	upstreamRequest.headers.set(MIRRORED_FIELD, '1');
	return body => {
		const bodyBytes = body?.byteLength ?? 0;
		if (!gate.enter()) {
			gate.release(bodyBytes);
			gate.counts.countDropped('too_many');
			return;
		}
		const requestCopy = { ...upstreamRequest, decodes: false, body: bodyBytes === 0 ? null : body };
		new MirroredRequest(new MirrorExchange(x), gate, timeoutMs, bodyBytes).send(pool, upstream, requestCopy);
	};
}

/** A copy in flight, from sending it to the end of its response. */
class MirroredRequest implements UpstreamOutcome {
	readonly #x: MirrorExchange;
	readonly #gate: MirrorGate;
	/** Number of bytes that the copy's body has reserved in the gate. */
	readonly #bodyBytes: number;
	readonly #timeoutTimer: NodeJS.Timeout;
	#responseBody: BodySource | undefined = undefined;
	#isEnded = false;

	constructor(x: MirrorExchange, gate: MirrorGate, timeoutMs: number, bodyBytes: number) {
		this.#x = x;
		this.#gate = gate;
		this.#bodyBytes = bodyBytes;
		this.#timeoutTimer = setTimeout(() => this.#timeOut(), timeoutMs).unref();
	}

	send(pool: UpstreamPool, upstream: Upstream, request: UpstreamRequest): void {
		try {
			pool.send(this.#x, upstream, request, this);
		} catch {
			// A failure of the copy must not affect the client.
			this.#finish('failed');
		}
	}

	mayReuseBody(): boolean {
		return true;
	}

	onInterim(): void {}

	onResponse({ body, upgradedStream: upgraded }: UpstreamResponse): void {
		upgraded?.destroy();
		if (!isStream(body)) {
			this.#finish('answered');
			return;
		}
		this.#responseBody = body;
		drainResponse(body).then(
			() => this.#finish('answered'),
			() => this.#finish('failed'),
		);
	}

	onError(): void {
		this.#finish('failed');
	}

	#timeOut(): void {
		this.#finish('timed_out');
		this.#responseBody?.cancel();
		// Abandons the exchange, so that its upstream connection is closed.
		this.#x.markGone();
	}

	#finish(outcome: MirrorOutcome): void {
		if (this.#isEnded) return;
		this.#isEnded = true;
		clearTimeout(this.#timeoutTimer);
		this.#gate.leave();
		this.#gate.release(this.#bodyBytes);
		this.#gate.counts.countSent(outcome);
	}
}

/** Reads and discards a response up to a limit, so that its connection can be reused. */
async function drainResponse(body: BodySource): Promise<void> {
	let readBytes = 0;
	let bytesAtLastYield = 0;
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return;
		readBytes += piece.byteLength;
		if (readBytes > MAX_RESPONSE_BYTES) {
			body.cancel();
			return;
		}
		// Bytes that have already arrived are read without waiting, so a long response would block the thread.
		if (readBytes - bytesAtLastYield >= YIELD_AFTER_BYTES) {
			bytesAtLastYield = readBytes;
			await new Promise(resolve => setImmediate(resolve));
		}
	}
}
