/** One stream: a request, its exchange, and its response (RFC 9113 §5.1, §8.1). */
import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { type Body, type BodySource, bodyLength, isStream } from '../../../compiler/exchange/body.ts';
import {
	type ConnectionInfo,
	Exchange,
	type ExchangeTransport,
	type ReceivedRequestLine,
	Request,
	type TransferLimits,
} from '../../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { SERVER_NAME } from '../http1/response-head.ts';
import { TransferPace } from '../http1/transfer-pace.ts';
import { type PacedBody, paceBody } from '../paced-body.ts';
import { TextSource } from '../text-source.ts';
import { H2_ERROR } from './frame-codes.ts';
import type { Http2Engine } from './http2-engine.ts';
import {
	INITIAL_STREAM_WINDOW,
	LONG_TEXT_CHARS,
	MAX_HOLD_BACK_MS,
	MAX_STREAM_WINDOW,
	RESET_DELAY_MS,
} from './limits.ts';
import { ReceiveWindow } from './receive-window.ts';
import { type BodyFeeder, StreamBody } from './request-body.ts';
import type { RequestHead } from './request-fields.ts';
import { HANDLER_CONTENT_LENGTH, NO_CONTENT_LENGTH } from './response-writer.ts';
import { type OutputOwner, type OutputSession, StreamOutput } from './stream-output.ts';
import { type TunnelOwner, TunnelStream } from './tunnel-stream.ts';

/** The error codes with which streams of a protocol are reset. */
export interface ResetCodes {
	/** Tells the client that the rest of its request is not needed, which is not an error. */
	readonly none: number;
	readonly cancel: number;
	readonly internal: number;
	/** Tells the client that the connection behind its CONNECT tunnel was closed abnormally. */
	readonly connect: number;
}

export const HTTP2_RESET_CODES: ResetCodes = H2_ERROR;

/**
 * What a stream needs from its connection, which uses HTTP/2 or HTTP/3: streams of both protocols differ only in their frames.
 */
export interface StreamSession extends OutputSession {
	readonly engine: Pick<Http2Engine, 'host' | 'limits' | 'now' | 'deadlineIn' | 'pieceMemory'>;
	readonly protocol: 'HTTP/2.0' | 'HTTP/3.0';
	readonly resetCodes: ResetCodes;
	readonly info: ConnectionInfo;
	readonly scheme: 'http' | 'https';
	/** Writes a response head. `length` is the length of the body in bytes, `NO_CONTENT_LENGTH` or `HANDLER_CONTENT_LENGTH`. */
	writeHead(streamId: number, status: number, headers: HeaderList, length: number, endsStream: boolean): void;
	/** Ends a stream with trailers, or without any if the list is empty. */
	writeEnd(streamId: number, trailers: readonly HeaderList[]): void;
	/**
	 * Called when bytes of received DATA are no longer held. Opens the receive windows of the connection and of the stream. `stream`
	 * is undefined if the client cannot send on the stream any more.
	 */
	onDataConsumed(stream: Http2Stream | undefined, byteCount: number, keepsUp: boolean): void;
	/** Called when both sides of a stream have ended. */
	onStreamEnded(stream: Http2Stream): void;
	resetStream(stream: Http2Stream, code: number): void;
	/**
	 * Called when the exchange of a stream has ended. The stream itself may have ended before. `isComplete` is true if the response
	 * was written completely.
	 */
	onExchangeEnded(isComplete: boolean): void;
	/** Sends pending data. Must be called after a write, unless received bytes are being processed: then it is called afterwards. */
	sendPending(): void;
}

