/** One request on an HTTP/2 connection to an upstream (RFC 9113 §8.1). */
import { createHash } from 'node:crypto';
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { MIN_ROOM_FOR_FULL_READ_BYTES } from '../../sockets/upstream-socket.ts';
import { CallClock, type TimedCall } from '../call-clock.ts';
import { type BodyOwner, ClientBody } from '../http1/client-body.ts';
import type { CallCarrier, ClientCall, ClientOptions } from '../http1/client-call.ts';
import type { ResponseReader } from './client-fields.ts';
import { H2_ERROR } from './frame-codes.ts';
import { ReceiveWindow } from './receive-window.ts';
import { StreamBody } from './request-body.ts';
import { type OutputOwner, type OutputSession, StreamOutput } from './stream-output.ts';
import { type TunnelOwner, TunnelStream } from './tunnel-stream.ts';

/**
 * Receive windows of a stream in bytes: the window announced in SETTINGS, which stays in effect for clients that can accept
 * hardly any data; the initial window for all other clients; and the maximum window for clients that keep up.
 */
export const MIN_STREAM_WINDOW = 4096;
const INITIAL_CLIENT_WINDOW = 65_535;
const MAX_CLIENT_WINDOW = 262_144;
/** Maximum milliseconds for which a request body is held back because the stream may exceed the upstream's limit. */
const MAX_HOLD_MS = 1000;
/** Maximum milliseconds for which a complete response waits for the end of its stream. */
const MAX_END_WAIT_MS = 1000;
/** Maximum interim responses to a request. Without a limit, they could keep an exchange open forever. */
const MAX_INTERIM_RESPONSES = 100;

/** What a stream needs from its connection. */
export interface StreamSession extends OutputSession {
	/** True once a complete response has been received on the connection. */
	readonly hasCarriedResponse: boolean;
	/** The upstream's initial flow-control window for a stream, in bytes. */
	readonly peerStreamWindow: number;
	/**
	 * Reports whether a stream's request body may be sent now. If it may not, `startBody` is called as soon as it may. Bodies are
	 * held back because a request whose body has been sent cannot be sent elsewhere if the upstream refuses the stream. With
	 * `force`, the body is not held back any longer.
	 */
	admitsBody(stream: ClientStream, force: boolean): boolean;
	/** Opens the stream by sending the request's head. */
	writeHead(stream: ClientStream, request: UpstreamRequest, endsStream: boolean, length: number | undefined): void;
	/** Ends the request after its body, with trailers if there are any. */
	writeEnd(stream: ClientStream, trailers: HeaderList | undefined): void;
	writeReset(stream: ClientStream, code: number): void;
	writeWindow(stream: ClientStream, increment: number): void;
	/** Called when the stream has ended on both sides. `isComplete` is true if the response was complete. */
	onStreamEnded(stream: ClientStream, isComplete: boolean): void;
}

/** One exchange on an HTTP/2 connection to an upstream. */
export class ClientStream implements CallCarrier, BodyOwner, OutputOwner, TunnelOwner, TimedCall {
	readonly id: number;
	readonly output: StreamOutput;
	readonly #session: StreamSession;
	readonly #options: ClientOptions;
	readonly #receiveWindow: ReceiveWindow;
	/** Number of bytes by which the initial receive window exceeds the one announced in SETTINGS. */
	readonly #extraWindowBytes: number;
	readonly #request: UpstreamRequest;
	#call: ClientCall | undefined;
	readonly #clock: CallClock;
	#bodySource: RecordingSource | undefined = undefined;
	#isSourceStarted = false;
	#hasRequestEnded = false;
	#isAnswered = false;
	#isBodiless = false;
	#interimCount = 0;
	#contentLength: number | undefined = undefined;
	/** True if trailers are likely to follow the content. */
	#expectsTrailers = false;
	#receivedBytes = 0;
	#body: ClientBody | undefined = undefined;
	/**
	 * The content that completes `Content-Length`, until the upstream ends the stream. To an HTTP/1.1 client, the response is
	 * complete with its last byte. If that byte were forwarded earlier, a reset or malformed trailers could not be reported to the
	 * client (RFC 9113 §8.1, §8.1.1). If the end is still missing after {@link MAX_END_WAIT_MS}, the piece is forwarded nevertheless,
	 * and the stream is canceled unless trailers are expected: the client waits to send its next request.
	 */
	#lastPiece: Buffer | undefined = undefined;
	#endWaitTimer: NodeJS.Timeout | undefined = undefined;
	/** Number of bytes of the window that are not returned to the upstream yet, because the body's reader has no room for more. */
	#withheldBytes = 0;
	#isPaused = false;
	#tunnel: TunnelStream | undefined = undefined;
	#tunnelBody: StreamBody | undefined = undefined;

