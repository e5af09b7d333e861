/** A client connection: reads requests, runs them one after another, and responds in order (RFC 9112 §9). */
import { performance } from 'node:perf_hooks';
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { isStream } from '../../../compiler/exchange/body.ts';
import type { Exchange, ExchangeTransport, TransferLimits } from '../../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PendingAnswer } from '../../../compiler/exchange/pending-answer.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import type { AcceptedSocket } from '../../sockets/direct-socket.ts';
import { type ConnectionPeer, UNUSED_GRACE_MS } from '../protocol.ts';
import { ConnectionClock } from './connection-clock.ts';
import {
	AWAITING_RESPONSE,
	BLOCKED,
	CLOSED,
	DISCARDING_BODY,
	LINGERING,
	READING_BODY,
	READING_HEAD,
	UPGRADED,
} from './connection-state.ts';
import type { EngineConnection, Http1Engine } from './engine.ts';
import { createExchangeFromHead } from './exchange-of-head.ts';
import { PARSE_INCOMPLETE, PARSE_OK } from './field-parser.ts';
import { KnownHost } from './known-host.ts';
import { LINGER_IDLE_MS, LINGER_TOTAL_MS, PIPELINE_HIGH_WATER_BYTES } from './limits.ts';
import { PendingBytes } from './pending-bytes.ts';
import { type BodyFeeder, RequestBody } from './request-body.ts';
import { ResponseWriter, type WriterOwner } from './response-writer.ts';
import { SocketInfo } from './socket-info.ts';
import { type InputSink, SocketInput } from './socket-input.ts';

const EMPTY_BUFFER = Buffer.alloc(0);

/** A client connection. The object is in use until the socket has closed. */
export class Http1Connection implements EngineConnection, ExchangeTransport, BodyFeeder, InputSink, WriterOwner {
	/** Position in the engine's set of connections. Set by `DenseSet`. */
	positionInSet = -1;
	readonly #socket: ClientSocket;
	readonly #input: SocketInput;
	readonly #engine: Http1Engine;
	readonly info: SocketInfo;
	readonly #writer: ResponseWriter;
	#state = READING_HEAD;
	#pendingBytes: PendingBytes | undefined = undefined;
	/** True if `#pendingBytes` holds the beginning of a head. */
	#isInHead = false;
	#exchange: Exchange | undefined = undefined;
	/** The body of the current request, or the one being discarded after its response. */
	#body: RequestBody | undefined = undefined;
	#minorVersion = 1;
	#keepAlive = true;
	/** True if only this connection is being drained, not its server. */
	#isRetired = false;
	#expectsContinue = false;
	/** True if the client has announced that this is its last request. */
	#isLastRequest = false;
	/** True while handlers process the exchange, before its response is written. */
	#isHandling = false;
	#requestCount = 0;
	/**
	 * The time when the connection became idle, by `performance.now()`. An unused connection counts as idle after {@link
	 * UNUSED_GRACE_MS}.
	 */
	#idleSince: number;
	/** True once the client has closed its side. */
	#hasClientEnded = false;
	/** True while received bytes are being processed. Writes are then gathered until the end. */
	#isProcessing = false;
	readonly clock: ConnectionClock;
	#lingerDeadline = Infinity;
	readonly #knownHost = new KnownHost();
	#onHandled: (() => void) | undefined = undefined;
	#onHandlerFailed: (() => void) | undefined = undefined;

	constructor(
		acceptedSocket: AcceptedSocket,
		scheme: 'http' | 'https',
		engine: Http1Engine,
		peer: ConnectionPeer | undefined,
	) {
		this.#input = new SocketInput(acceptedSocket, scheme, engine, this);
		const { socket } = this.#input;
		this.#socket = socket;
		this.#engine = engine;
		this.info = new SocketInfo(socket, scheme, peer);
		this.#writer = new ResponseWriter(socket, engine, this);
		engine.now = performance.now();
		this.#idleSince = engine.now + UNUSED_GRACE_MS;
		this.clock = new ConnectionClock(engine, socket, this);
		const { headTimeout, idleTimeout } = engine.limits;
		this.clock.setReadDeadline(Math.min(engine.deadlineIn(headTimeout), engine.deadlineIn(idleTimeout)));
		engine.add(this);
	}