/** One stream. The object is in use until the stream is closed and its exchange has ended. */
export class Http2Stream implements ExchangeTransport, BodyFeeder, OutputOwner, TunnelOwner {
	readonly id: number;
	readonly output: StreamOutput;
	readonly receiveWindow: ReceiveWindow = new ReceiveWindow(INITIAL_STREAM_WINDOW, MAX_STREAM_WINDOW);
	/** True while the client has not closed its side, so that it can send more. */
	isRemoteOpen: boolean;
	/** True once the stream has been reset by either side, or its connection has closed. */
	isGone = false;
	body: StreamBody | undefined = undefined;
	readonly #session: StreamSession;
	#exchange: Exchange | undefined = undefined;
	/** True while handlers process the exchange, before its response is sent. */
	#isHandling = false;
	/** True once our side has ended. */
	#isLocalEnded = false;
	#expectsContinue = false;
	/** Once the response has been sent, the client is told to stop if more than this many bytes of its request have arrived. */
	#maxDrainBytes = 0;
	#isResponseHeldBack = false;
	/** The trailers of a response whose body has been sent, but whose end is held back. */
	#heldTrailers: readonly HeaderList[] | undefined = undefined;
	#responseStatus = 0;
	/** The deadline, by `performance.now()`, for sending a held-back response; 0 if none has been held back. */
	#holdDeadline = 0;
	/** The `:protocol` of an extended CONNECT, '' for a plain CONNECT, undefined for other methods. */
	#connectProtocol: string | undefined = undefined;
	#tunnel: TunnelStream | undefined = undefined;
	#readDeadline = Infinity;
	#writeDeadline = Infinity;
	/** Measures how fast the client sends the request body. Created when a handler first waits for the body. */
	#readPace: TransferPace | undefined = undefined;
	#writePace: TransferPace | undefined = undefined;
	#limitOverrides: TransferLimits | undefined = undefined;
	/** The body of the response, if its rate is limited. */
	#pacedBody: PacedBody | undefined = undefined;
	readonly #startedAt: number;

	constructor(session: StreamSession, id: number, sendWindow: number, isRemoteOpen: boolean) {
		this.id = id;
		this.#session = session;
		this.isRemoteOpen = isRemoteOpen;
		this.#startedAt = session.engine.now;
		this.output = new StreamOutput(id, sendWindow, session, this);
	}

	/** Creates the body if the request has one, because its content may arrive before the exchange starts. */
	expectBody(contentLength: number): void {
		if (!this.isRemoteOpen || this.body !== undefined) return;
		this.body = new StreamBody(this, contentLength < 0 ? undefined : contentLength, this.#session.engine.pieceMemory);
	}

	/** Starts the exchange of a request whose head has been received. */
	startExchange(head: RequestHead): void {
		const session = this.#session;
		const { engine } = session;
		let { method } = head;
		const { items } = head;
		this.expectBody(head.contentLength);
		let { body } = this;
		if (method === 'CONNECT') {
			this.#connectProtocol = head.protocol ?? '';
			body = undefined;
			if (head.protocol !== undefined) {
				// Handlers see the same upgrade request as in HTTP/1.1, so that rules and upstreams need not support
				// a second form (RFC 8441 §5).
				method = 'GET';
				items.push('connection', 'Upgrade', 'upgrade', head.protocol);
				if (head.protocol === 'websocket') items.push('sec-websocket-key', randomBytes(16).toString('base64'));
			}
		}
		const requestLine: ReceivedRequestLine = {
			method,
			path: head.path,
			query: head.query,
			authority: head.authority,
		};
		const request = new Request(requestLine, session.scheme, head.host, new HeaderList(items), body ?? null);
		const x = new Exchange(session.protocol, session.info, requestLine, request, this, engine.now);
		x.response.headers.add('Server', SERVER_NAME);
		this.#exchange = x;
		this.#expectsContinue = head.expectsContinue;
		this.#isHandling = true;
		const handlerPromise = this.#handle(x);
		if (handlerPromise === undefined) {
			this.#respond(x);
			return;
		}
		handlerPromise.then(
			() => this.#onHandled(x),
			() => {
				x.isAborted = true;
				this.#onHandled(x);
			},
		);
	}

	/** Passes an exchange to the host. The host must not throw. If it does, only this stream is lost, not the process. */
	#handle(x: Exchange): void | Promise<void> {
		try {
			return this.#session.engine.host.handle(x);
		} catch {
			x.isAborted = true;
			return undefined;
		}
	}

	/** Rejects a request before it becomes an exchange. */
	refuse(status: number): void {
		const headers = new HeaderList(['Server', SERVER_NAME]);
		this.#session.writeHead(this.id, status, headers, 0, true);
		this.#endLocal();
	}

