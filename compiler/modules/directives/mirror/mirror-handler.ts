/** The closure of `mirror`: sends a copy of the request to another upstream, and discards what that answers. */
import { type Body, type BodySource, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest, UpstreamResponse } from '../../../exchange/leases.ts';
import { MirrorExchange } from '../../../exchange/mirror-exchange.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { compileForwarding, type Forwarding } from '../reverse-proxy/forwarding.ts';
import type { UpstreamPool } from '../reverse-proxy/upstream-pool.ts';
import { CopiedBody } from './copied-body.ts';
import { DEFAULT_MAX_BODY, DEFAULT_MAX_IN_FLIGHT, DEFAULT_TIMEOUT, type MirrorStep } from './mirror.ts';
import type { MirrorGate, MirrorOutcome } from './mirror-gate.ts';

/** The field by which a copy is known, so that mirrors which lead to each other do not copy without end. */
const MARK = 'X-Mirrored';
/** Minimum limit, in bytes, of all bodies that one mirror keeps in memory on one thread. */
const MEMORY = 16 * 1024 * 1024;
/** Maximum bytes that are read of a response. Then its connection is closed. */
const MAX_ANSWER = 8 * 1024 * 1024;
/** Number of bytes of a response after which other work gets its turn. */
const READ_AT_ONCE = 256 * 1024;

/** Compiles the step. It always continues with `next`, and nothing that happens to the copy changes what that does. */
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
	const sampled = step.sample && cx.matcher(step.sample, 'sample');
	const maxBody = step.max_body ?? DEFAULT_MAX_BODY;
	const mirror: Mirror = {
		forwarding,
		gate: cx.lease('mirror_gate', {
			upstream: settings.name ?? settings.to.join(' '),
			maxInFlight: step.max_in_flight ?? DEFAULT_MAX_IN_FLIGHT,
			maxBytes: Math.max(MEMORY, maxBody),
		}),
		withBody: step.body !== false,
		maxBody,
		timeout: step.timeout ?? DEFAULT_TIMEOUT,
	};
	return x => {
		if (sampled !== undefined && !sampled(x)) return next(x);
		const send = beginCopy(x, mirror);
		if (send === undefined) return next(x);
		// What serves the client begins first.
		try {
			return next(x);
		} finally {
			send();
		}
	};
}

/** A compiled step. */
interface Mirror {
	readonly forwarding: Forwarding;
	readonly gate: MirrorGate;
	readonly withBody: boolean;
	readonly maxBody: number;
	/** Milliseconds. */
	readonly timeout: number;
}

/**
 * Prepares the copy of a request as it is now. Returns the function that sends it; undefined if it is not sent, or only when a
 * later directive has read the body to its end.
 */
function beginCopy(x: Exchange, mirror: Mirror): (() => void) | undefined {
	const { request } = x;
	const { gate, withBody, maxBody } = mirror;
	if (!mayBeCopied(x)) return undefined;
	if (request.headers.get('x-mirrored') !== undefined) {
		gate.counts.dropped('already_mirrored');
		return undefined;
	}
	const { body } = request;
	const hasBody = withBody && body !== null;
	if (hasBody && (byteLength(body) ?? 0) > maxBody) {
		gate.counts.dropped('body_too_large');
		return undefined;
	}
	let send: SendCopy | undefined;
	try {
		send = prepareCopy(x, mirror);
	} catch {
		// A value that cannot be rendered must not fail the client's request.
		gate.counts.sent('failed');
	}
	if (send === undefined) return undefined;
	const sendCopy = send;
	if (!hasBody) return () => sendCopy(null);
	if (isStream(body)) {
		const copied = new CopiedBody(body, gate, maxBody, {
			copied: sendCopy,
			missing: reason => gate.counts.dropped(reason),
		});
		request.body = copied;
		x.finishListeners ??= [];
		x.finishListeners.push(() => copied.giveUp('body_unread'));
		return undefined;
	}
	const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : Uint8Array.from(body);
	if (gate.reserve(bytes.byteLength)) return () => sendCopy(bytes);
	gate.counts.dropped('out_of_memory');
	return undefined;
}