	sendInterim(status: number, headers: HeaderList): void {
		// Interim responses are sent only before the response head. 100 is sent by the connection itself, and 101 is the response to
		// an upgrade.
		if (!this.#isHandling || this.#minorVersion === 0 || status < 102 || status > 199 || this.#socket.destroyed) return;
		this.#writer.addInterim(status, headers);
		if (!this.#isProcessing) this.#writer.flush();
	}

	/** Does nothing. The connection is always read during an exchange, so a client's disconnect is noticed anyway. */
	watch(): void {}

	setLimits(overrides: TransferLimits): void {
		this.clock.overrideLimits(overrides);
	}

	bodyAwaited(body: RequestBody): void {
		if (this.#body !== body) return;
		this.#engine.now = performance.now();
		if (this.#expectsContinue && body.receivedBytes === 0) {
			this.#expectsContinue = false;
			if (this.#isHandling) {
				this.#writer.addInterim(100, undefined);
				if (!this.#isProcessing) this.#writer.flush();
			}
		}
		this.clock.bodyAwaited(body.receivedBytes);
		this.#input.resume();
	}

	bodyHasRoom(): void {
		if (this.#state === READING_BODY) this.#input.resume();
	}

	onWriteBlocked(blocked: boolean): void {
		this.clock.onWriteBlocked(blocked, this.#exchange?.response.bytesSent ?? 0);
	}

	onResponseEnded(): void {
		this.#engine.now = performance.now();
		this.#finishExchange();
		this.#proceed();
	}

	drain(onlyThisConnection = false): void {
		this.#isRetired ||= onlyThisConnection;
		if (this.#state !== READING_HEAD || this.#pendingBytes !== undefined || this.#isProcessing) return;
		const { nextRequestMs, firstRequestMs } = this.#engine.drainWaits;
		if (nextRequestMs === 0) {
			this.#close();
			return;
		}
		this.#engine.now = performance.now();
		if (this.#requestCount === 0) this.clock.advanceReadDeadline(this.#engine.now + firstRequestMs);
		else this.clock.setReadDeadline(this.#engine.now + nextRequestMs);
	}

	get idleSince(): number {
		return this.#state === READING_HEAD && this.#pendingBytes === undefined && !this.#isProcessing
			? this.#idleSince
			: Infinity;
	}

	giveWay(): void {
		this.#socket.destroy();
	}

	destroy(): void {
		this.#socket.destroy();
	}

	writeTimedOut(): void {
		if (this.#state !== LINGERING) this.#engine.host.countRefusal('write_timeout');
		this.#socket.destroy();
	}

	readTimedOut(): void {
		switch (this.#state) {
			case READING_HEAD:
				if (this.#isInHead) this.#refuse(408, 'header_timeout');
				else this.#close();
				break;
			case READING_BODY:
				this.#keepAlive = false;
				this.#engine.host.countRefusal('body_timeout');
				this.#body!.fail(new HttpError(408, 'The body of the request did not come in time.'));
				break;
			case DISCARDING_BODY:
				this.#close();
				break;
			case LINGERING:
				this.#socket.destroy();
		}
	}

	onData(bytes: Buffer): void {
		switch (this.#state) {
			case READING_HEAD:
				if (this.#requestCount === 0 && !this.info.isAddressKnown) this.#socket.destroy();
				else if (this.#pendingBytes === undefined) this.#processBytes(bytes, 0);
				else if (this.#pendingBytes.add(bytes)) this.#processPending();
				break;
			case READING_BODY:
			case DISCARDING_BODY:
				this.#engine.now = performance.now();
				this.#processBytes(bytes, this.#feedBody(bytes, 0));
				break;
			case AWAITING_RESPONSE:
			case BLOCKED:
				this.#keepBytes(bytes, 0);
				if (this.#pendingBytes!.length >= PIPELINE_HIGH_WATER_BYTES) this.#input.pause();
				break;
			case LINGERING:
				if (this.#lingerDeadline === Infinity) return;
				this.clock.setReadDeadline(Math.min(this.#lingerDeadline, performance.now() + LINGER_IDLE_MS));
		}
	}

	/** Keeps received bytes until they can be processed. */
	#keepBytes(bytes: Buffer, start: number): void {
		if (this.#pendingBytes) this.#pendingBytes.add(bytes.subarray(start));
		else this.#pendingBytes = new PendingBytes(bytes, start, bytes.length);
	}

	#processPending(): void {
		const bytes = this.#pendingBytes?.bytes ?? EMPTY_BUFFER;
		this.#pendingBytes = undefined;
		this.#processBytes(bytes, 0);
	}

	/** Processes all requests in the bytes from `at` on. */
	#processBytes(bytes: Buffer, at: number): void {
		this.#isProcessing = true;
		const engine = this.#engine;
		engine.refreshLimits();
		const { parser, limits } = engine;
		const length = bytes.length;
		// Parsing strings is faster than parsing bytes. One conversion covers all heads in the converted bytes.
		let text = '';
		let textStart = at;
		while (this.#state === READING_HEAD && at < length) {
			const headLimit = Math.min(length, at + limits.maxHeadSize);
			let result = PARSE_INCOMPLETE;
			if (text !== '') result = parser.parse(text, at - textStart, Math.min(text.length, headLimit - textStart));
			if (result === PARSE_INCOMPLETE && textStart + text.length < headLimit) {
				textStart = at;
				text = bytes.toString('latin1', at, headLimit);
				result = parser.parse(text, 0, text.length);
			}
			if (result === PARSE_OK) {
				at = this.#startExchange(bytes, textStart + parser.end);
				if (this.#writer.isFull) this.#writer.flush();
				if (this.#state === READING_HEAD && this.#writer.isBlocked) this.#blockOnOutput();
			} else if (result !== PARSE_INCOMPLETE) {
				if (parser.reason === 'bad_version' && this.#handToHttp2(bytes, at)) return;
				this.#refuse(result, parser.reason);
			} else if (headLimit - at < limits.maxHeadSize) {
				if (!this.#isInHead) {
					this.#isInHead = true;
					engine.now = performance.now();
					this.clock.setReadDeadline(engine.deadlineIn(limits.headTimeout));
				}
				break;
			} else if (parser.isInRequestLine) this.#refuse(414, 'target_too_long');
			else this.#refuse(431, 'head_too_large');
		}
		if (at < length && this.#state <= BLOCKED) this.#keepBytes(bytes, at);
		this.#isProcessing = false;
		if (this.#state === UPGRADED) this.#handOver(at < length ? bytes.subarray(at) : undefined);
		else if (this.#state === READING_HEAD && (this.#hasClientEnded || (this.#shouldCloseIdle() && !this.#isInHead)))
			this.#close();
		else this.#writer.flush();
	}

	/**
	 * Checks for the HTTP/2 connection preface, which looks like a request of an unknown version. If it is present and the listener
	 * supports HTTP/2, hands the connection over and returns true.
	 */
	#handToHttp2(bytes: Buffer, at: number): boolean {
		const { takeOver } = this.#engine;
		if (takeOver === undefined || this.#requestCount > 0) return false;
		if (!/^PRI \* HTTP\/2/.test(bytes.toString('latin1', at, at + 12))) return false;
		if (this.info.tls !== undefined || !takeOver(this.#input, this.info, bytes.subarray(at))) return false;
		this.#state = CLOSED;
		this.#isProcessing = false;
		this.#engine.release(this);
		return true;
	}

	/** Called after an asynchronous event. Parses pending requests, hands over an upgraded connection, or flushes the output. */
	#proceed(): void {
		if (this.#state === READING_HEAD) this.#processPending();
		else if (this.#state === UPGRADED) this.#handOver(undefined);
		else if (this.#state !== CLOSED) this.#writer.flush();
	}

	/** Starts the exchange whose head was just parsed. Returns the index after the consumed bytes. */
	#startExchange(bytes: Buffer, start: number): number {
		const engine = this.#engine;
		const { parser, limits } = engine;
		this.#isInHead = false;
		const authority = parser.authority;
		const host = this.#knownHost.hostOf(authority, bytes.length);
		if (host === undefined) return this.#refuse(400, 'bad_host', start);
		const hostField = parser.fields.host;
		// The target's authority takes precedence over Host, but an invalid Host is rejected nevertheless (RFC 9112 §3.2).
		if (hostField && hostField !== authority && !parseAuthority(hostField)) return this.#refuse(400, 'bad_host', start);
		let body: RequestBody | undefined;
		let at = start;
		if (parser.bodyLength !== 0) {
			body = new RequestBody(this, parser.bodyLength, limits, this.#input.blockReader(engine));
			if (at < bytes.length) at = body.feed(bytes, at);
			if (at < 0) return this.#refuse(400, 'bad_chunk', start);
		}
		this.#body = body;
		this.#minorVersion = parser.minor;
		// A connection with a CONNECT is not reused: if no tunnel was opened, the client may already have sent data for it, which is
		// not HTTP.
		const isPersistent = parser.keepAlive && parser.method !== 'CONNECT';
		this.#keepAlive = isPersistent && ++this.#requestCount !== limits.maxRequestsPerConnection;
		this.#expectsContinue = parser.expectsContinue;
		this.#isLastRequest = !parser.keepAlive && body === undefined && at === bytes.length;
		this.#state = body === undefined || body.complete ? AWAITING_RESPONSE : READING_BODY;
		if (body?.isFull) this.#input.pause();
		engine.now = performance.now();
		this.clock.exchangeStarted();
		const x = createExchangeFromHead(engine, this.info, host, body, this);
		body?.countBytesFor(x);
		this.#exchange = x;
		this.#isHandling = true;
		if (this.#hasClientEnded && this.#state === READING_BODY) this.#onBodyCutShort();
		const result = this.#handle(x);
		if (result === undefined) this.#respond(x);
		else {
			this.info.readAddresses();
			this.#onHandled ??= () => this.responseReady();
			this.#onHandlerFailed ??= () => {
				this.#exchange!.isAborted = true;
				this.responseReady();
			};
			if (result instanceof PendingAnswer) result.setWaiter(this, this.#writer);
			else result.then(this.#onHandled, this.#onHandlerFailed);
		}
		return at;
	}

	/** Passes an exchange to the `ProtocolHost`, which must not throw. If it does, only this connection is lost. */
	#handle(x: Exchange): void | Promise<void> {
		try {
			return this.#engine.host.handle(x);
		} catch {
			x.isAborted = true;
			return undefined;
		}
	}

	/** Passes bytes to the body being received. Returns the index after the last byte it consumed. */
	#feedBody(bytes: Buffer, start: number): number {
		const body = this.#body!;
		const end = body.feed(bytes, start);
		if (end < 0) {
			this.#keepAlive = false;
			this.clock.setReadDeadline(Infinity);
			if (this.#state === DISCARDING_BODY) this.#close();
			return bytes.length;
		}
		const discardedTooMuch = body.discardedBytes > this.#engine.limits.maxDrain;
		if (body.complete) this.bodyCompleted();
		else if (this.#state !== DISCARDING_BODY) {
			if (body.awaited) this.clock.bodyAwaited(body.receivedBytes);
			else this.clock.bodyReceived();
			if (body.isFull || discardedTooMuch) this.#input.pause();
		} else if (discardedTooMuch) this.#close();
		return end;
	}

	bodyCompleted(): void {
		this.clock.setReadDeadline(Infinity);
		if (this.#state === DISCARDING_BODY) this.#awaitNextRequest();
		else this.#state = AWAITING_RESPONSE;
	}

	/** Called when handlers have finished an exchange asynchronously. */
	responseReady(now: number = performance.now()): void {
		this.#engine.now = now;
		this.#respond(this.#exchange!);
		this.#proceed();
	}

	#respond(x: Exchange): void {
		this.#isHandling = false;
		if (x.isAborted || this.#socket.destroyed) {
			const body = x.response.body;
			if (isStream(body)) body.cancel();
			// Tells the handlers that the client is gone, because they may hold more for it than the body, such as an upgraded upstream
			// connection.
			x.markGone();
			this.#writer.flush();
			this.#socket.destroy();
			this.#finishExchange();
			return;
		}
		const body = this.#body;
		let keepAlive = this.#keepAlive && !this.#isDraining();
		if (body !== undefined && !body.complete) {
			// We have not sent 100 (Continue), so the client may or may not send its body, and the meaning of the next bytes would be
			// ambiguous.
			if (this.#expectsContinue && body.receivedBytes === 0) keepAlive = false;
			else if (body.failed || (body.outstandingBytes ?? 0) > this.#engine.limits.maxDrain) keepAlive = false;
		}
		if (
			x.upgradeCallback &&
			(this.#minorVersion === 0 || this.#hasClientEnded || (body !== undefined && !body.complete))
		) {
			x.upgradeCallback = undefined;
			x.markGone();
		}
		const pacedBody = this.clock.limitRate(x.response.body);
		if (pacedBody !== undefined) x.response.body = pacedBody;
		const progress = this.#writer.respond(x, this.#minorVersion, keepAlive);
		if (progress === 'written') this.#finishExchange();
		else if (progress === 'upgraded') this.#state = UPGRADED;
	}

	/** Called when the response has been sent or cut short. */
	#finishExchange(): void {
		const x = this.#exchange!;
		this.#exchange = undefined;
		this.clock.exchangeEnded();
		const body = this.#body;
		if (body !== undefined && !body.complete) body.cancel();
		this.#engine.host.onExchangeFinished(x);
		if (this.#socket.destroyed) return;
		if (!this.#writer.keepAlive || !this.#keepAlive) this.#close();
		else if (body !== undefined && !body.complete) {
			if (body.discardedBytes > this.#engine.limits.maxDrain) this.#close();
			else {
				this.#state = DISCARDING_BODY;
				// One deadline covers the rest of the body. Reads do not extend it, because nothing uses this body any longer.
				this.clock.setReadDeadline(this.#engine.deadlineIn(this.#engine.limits.bodyIdleTimeout));
				this.#input.resume();
			}
		} else this.#awaitNextRequest();
	}

	/** Prepares for the next request on the connection. */
	#awaitNextRequest(): void {
		this.#state = READING_HEAD;
		this.#idleSince = this.#engine.now;
		this.#body = undefined;
		const { drainWaits: requestWaits, limits } = this.#engine;
		this.clock.setReadDeadline(this.#engine.deadlineIn(requestWaits.nextRequestMs || limits.idleTimeout));
		this.#input.resume();
	}

	#blockOnOutput(): void {
		this.#state = BLOCKED;
		this.clock.setReadDeadline(Infinity);
		this.clock.setWriteDeadline(this.#engine.deadlineIn(this.#engine.limits.writeIdleTimeout));
	}

	onDrained(): void {
		if (this.#state !== BLOCKED) return;
		this.clock.exchangeEnded();
		this.#awaitNextRequest();
		this.#proceed();
	}

	/** Rejects a request, and closes the connection. Returns `at`. */
	#refuse(status: number, reason: string, at: number = 0): number {
		this.#engine.host.countRefusal(reason);
		this.#writer.addRefusal(status);
		this.#close();
		return at;
	}

	/** Reports whether idle connections are to be closed. This is not a getter, because V8 calls private getters slowly. */
	#shouldCloseIdle(): boolean {
		return this.#isDraining() && this.#engine.drainWaits.nextRequestMs === 0;
	}

	#isDraining(): boolean {
		return this.#isRetired || this.#engine.draining || this.#engine.host.draining;
	}

	/** Closes our side, then waits briefly for the client to close its side, because a reset could discard our last response. */
	#close(): void {
		const canCloseAtOnce = this.#hasClientEnded || (this.#isLastRequest && this.#pendingBytes === undefined);
		this.#state = LINGERING;
		this.#body = undefined;
		this.#pendingBytes = undefined;
		this.clock.setReadDeadline(Infinity);
		this.#writer.flush();
		if (canCloseAtOnce && this.#input.closeIfFlushed()) return;
		this.clock.exchangeEnded();
		this.clock.setWriteDeadline(this.#engine.deadlineIn(this.#engine.limits.writeIdleTimeout));
		this.#socket.end(() => {
			if (this.#state !== LINGERING) return;
			const now = performance.now();
			this.clock.exchangeEnded();
			this.#lingerDeadline = now + LINGER_TOTAL_MS;
			this.clock.setReadDeadline(now + LINGER_IDLE_MS);
		});
		this.#input.resume();
	}

	/**
	 * Hands the byte stream to the handler of the upgrade. The stream is paused, and begins with the bytes that have been read
	 * already.
	 */
	#handOver(unreadBytes: Buffer | undefined): void {
		const pendingBytes = this.#pendingBytes?.bytes;
		this.#pendingBytes = undefined;
		this.clock.setReadDeadline(Infinity);
		this.clock.exchangeEnded();
		const stream = this.#input.handOver(pendingBytes ?? unreadBytes);
		try {
			this.#exchange!.upgradeCallback!(stream);
		} catch {
			this.#socket.destroy();
		}
	}

	onPeerEnded(): void {
		this.#hasClientEnded = true;
		switch (this.#state) {
			case READING_HEAD:
				// Some of the held bytes may not have been examined yet. A malformed head among them is rejected even if the client
				// has closed its side.
				this.#processPending();
				break;
			case DISCARDING_BODY:
				this.#close();
				break;
			case READING_BODY:
				this.#onBodyCutShort();
				break;
			case AWAITING_RESPONSE:
				this.#exchange!.markGone();
		}
	}

	/** Called when the client has closed its side in the middle of a request body. */
	#onBodyCutShort(): void {
		this.#keepAlive = false;
		this.#body!.fail(new HttpError(400, 'The request was cut short.'));
		const x = this.#exchange;
		// Marks the exchange as gone only after the body's reader has seen the error, so that a handler can still respond to the
		// client, which may still be reading.
		setImmediate(() => (this.#exchange === x ? x?.markGone() : undefined));
	}

	onClosed(): void {
		const wasUpgraded = this.#state === UPGRADED;
		this.#state = CLOSED;
		this.#engine.remove(this);
		const x = this.#exchange;
		if (x === undefined) return;
		if (wasUpgraded) {
			this.#exchange = undefined;
			this.#engine.host.onExchangeFinished(x);
			return;
		}
		this.#body?.fail(new HttpError(400, 'The request was cut short.'));
		x.markGone();
		this.#writer.onSocketClosed();
	}
}