	sendInterim(status: number, headers: HeaderList): void {
		if (!this.#isHandling || this.isGone || status < 102 || status > 199) return;
		this.#session.writeHead(this.id, status, headers, NO_CONTENT_LENGTH, false);
		this.#session.sendPending();
	}

	writableBytes(): number {
		return this.output.roomBytes;
	}

	/** Does nothing, because a client's disconnect is noticed anyway: it resets the stream. */
	watch(): void {}

	bodyAwaited(): void {
		if (this.isGone) return;
		this.#readPace ??= this.#startPace(this.#readLimits(), this.#session.engine.limits.bodyTimeout);
		this.#readDeadline = this.#readPace.startWait(performance.now(), this.body!.receivedBytes);
		if (!this.#expectsContinue || this.body!.receivedBytes > 0) return;
		this.#expectsContinue = false;
		if (!this.#isHandling) return;
		this.#session.writeHead(this.id, 100, new HeaderList(), NO_CONTENT_LENGTH, false);
		this.#session.sendPending();
	}

	bodyConsumed(bytes: number, keepsUp: boolean): void {
		this.#session.onDataConsumed(this.isGone || !this.isRemoteOpen ? undefined : this, bytes, keepsUp);
	}

	/** Called when content has been received: `bytes[start, end)`. */
	handleData(bytes: Buffer, start: number, end: number): void {
		const body = this.body!;
		if (this.#isLocalEnded && !this.#tunnel) {
			body.feed(bytes, start, end);
			if (body.receivedBytes > this.#maxDrainBytes) this.#stopClientLater();
			return;
		}
		body.feed(bytes, start, end);
		if (this.#exchange) this.#exchange.bytesReceived = body.receivedBytes;
		if (this.#isResponseHeldBack) {
			this.#readDeadline = Math.min(this.#holdDeadline, this.#session.engine.deadlineIn(RESET_DELAY_MS));
			return;
		}
		this.#readPace?.endWait(this.#session.engine.now);
		this.#readDeadline = Infinity;
	}

	setLimits(overrides: TransferLimits): void {
		this.#limitOverrides = this.#limitOverrides === undefined ? overrides : { ...this.#limitOverrides, ...overrides };
		if (this.#readPace) this.#readPace.setLimits(...this.#readLimits());
		if (this.#writePace) this.#writePace.setLimits(...this.#writeLimits());
	}

	#readLimits(): [idle: number, rate: number] {
		const { limits } = this.#session.engine;
		return [
			this.#limitOverrides?.readTimeout ?? limits.bodyIdleTimeout,
			this.#limitOverrides?.readRate ?? limits.bodyRate,
		];
	}

	#writeLimits(): [idle: number, rate: number] {
		const { limits } = this.#session.engine;
		return [
			this.#limitOverrides?.writeTimeout ?? limits.writeIdleTimeout,
			this.#limitOverrides?.writeRate ?? limits.writeRate,
		];
	}

	/**
	 * Starts to measure one direction of the exchange. `totalTimeoutMs` is the time limit from the end of the request's head; 0
	 * means no limit.
	 */
	#startPace([idleTimeoutMs, minBytesPerSecond]: [idle: number, rate: number], totalTimeoutMs: number): TransferPace {
		const pace = new TransferPace();
		pace.start(idleTimeoutMs, minBytesPerSecond, totalTimeoutMs === 0 ? Infinity : this.#startedAt + totalTimeoutMs);
		return pace;
	}

	/** True if the response has been sent and the rest of the request is being discarded. */
	get isDraining(): boolean {
		return this.#isLocalEnded && this.isRemoteOpen && this.#tunnel === undefined;
	}

	/** Called when the client has ended its side. Returns false if the length of its content differs from the `Content-Length`. */
	endRemote(trailers: HeaderList | undefined): boolean {
		const { body } = this;
		if (body !== undefined) {
			if (body.length !== undefined && body.length !== body.receivedBytes && this.#connectProtocol === undefined)
				return false;
			body.trailers = trailers;
			this.isRemoteOpen = false;
			this.#readDeadline = Infinity;
			body.end();
		} else this.isRemoteOpen = false;
		if (this.#isLocalEnded) this.#session.onStreamEnded(this);
		if (this.#isResponseHeldBack) this.#sendHeldBack();
		return true;
	}

	/** Called when the stream has been reset, or its connection has closed. */
	onReset(): void {
		if (this.isGone) return;
		this.isGone = true;
		this.#readDeadline = Infinity;
		this.#writeDeadline = Infinity;
		this.body?.fail(new HttpError(400, 'The request was cut short.'));
		const x = this.#exchange;
		if (x === undefined) {
			// The exchange has not started, so nothing else releases the content received so far.
			this.body?.cancel();
			return;
		}
		if (this.#tunnel) {
			this.#tunnel.destroy(new Error('The client has left.'));
			return;
		}
		x.markGone();
		this.output.cancel();
		if (!this.#isHandling) this.#finishExchange(false);
	}

	/** Handles expired deadlines. */
	checkDeadlines(now: number): void {
		this.output.releaseIdleMemory();
		if (now >= this.#writeDeadline) {
			this.#writeDeadline = Infinity;
			this.#session.engine.host.countRefusal('write_timeout');
			this.#session.resetStream(this, this.#session.resetCodes.cancel);
		} else if (now >= this.#readDeadline) {
			this.#readDeadline = Infinity;
			if (this.#isLocalEnded && !this.#tunnel) {
				this.#stopClient();
				return;
			}
			if (this.#isResponseHeldBack) {
				this.#sendHeldBack();
				return;
			}
			this.#session.engine.host.countRefusal('body_timeout');
			this.body!.fail(new HttpError(408, 'The body of the request did not come in time.'));
		}
	}

	#onHandled(x: Exchange): void {
		this.#session.engine.now = performance.now();
		this.#respond(x);
		this.#session.sendPending();
	}

	#respond(x: Exchange): void {
		this.#isHandling = false;
		const session = this.#session;
		const { response } = x;
		if (x.isAborted || this.isGone) {
			if (isStream(response.body)) response.body.cancel();
			// Handlers may hold more resources for this client than the body, such as an upgraded upstream connection.
			x.markGone();
			if (this.isGone) this.#finishExchange(false);
			else session.resetStream(this, session.resetCodes.internal);
			return;
		}
		let status = response.status === 0 ? 200 : response.status;
		let body: Body = response.body;
		const isSuccess = status >= 200 && status < 300;
		if (
			x.upgradeCallback &&
			(this.#connectProtocol === '' ? isSuccess : this.#connectProtocol !== undefined && status === 101)
		) {
			if (isStream(body)) body.cancel();
			this.#openTunnel(x);
			return;
		}
		if (x.upgradeCallback) {
			x.upgradeCallback = undefined;
			x.markGone();
		}
		// A 2xx would tell the client that its tunnel is open. Invalid statuses become 500.
		const refusesTunnel = this.#connectProtocol !== undefined && isSuccess;
		if (refusesTunnel || !(status >= 200 && status <= 999) || !Number.isInteger(status)) {
			if (isStream(body)) body.cancel();
			body = null;
			status = refusesTunnel ? (this.#connectProtocol === '' ? 405 : 501) : 500;
			response.status = status;
		}
		this.#responseStatus = status;
		if (!isStream(body) && this.#mayHoldBack(status)) {
			this.#holdBack();
			return;
		}
		this.#isResponseHeldBack = false;
		const length = bodyLength(body);
		const isBodiless = status === 204 || status === 304;
		if (isBodiless || x.received.method === 'HEAD') {
			// A response to HEAD has the length that a GET response would have. A 304 has a length only if a handler knows it.
			const declaredLength =
				status === 204
					? NO_CONTENT_LENGTH
					: isBodiless || body === null
						? HANDLER_CONTENT_LENGTH
						: (length ?? HANDLER_CONTENT_LENGTH);
			session.writeHead(this.id, status, response.headers, declaredLength, true);
			if (isStream(body)) body.cancel();
			this.#endLocal();
			return;
		}
		if (status === 205 && body !== null) {
			if (isStream(body)) body.cancel();
			body = null;
		}
		const isEmpty = !isStream(body) && (body === null || length === 0);
		const endsStream = isEmpty && response.trailers === undefined;
		session.writeHead(this.id, status, response.headers, body === null ? 0 : (length ?? NO_CONTENT_LENGTH), endsStream);
		if (endsStream) this.#endLocal();
		else if (isEmpty) this.bodyEnded(undefined, false);
		else this.#sendBody(body!, length);
	}

	#sendBody(body: NonNullable<Body>, length: number | undefined): void {
		if (this.#limitOverrides !== undefined) this.#pacedBody = paceBody(body, this.#limitOverrides);
		if (this.#pacedBody !== undefined) this.output.sendSource(this.#pacedBody, length);
		else if (isStream(body)) this.output.sendSource(body, length);
		else if (typeof body !== 'string') this.output.sendComplete(body);
		else if (length! <= Math.min(LONG_TEXT_CHARS, this.output.roomBytes))
			this.output.sendComplete(Buffer.from(body, 'utf8'));
		else this.output.sendSource(new TextSource(body, length!), length);
	}

	/**
	 * Holds back a successful response, or the end of a streamed one, until the rest of its request has been
	 * received. A client that has the whole response may stop reading frames, including the window updates that it
	 * needs to send the rest of its request (curl before version 8 does). A client that sends nothing gets its
	 * response soon. A client that did not announce the length of its request gets the response at once, because it
	 * may wait for the response before it sends more.
	 */
	#holdBack(): void {
		const { engine } = this.#session;
		this.#isResponseHeldBack = true;
		this.#holdDeadline = engine.deadlineIn(MAX_HOLD_BACK_MS);
		this.#readDeadline = engine.deadlineIn(RESET_DELAY_MS);
		this.body!.cancel();
	}

	/** Reports whether a response may wait for the rest of its request. A response waits at most once. */
	#mayHoldBack(status: number): boolean {
		if (this.#holdDeadline !== 0 || !this.isRemoteOpen || status >= 300 || this.#tunnel !== undefined) return false;
		const { body } = this;
		return body?.length !== undefined && !(this.#expectsContinue && body.receivedBytes === 0);
	}

	/** Sends the response, or the end of a response, that was held back: the rest of its request has arrived or is not coming. */
	#sendHeldBack(): void {
		const trailers = this.#heldTrailers;
		if (trailers === undefined) {
			this.#respond(this.#exchange!);
			return;
		}
		this.#heldTrailers = undefined;
		this.#isResponseHeldBack = false;
		this.#session.writeEnd(this.id, trailers);
		this.#endLocal();
	}

	#openTunnel(x: Exchange): void {
		const { headers } = x.response;
		headers.delete('sec-websocket-accept');
		this.#session.writeHead(this.id, 200, headers, NO_CONTENT_LENGTH, false);
		this.body ??= new StreamBody(this, undefined, undefined);
		this.body.keepPieces();
		if (!this.isRemoteOpen) this.body.end();
		this.output.openTunnel();
		const tunnel = new TunnelStream(this, this.body);
		this.#tunnel = tunnel;
		this.#session.sendPending();
		try {
			x.upgradeCallback!(tunnel);
		} catch {
			tunnel.destroy();
		}
	}

	writeToTunnel(piece: Uint8Array, onWritten: (error?: Error) => void): void {
		this.output.write(piece, onWritten);
		this.#session.sendPending();
	}

	endTunnel(): void {
		this.output.end();
		this.#session.sendPending();
	}

	onTunnelClosed(error: Error | null): void {
		this.output.cancel();
		if (!this.isGone && (this.isRemoteOpen || !this.#isLocalEnded)) {
			this.isGone = true;
			// CONNECT_ERROR is for plain CONNECT. An extended CONNECT is canceled (RFC 8441 §5, RFC 9220 §3).
			const { resetCodes } = this.#session;
			this.#session.resetStream(this, error && this.#connectProtocol === '' ? resetCodes.connect : resetCodes.cancel);
			this.#session.sendPending();
		}
		this.#finishExchange(error === null);
	}

	bodyBytesSent(bytes: number): void {
		this.#exchange!.response.bytesSent += bytes;
	}

	sendingBlocked(isBlocked: boolean): void {
		// Tunnels have no write timeout, because only their users know how long a tunnel may be inactive.
		if (this.#tunnel) return;
		const now = performance.now();
		if (isBlocked) {
			const { writeTimeout } = this.#session.engine.limits;
			this.#writePace ??= this.#startPace(this.#writeLimits(), writeTimeout);
			if (this.#pacedBody !== undefined && writeTimeout !== 0) {
				// Time during which the rate limit delayed the response is not counted against the client.
				this.#writePace.setEndDeadline(this.#startedAt + writeTimeout + this.#pacedBody.waitedMs(now));
			}
			this.#writeDeadline = this.#writePace.startWait(now, this.#exchange?.response.bytesSent ?? 0);
		} else {
			this.#writePace?.endWait(now);
			this.#writeDeadline = Infinity;
		}
	}

	bodyBroken(failure: string): void {
		if (this.#exchange) this.#exchange.response.failure = failure;
		this.#session.resetStream(this, this.#session.resetCodes.internal);
		this.#session.sendPending();
	}

	endsSeparately(source: BodySource | undefined): boolean {
		return (
			this.#exchange!.response.trailers !== undefined ||
			source?.trailers !== undefined ||
			this.#mayHoldBack(this.#responseStatus)
		);
	}

	bodyEnded(source: BodySource | undefined, isStreamEnded: boolean): void {
		if (!isStreamEnded) {
			const trailers: HeaderList[] = [];
			const handlerTrailers = this.#tunnel ? undefined : this.#exchange!.response.trailers;
			if (handlerTrailers) trailers.push(handlerTrailers);
			if (source?.trailers) trailers.push(source.trailers);
			if (this.#mayHoldBack(this.#responseStatus)) {
				this.#heldTrailers = trailers;
				this.#holdBack();
				return;
			}
			this.#session.writeEnd(this.id, trailers);
		}
		this.#endLocal();
	}

	/** Called when our side has ended. */
	#endLocal(): void {
		this.#isLocalEnded = true;
		this.#writeDeadline = Infinity;
		if (!this.isRemoteOpen) this.#session.onStreamEnded(this);
		if (this.#tunnel) return;
		if (this.isRemoteOpen) this.#drainRequest();
		if (this.#exchange !== undefined) this.#finishExchange(true);
	}

	/**
	 * Handles the rest of a request whose response has been sent. It is received and discarded for a while rather than stopped at
	 * once: many clients take a reset for a failed request, whatever its code (RFC 9113 §8.1), and curl before version 8 then
	 * discards the part of the response that it has not read.
	 */
	#drainRequest(): void {
		const body = this.body;
		if (body === undefined || this.#connectProtocol !== undefined) {
			this.#stopClient();
			return;
		}
		const { engine } = this.#session;
		const { maxDrain, bodyIdleTimeout } = engine.limits;
		const outstandingBytes = (body.length ?? body.receivedBytes) - body.receivedBytes;
		this.#maxDrainBytes = body.receivedBytes + maxDrain;
		if ((this.#expectsContinue && body.receivedBytes === 0) || outstandingBytes > maxDrain) this.#stopClientLater();
		else this.#readDeadline = engine.deadlineIn(bodyIdleTimeout);
	}

	#stopClientLater(): void {
		this.#maxDrainBytes = Infinity;
		this.#readDeadline = this.#session.engine.deadlineIn(RESET_DELAY_MS);
	}

	/** Tells the client to stop sending, with a code that means no error. */
	#stopClient(): void {
		this.isGone = true;
		this.#session.resetStream(this, this.#session.resetCodes.none);
		this.body?.fail(new HttpError(400, 'The request was cut short.'));
	}

	#finishExchange(isComplete: boolean): void {
		const x = this.#exchange;
		if (x === undefined) return;
		this.#exchange = undefined;
		this.body?.cancel();
		const { engine } = this.#session;
		engine.host.onExchangeFinished(x);
		this.#session.onExchangeEnded(isComplete);
	}
}