/** Reports whether a request is one that may be forwarded at all (RFC 9110 §7.6.2, §9.3.6, §9.3.8). */
function mayBeCopied({ request: { method, headers } }: Exchange): boolean {
	if (method === 'CONNECT' || method === 'TRACE') return false;
	return method !== 'OPTIONS' || !/^0+$/.test(headers.get('max-forwards') ?? '');
}

function byteLength(body: Body): number | undefined {
	if (body === null) return 0;
	return typeof body === 'string' ? Buffer.byteLength(body) : isStream(body) ? body.length : body.byteLength;
}

/** Sends a copy with a body, for which memory has been reserved. Never throws. */
type SendCopy = (body: Uint8Array | null) => void;

function prepareCopy(x: Exchange, { forwarding, gate, timeout }: Mirror): SendCopy | undefined {
	const { pool, addresses, select } = forwarding;
	const upstream = select(x, undefined, addresses?.(x));
	if (!upstream) {
		gate.counts.dropped('no_upstream');
		return undefined;
	}
	const request = forwarding.request(x, upstream, null);
	if (request.upgrade !== undefined) {
		gate.counts.dropped('upgrade');
		return undefined;
	}
	// The coding that `reverse_proxy` asks for when the client does not; nobody decodes this response.
	if (request.decodeGzip) request.headers.delete('accept-encoding');
	request.headers.delete('expect');
	request.headers.set(MARK, '1');
	return body => {
		const bytes = body?.byteLength ?? 0;
		if (!gate.enter()) {
			gate.release(bytes);
			gate.counts.dropped('too_many');
			return;
		}
		const sent = { ...request, decodes: false, body: bytes === 0 ? null : body };
		new MirroredRequest(new MirrorExchange(x), gate, timeout, bytes).send(pool, upstream, sent);
	};
}

/** A copy in flight, from sending it to the end of its response. */
class MirroredRequest implements UpstreamOutcome {
	readonly #x: MirrorExchange;
	readonly #gate: MirrorGate;
	/** Number of bytes of its body. */
	readonly #bytes: number;
	readonly #timer: NodeJS.Timeout;
	#answer: BodySource | undefined = undefined;
	#ended = false;

	constructor(x: MirrorExchange, gate: MirrorGate, timeout: number, bytes: number) {
		this.#x = x;
		this.#gate = gate;
		this.#bytes = bytes;
		this.#timer = setTimeout(() => this.#timeOut(), timeout).unref();
	}

	send(pool: UpstreamPool, upstream: Upstream, request: UpstreamRequest): void {
		try {
			pool.send(this.#x, upstream, request, this);
		} catch {
			// The client is not to learn of it.
			this.#end('failed');
		}
	}

	/** The response is discarded at once. */
	mayReuseBody(): boolean {
		return true;
	}

	onInterim(): void {}

	onResponse({ body, upgradedStream: upgraded }: UpstreamResponse): void {
		upgraded?.destroy();
		if (!isStream(body)) {
			this.#end('answered');
			return;
		}
		this.#answer = body;
		discard(body).then(
			() => this.#end('answered'),
			() => this.#end('failed'),
		);
	}

	onError(): void {
		this.#end('failed');
	}

	#timeOut(): void {
		this.#end('timed_out');
		this.#answer?.cancel();
		// Closes the connection.
		this.#x.markGone();
	}

	#end(outcome: MirrorOutcome): void {
		if (this.#ended) return;
		this.#ended = true;
		clearTimeout(this.#timer);
		this.#gate.leave();
		this.#gate.release(this.#bytes);
		this.#gate.counts.sent(outcome);
	}
}

/** Reads a response up to a limit, so that its connection can be used again. */
async function discard(body: BodySource): Promise<void> {
	let read = 0;
	let rested = 0;
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return;
		read += piece.byteLength;
		if (read > MAX_ANSWER) {
			body.cancel();
			return;
		}
		// Bytes that are there already would otherwise be read before anything else happens on this thread.
		if (read - rested >= READ_AT_ONCE) {
			rested = read;
			await new Promise(resolve => setImmediate(resolve));
		}
	}
}