	constructor(id: number, session: StreamSession, call: ClientCall, options: ClientOptions) {
		this.id = id;
		this.#session = session;
		this.#options = options;
		this.#clock = new CallClock(options, this);
		this.#request = call.request;
		this.#call = call;
		const isSlow = call.roomBytes !== undefined && call.roomBytes < MIN_ROOM_FOR_FULL_READ_BYTES;
		this.#extraWindowBytes = isSlow ? 0 : INITIAL_CLIENT_WINDOW - MIN_STREAM_WINDOW;
		this.#receiveWindow = new ReceiveWindow(MIN_STREAM_WINDOW + this.#extraWindowBytes, MAX_CLIENT_WINDOW);
		this.output = new StreamOutput(id, session.peerStreamWindow, session, this);
		call.carrier = this;
	}

	/** Sends the request. */
	start(): void {
		this.#sendRequest();
		if (this.#extraWindowBytes > 0) this.#session.writeWindow(this, this.#extraWindowBytes);
	}

	#sendRequest(): void {
		const request = this.#request;
		const { body, method, upgrade } = request;
		if (upgrade !== undefined) {
			this.#session.writeHead(this, request, false, undefined);
			this.#clock.requestSent(this.#isAnswered);
			return;
		}
		if (isStream(body) && body.length !== 0) {
			this.#session.writeHead(this, request, false, body.length);
			this.#bodySource = new RecordingSource(body);
			const expectsContinue = request.headers.get('expect')?.toLowerCase() === '100-continue';
			if (this.#options.continueTimeout > 0 && expectsContinue) {
				this.#clock.waitForHead(this.#options.continueTimeout, () => this.#sendBody());
			} else this.#sendBody();
			return;
		}
		const bytes = isStream(body) || body === null ? undefined : typeof body === 'string' ? Buffer.from(body) : body;
		if (bytes === undefined || bytes.length === 0) {
			const declaresLength = method === 'POST' || method === 'PUT' || method === 'PATCH';
			this.#hasRequestEnded = true;
			this.#session.writeHead(this, request, true, declaresLength ? 0 : undefined);
			this.#clock.requestSent(this.#isAnswered);
			this.#call?.onRequestSent?.();
			return;
		}
		this.#session.writeHead(this, request, false, bytes.length);
		this.#clock.bodyStarted();
		this.output.sendComplete(bytes);
	}

	cancel(call: ClientCall): void {
		if (this.#call === call) this.#abort('the request was canceled');
	}

	/**
	 * Fails the exchange because the connection has ended. `isUnsent` means that the upstream has not processed the request, and
	 * will not process it.
	 */
	connectionLost(error: Error, isUnsent: boolean): void {
		this.#fail(new UpstreamError('response', error.message, error, isUnsent), true);
	}

	/** Called by the session when the body may be sent. */
	startBody(): void {
		if (this.#call !== undefined) this.#sendBody();
	}

	/** Sends the request body, if the session admits it. With `force`, the session always admits it. */
	#sendBody(force = false): void {
		this.#clock.headReceived();
		const source = this.#bodySource;
		if (!source || this.#isSourceStarted) return;
		if (!this.#session.admitsBody(this, force)) {
			// The body must not wait forever if the upstream announces no limit, or accepts more streams than it
			// announces.
			this.#clock.waitForHead(this.#maxHoldMs, () => this.#sendBody(true));
			return;
		}
		this.#isSourceStarted = true;
		this.#clock.bodyStarted();
		this.output.sendSource(source, source.length);
	}

	get #maxHoldMs(): number {
		const { responseHeaderTimeout, writeTimeout } = this.#options;
		const limitsMs = [MAX_HOLD_MS, responseHeaderTimeout, writeTimeout];
		return Math.min(...limitsMs.filter(time => time > 0));
	}

	// Called by the output that sends the request body (OutputOwner).

	bodyBytesSent(): void {
		this.#clock.bodyWritten();
	}

	bodyEnded(source: BodySource | undefined, isStreamEnded: boolean): void {
		if (this.#call === undefined) return;
		this.#hasRequestEnded = true;
		if (!isStreamEnded) this.#session.writeEnd(this, source?.trailers);
		this.#clock.requestSent(this.#isAnswered);
		this.#call.onRequestSent?.();
		this.#limitEndWait();
	}

	bodyBroken(): void {
		const error = this.#bodySource?.failure ?? new Error('the request body is not as long as its Content-Length');
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	sendingBlocked(): void {}

	endsSeparately(source: BodySource | undefined): boolean {
		return (source?.trailers?.size ?? 0) > 0;
	}

	/** Implements TimedCall: false while reading is paused because the body's consumer has no room. */
	get isReading(): boolean {
		return !this.#isPaused;
	}

	/**
	 * Implements TimedCall: reports whether flow control or a full socket prevents sending. Called when nothing has been written
	 * for the length of the timeout.
	 */
	checkStalled(): boolean {
		return this.output.sendWindow <= 0 || this.#session.sendWindow <= 0 || this.#session.frames.full;
	}

	/** Implements TimedCall: fails the exchange. */
	onTimeout(reason: string): void {
		this.#fail(new UpstreamError('timeout', `the upstream ${reason}`));
	}

	/** Called when a header block has been received. */
	handleFields(reader: ResponseReader, endsStream: boolean): void {
		const call = this.#call;
		if (!call) return;
		this.#clock.bytesReceived();
		if (reader.mistake !== undefined) {
			this.#failMalformed(reader.mistake);
			return;
		}
		const { status } = reader;
		if (this.#isAnswered) {
			if (!endsStream || status !== 0) this.#failMalformed('a second response head');
			else this.#endExchange(reader.trailers());
			return;
		}
		if (status === 0 || (status < 200 && endsStream) || status === 101) {
			this.#failMalformed('the response has no valid status');
		} else if (status >= 200)
			this.#handleResponse(call, status, new HeaderList(reader.items), reader.contentLength, endsStream);
		else if (++this.#interimCount > MAX_INTERIM_RESPONSES) {
			this.#fail(new UpstreamError('response', 'too many interim responses'));
		} else if (status === 100 && this.#bodySource && !this.#isSourceStarted) this.#sendBody(true);
		else call.onInterimResponse(status, new HeaderList(reader.items));
	}

	#handleResponse(
		call: ClientCall,
		status: number,
		headers: HeaderList,
		length: number | undefined,
		endsStream: boolean,
	): void {
		this.#clock.headReceived();
		const { upgrade, method } = this.#request;
		if (upgrade !== undefined && status < 300 && !endsStream) {
			this.#isAnswered = true;
			this.#clock.stop();
			headers.add('Upgrade', upgrade);
			const webSocketKey = this.#request.headers.get('sec-websocket-key');
			if (webSocketKey !== undefined) headers.add('Sec-WebSocket-Accept', webSocketAccept(webSocketKey));
			this.#tunnelBody = new StreamBody(
				{ bodyAwaited: () => {}, bodyConsumed: bytes => this.#returnWindow(bytes, true) },
				undefined,
				undefined,
			);
			this.#tunnel = new TunnelStream(this, this.#tunnelBody);
			this.output.openTunnel();
			call.onResponse({
				status: 101,
				reason: undefined,
				headers,
				body: null,
				protocol: 'HTTP/2.0',
				upgradedStream: this.#tunnel,
			});
			return;
		}
		this.#isBodiless = method === 'HEAD' || status === 204 || status === 304;
		if (endsStream && !this.#isBodiless && length !== undefined && length > 0) {
			this.#failMalformed('the body is shorter than its Content-Length');
			return;
		}
		this.#isAnswered = true;
		if (this.#isBodiless && length !== undefined && status !== 204) headers.add('Content-Length', String(length));
		if (endsStream || this.#isBodiless) {
			call.onResponse(createResponse(status, headers, null));
			if (endsStream) this.#endExchange(undefined);
			else this.#limitEndWait();
			return;
		}
		this.#contentLength = length;
		this.#expectsTrailers =
			headers.has('trailer') || headers.get('content-type')?.startsWith('application/grpc') === true;
		const body = new ClientBody(this, length, this.#options.pieceMemory, call.roomBytes ?? Infinity);
		this.#body = body;
		call.onResponse(createResponse(status, headers, body));
	}

	/** Called when DATA has been received. Returns false if it exceeds the flow-control window. */
	handleData(bytes: Buffer, start: number, end: number, frameBytes: number, endsStream: boolean): boolean {
		if (!this.#receiveWindow.consume(frameBytes)) return false;
		this.#clock.bytesReceived();
		const contentBytes = end - start;
		if (this.#call === undefined) return true;
		if (!this.#isAnswered) {
			this.#failMalformed('content came before the response head');
			return true;
		}
		if (this.#tunnelBody) {
			if (frameBytes > contentBytes) this.#returnWindow(frameBytes - contentBytes, true);
			if (contentBytes > 0) {
				this.#tunnelBody.feed(bytes, start, end);
				this.#tunnelBody.deliver();
			}
			if (endsStream) this.#tunnelBody.end();
			return true;
		}
		const body = this.#body;
		this.#receivedBytes += contentBytes;
		if (
			contentBytes > 0 &&
			(!body || (this.#contentLength !== undefined && this.#receivedBytes > this.#contentLength))
		) {
			this.#failMalformed('the body is longer than its Content-Length');
			return true;
		}
		if (body && contentBytes > 0) {
			const piece = this.#options.pieceMemory.copy(bytes, start, end);
			if (!endsStream && this.#receivedBytes === this.#contentLength) {
				// Leaves `#isPaused` as it is, so that the read timeout applies to the end of the stream while the body's consumer waits.
				this.#lastPiece = piece;
				// No more content is allowed, but while the window is exhausted, many upstreams (with nghttp2) do not even send the empty
				// frame that ends the stream.
				this.#returnWindow(frameBytes, false);
				this.#endWaitTimer = setTimeout(() => this.#onEndMissing(), MAX_END_WAIT_MS);
				return true;
			}
			this.#isPaused = !body.push(piece);
			if (this.#isPaused) this.#withheldBytes += frameBytes;
			else if (!endsStream) this.#returnWindow(frameBytes, body.readsAhead);
		} else if (!endsStream) this.#returnWindow(frameBytes, true);
		if (endsStream) this.#endExchange(undefined);
		return true;
	}

	/** Implements BodyOwner: the consumer has room again. */
	resumeBody(): void {
		this.#isPaused = false;
		const withheldBytes = this.#withheldBytes;
		this.#withheldBytes = 0;
		this.#returnWindow(withheldBytes, false);
	}

	/** Implements BodyOwner: the consumer does not want the rest of the body. */
	cancelBody(): void {
		this.#abort('the body was canceled');
	}

	#returnWindow(byteCount: number, keepsUp: boolean): void {
		if (byteCount === 0 || this.#call === undefined) return;
		const increment = this.#receiveWindow.release(byteCount, keepsUp);
		if (increment > 0) this.#session.writeWindow(this, increment);
	}

	/** Called when the upstream has reset the stream. */
	handleReset(code: number): void {
		const call = this.#call;
		// If the response was complete, the reset only means that the rest of the request is not wanted (RFC 9113 §8.1).
		if (!call) return;
		if (code === H2_ERROR.none && this.#hasCompleteContent) {
			this.#endExchange(undefined, true);
			return;
		}
		const isUnsent = code === H2_ERROR.refusedStream;
		this.#fail(new UpstreamError('response', `the stream was ended with code ${code}`, undefined, isUnsent), true);
	}

	// Called by the stream of an upgraded connection (TunnelOwner).

	writeToTunnel(piece: Uint8Array, onWritten: (error?: Error) => void): void {
		this.output.write(piece, onWritten);
	}

	endTunnel(): void {
		this.output.end();
	}

	onTunnelClosed(error: Error | null): void {
		if (this.#call === undefined) return;
		if (!error && this.#hasRequestEnded && this.#tunnelBody!.complete) this.#endExchange(undefined);
		else this.#abort('the request was canceled');
	}

	/**
	 * True if only the end of the stream is missing. Some upstreams reset the stream without an error instead of ending it, such as
	 * Node if the content has exhausted the window.
	 */
	get #hasCompleteContent(): boolean {
		return this.#isAnswered && (this.#isBodiless || this.#receivedBytes === this.#contentLength);
	}

	/**
	 * Ends the exchange because the response is complete.
	 * @param isStreamClosed True if the upstream has reset the stream.
	 */
	#endExchange(trailers: HeaderList | undefined, isStreamClosed = false): void {
		const call = this.#call;
		if (!call) return;
		const body = this.#body;
		if (body && this.#contentLength !== undefined && this.#receivedBytes < this.#contentLength) {
			this.#failMalformed('the body is shorter than its Content-Length');
			return;
		}
		this.#releaseCall();
		// The part of the request that has not been sent is dropped.
		if (!this.#hasRequestEnded && !isStreamClosed) this.#session.writeReset(this, H2_ERROR.cancel);
		this.#body = undefined;
		if (this.#lastPiece) body?.push(this.#lastPiece);
		body?.end(trailers && trailers.size > 0 ? trailers : undefined);
		this.#session.onStreamEnded(this, true);
		call.onReleased();
	}

	/**
	 * Cancels the stream if the upstream does not end it soon after the request and the head of a response without a body. Such an
	 * upstream would otherwise occupy a stream and a slot of each limit of requests until a timeout. A reset at once would seem hostile
	 * to upstreams that end the stream in a separate frame, because they limit the resets of a connection.
	 */
	#limitEndWait(): void {
		if (this.#call === undefined || !this.#isAnswered || !this.#isBodiless || !this.#hasRequestEnded) return;
		this.#endWaitTimer = setTimeout(() => {
			this.#session.writeReset(this, H2_ERROR.cancel);
			this.#endExchange(undefined, true);
		}, MAX_END_WAIT_MS);
	}

	/** Called when the end of the stream has not followed complete content. Without trailers to wait for, the response is complete. */
	#onEndMissing(): void {
		if (!this.#expectsTrailers) {
			this.#session.writeReset(this, H2_ERROR.cancel);
			this.#endExchange(undefined, true);
			return;
		}
		const piece = this.#lastPiece;
		this.#lastPiece = undefined;
		if (piece) this.#body?.push(piece);
	}

	/** Fails the exchange because the response violates HTTP/2. A malformed response must not be forwarded (RFC 9113 §8.1.1). */
	#failMalformed(message: string): void {
		this.#fail(new UpstreamError('response', message), false, false, H2_ERROR.protocol);
	}

	#abort(message: string): void {
		this.#fail(new UpstreamError('response', message), false, true);
	}

	/**
	 * Fails the exchange.
	 * @param isStreamClosed True if the upstream knows already that the stream has ended.
	 * @param isUpstreamBlameless True if the failure is not counted against the upstream.
	 * @param code The error code sent to the upstream.
	 */
	#fail(
		error: UpstreamError,
		isStreamClosed = false,
		isUpstreamBlameless = false,
		code: number = H2_ERROR.cancel,
	): void {
		const call = this.#call;
		if (!call) return;
		const isBodyUnsent = !this.#isSourceStarted && !this.#isAnswered;
		this.#releaseCall();
		if (!isStreamClosed) this.#session.writeReset(this, code);
		const { hasCarriedResponse: isConnectionProven } = this.#session;
		this.#session.onStreamEnded(this, false);
		if (!this.#isAnswered) {
			call.onFailure(
				error,
				isBodyUnsent && isStreamClosed && (isConnectionProven || error.isUnsent) && error.phase === 'response',
			);
			return;
		}
		this.#tunnel?.destroy(error);
		this.#body?.fail(error);
		call.onReleased(isUpstreamBlameless || this.#tunnel ? undefined : error);
	}

	/** Releases the call: its callbacks are not invoked any more. */
	#releaseCall(): void {
		this.#call = undefined;
		this.#clock.stop();
		clearTimeout(this.#endWaitTimer);
		if (!this.#hasRequestEnded) this.output.cancel();
	}
}

/** Wraps a request body and records why it could not be read. */
class RecordingSource implements BodySource {
	failure: unknown = undefined;
	readonly #source: BodySource;

	constructor(source: BodySource) {
		this.#source = source;
	}

	get length(): number | undefined {
		return this.#source.length;
	}

	get trailers(): HeaderList | undefined {
		return this.#source.trailers;
	}

	onIdle(): void {
		this.#source.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		try {
			const piece = this.#source.pull(maxBytes);
			return piece instanceof Promise ? piece.catch(this.#recordFailure) : piece;
		} catch (error) {
			return this.#recordFailure(error);
		}
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
	}

	readonly #recordFailure = (error: unknown): never => {
		this.failure = error;
		throw error;
	};
}

function createResponse(status: number, headers: HeaderList, body: UpstreamResponse['body']): UpstreamResponse {
	return { status, reason: undefined, headers, body, protocol: 'HTTP/2.0', upgradedStream: undefined };
}

/** Returns the `Sec-WebSocket-Accept` value for a WebSocket key (RFC 6455 §4.2.2). */
function webSocketAccept(key: string): string {
	return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}
