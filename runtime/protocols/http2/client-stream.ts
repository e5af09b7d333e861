/** One request on an HTTP/2 connection to an upstream (RFC 9113 §8.1). */
import { createHash } from 'node:crypto';
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { FULL_READ_BYTES } from '../../sockets/upstream-socket.ts';
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
 * Receive windows of a stream in bytes. The first is announced in SETTINGS and is kept for a client that can accept next to
 * nothing. The second is the initial window for any other client, the third its maximum once the client keeps up.
 */
export const MIN_STREAM_WINDOW = 4096;
const CLIENT_STREAM_WINDOW = 65_535;
const MAX_CLIENT_STREAM_WINDOW = 262_144;
/** Maximum milliseconds that a request body is held back because the upstream's stream limit may be exceeded. */
const MAX_HOLD = 1000;
/** Maximum interim responses to a request. Without a limit, they could keep an exchange open forever. */
const MAX_INTERIM = 100;

/** The connection, as its streams see it. */
export interface StreamSession extends OutputSession {
	/** True once the connection has carried a response. */
	readonly proven: boolean;
	/** The upstream's initial flow-control window for a stream, in bytes. */
	readonly peerWindow: number;
	/**
	 * Reports whether a stream's request body may be sent now. If not, `startBody` is called when it may. Bodies are held back
	 * because a request whose body has been sent cannot be sent elsewhere if the upstream refuses the stream. With `anyway`, the body
	 * is not held back any longer.
	 */
	admitsBody(stream: ClientStream, anyway: boolean): boolean;
	/** Opens the stream by sending the request's head. */
	writeHead(stream: ClientStream, request: UpstreamRequest, ends: boolean, length: number | undefined): void;
	/** Ends the request after its body, with trailers if there are any. */
	writeEnd(stream: ClientStream, trailers: HeaderList | undefined): void;
	writeReset(stream: ClientStream, code: number): void;
	writeWindow(stream: ClientStream, increment: number): void;
	/** Called when the stream has ended on both sides. `whole` is true if the response was complete. */
	streamEnded(stream: ClientStream, whole: boolean): void;
}

/** One exchange on an HTTP/2 connection. */
export class ClientStream implements CallCarrier, BodyOwner, OutputOwner, TunnelOwner, TimedCall {
	readonly id: number;
	readonly output: StreamOutput;
	readonly #session: StreamSession;
	readonly #options: ClientOptions;
	readonly #window: ReceiveWindow;
	/** Number of bytes by which the initial receive window exceeds the one announced in SETTINGS. */
	readonly #extra: number;
	readonly #request: UpstreamRequest;
	#call: ClientCall | undefined;
	readonly #clock: CallClock;
	#source: RecordingSource | undefined = undefined;
	#sourceStarted = false;
	#requestEnded = false;
	#answered = false;
	#bodiless = false;
	#interim = 0;
	#length: number | undefined = undefined;
	#received = 0;
	#body: ClientBody | undefined = undefined;
	/** Number of bytes of window that are not returned to the upstream, because the body's reader has no room for them yet. */
	#withheld = 0;
	#paused = false;
	#tunnel: TunnelStream | undefined = undefined;
	#tunnelBody: StreamBody | undefined = undefined;

	constructor(id: number, session: StreamSession, call: ClientCall, options: ClientOptions) {
		this.id = id;
		this.#session = session;
		this.#options = options;
		this.#clock = new CallClock(options, this);
		this.#request = call.request;
		this.#call = call;
		const isSlow = call.room !== undefined && call.room < FULL_READ_BYTES;
		this.#extra = isSlow ? 0 : CLIENT_STREAM_WINDOW - MIN_STREAM_WINDOW;
		this.#window = new ReceiveWindow(MIN_STREAM_WINDOW + this.#extra, MAX_CLIENT_STREAM_WINDOW);
		this.output = new StreamOutput(id, session.peerWindow, session, this);
		call.carrier = this;
	}

	/** Sends the request. */
	begin(): void {
		this.#send();
		if (this.#extra > 0) this.#session.writeWindow(this, this.#extra);
	}

	#send(): void {
		const request = this.#request;
		const { body, method, upgrade } = request;
		if (upgrade !== undefined) {
			this.#session.writeHead(this, request, false, undefined);
			this.#clock.requestSent(this.#answered);
			return;
		}
		if (isStream(body) && body.length !== 0) {
			this.#session.writeHead(this, request, false, body.length);
			this.#source = new RecordingSource(body);
			const expects = request.headers.get('expect')?.toLowerCase() === '100-continue';
			if (this.#options.continueTimeout > 0 && expects) {
				this.#clock.waitForHead(this.#options.continueTimeout, () => this.#sendBody());
			} else this.#sendBody();
			return;
		}
		const bytes = isStream(body) || body === null ? undefined : typeof body === 'string' ? Buffer.from(body) : body;
		if (bytes === undefined || bytes.length === 0) {
			const saysNone = method === 'POST' || method === 'PUT' || method === 'PATCH';
			this.#requestEnded = true;
			this.#session.writeHead(this, request, true, saysNone ? 0 : undefined);
			this.#clock.requestSent(this.#answered);
			return;
		}
		this.#session.writeHead(this, request, false, bytes.length);
		this.output.sendWhole(bytes);
	}

	cancel(call: ClientCall): void {
		if (this.#call === call) this.#giveUp('the request was canceled');
	}

	/**
	 * Fails the exchange because the connection has ended. `unsent` means that the upstream has not processed the request and will
	 * not do so.
	 */
	connectionLost(error: Error, unsent: boolean): void {
		this.#fail(new UpstreamError('response', error.message, error, unsent), true);
	}

	/** Called by the session when the body may be sent. */
	startBody(): void {
		if (this.#call !== undefined) this.#sendBody();
	}

	/** Sends the request body if the session admits it. With `anyway`, the session must admit it. */
	#sendBody(anyway = false): void {
		this.#clock.headReceived();
		const source = this.#source;
		if (!source || this.#sourceStarted) return;
		if (!this.#session.admitsBody(this, anyway)) {
			// If the upstream announces no limit, or its limit is below what it accepts, the body must not wait forever.
			this.#clock.waitForHead(this.#longestHold, () => this.#sendBody(true));
			return;
		}
		this.#sourceStarted = true;
		this.#clock.bodyStarted();
		this.output.sendSource(source, source.length);
	}

	get #longestHold(): number {
		const { responseHeaderTimeout, writeTimeout } = this.#options;
		const times = [MAX_HOLD, responseHeaderTimeout, writeTimeout];
		return Math.min(...times.filter(time => time > 0));
	}

	// Implementation of OutputOwner, for the request body.

	sent(): void {
		this.#clock.bodyWritten();
	}

	bodyEnded(source: BodySource | undefined, ended: boolean): void {
		if (this.#call === undefined) return;
		this.#requestEnded = true;
		if (!ended) this.#session.writeEnd(this, source?.trailers);
		this.#clock.requestSent(this.#answered);
	}

	broken(): void {
		const error = this.#source?.failure ?? new Error('the request body is not as long as its Content-Length');
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	blocked(): void {}

	endsApart(source: BodySource | undefined): boolean {
		return (source?.trailers?.size ?? 0) > 0;
	}

	/** Implements TimedCall. */
	get reading(): boolean {
		return !this.#paused;
	}

	/** Implements TimedCall. Called when nothing has been written for the length of the timeout. */
	checkStalled(): boolean {
		return this.output.window <= 0 || this.#session.sendWindow <= 0 || this.#session.frames.full;
	}

	/** Implements TimedCall. */
	timedOut(what: string): void {
		this.#fail(new UpstreamError('timeout', `the upstream ${what}`));
	}

	/** Called when a header block has been received. */
	fields(reader: ResponseReader, ends: boolean): void {
		const call = this.#call;
		if (!call) return;
		this.#clock.bytesReceived();
		if (reader.mistake !== undefined) {
			this.#malformed(reader.mistake);
			return;
		}
		const { status } = reader;
		if (this.#answered) {
			if (!ends || status !== 0) this.#malformed('a second response head');
			else this.#end(reader.trailers());
			return;
		}
		if (status === 0 || (status < 200 && ends) || status === 101) {
			this.#malformed('the response has no valid status');
		} else if (status >= 200) this.#answer(call, status, new HeaderList(reader.items), reader.length, ends);
		else if (++this.#interim > MAX_INTERIM) {
			this.#fail(new UpstreamError('response', 'too many interim responses'));
		} else if (status === 100 && this.#source && !this.#sourceStarted) this.#sendBody(true);
		else call.interimReceived(status, new HeaderList(reader.items));
	}

	#answer(call: ClientCall, status: number, headers: HeaderList, length: number | undefined, ends: boolean): void {
		this.#clock.headReceived();
		const { upgrade, method } = this.#request;
		if (upgrade !== undefined && status < 300 && !ends) {
			this.#answered = true;
			this.#clock.stop();
			headers.add('Upgrade', upgrade);
			const key = this.#request.headers.get('sec-websocket-key');
			if (key !== undefined) headers.add('Sec-WebSocket-Accept', acceptOf(key));
			this.#tunnelBody = new StreamBody(
				{ bodyAwaited: () => {}, bodyTaken: bytes => this.#release(bytes, true) },
				undefined,
				undefined,
			);
			this.#tunnel = new TunnelStream(this, this.#tunnelBody);
			this.output.openTunnel();
			call.answered({
				status: 101,
				reason: undefined,
				headers,
				body: null,
				protocol: 'HTTP/2.0',
				upgradedStream: this.#tunnel,
			});
			return;
		}
		this.#bodiless = method === 'HEAD' || status === 204 || status === 304;
		if (ends && !this.#bodiless && length !== undefined && length > 0) {
			this.#malformed('the body is shorter than its Content-Length');
			return;
		}
		this.#answered = true;
		if (this.#bodiless && length !== undefined && status !== 204) headers.add('Content-Length', String(length));
		if (ends || this.#bodiless) {
			call.answered(responseOf(status, headers, null));
			if (ends) this.#end(undefined);
			return;
		}
		this.#length = length;
		const body = new ClientBody(this, length, this.#options.pieces, call.room ?? Infinity);
		this.#body = body;
		call.answered(responseOf(status, headers, body));
	}

	/** Called when DATA has been received. Returns false if it exceeds the flow-control window. */
	data(bytes: Buffer, start: number, end: number, whole: number, ends: boolean): boolean {
		if (!this.#window.take(whole)) return false;
		this.#clock.bytesReceived();
		const size = end - start;
		if (this.#call === undefined) return true;
		if (!this.#answered) {
			this.#malformed('content came before the response head');
			return true;
		}
		if (this.#tunnelBody) {
			if (whole > size) this.#release(whole - size, true);
			if (size > 0) {
				this.#tunnelBody.feed(bytes, start, end);
				this.#tunnelBody.deliver();
			}
			if (ends) this.#tunnelBody.end();
			return true;
		}
		const body = this.#body;
		this.#received += size;
		if (size > 0 && (!body || (this.#length !== undefined && this.#received > this.#length))) {
			this.#malformed('the body is longer than its Content-Length');
			return true;
		}
		if (body && size > 0) {
			this.#paused = !body.push(this.#options.pieces.copy(bytes, start, end));
			if (this.#paused) this.#withheld += whole;
			else if (!ends) this.#release(whole, body.readsAhead);
		} else if (!ends) this.#release(whole, true);
		if (ends) this.#end(undefined);
		return true;
	}

	/** Implements BodyOwner. */
	resumeBody(): void {
		this.#paused = false;
		const bytes = this.#withheld;
		this.#withheld = 0;
		this.#release(bytes, false);
	}

	/** Implements BodyOwner. */
	cancelBody(): void {
		this.#giveUp('the body was canceled');
	}

	#release(bytes: number, keepsUp: boolean): void {
		if (bytes === 0 || this.#call === undefined) return;
		const increment = this.#window.release(bytes, keepsUp);
		if (increment > 0) this.#session.writeWindow(this, increment);
	}

	/** Called when the upstream has reset the stream. */
	reset(code: number): void {
		const call = this.#call;
		// If the response was complete, the reset only means that the rest of the request is not wanted (RFC 9113 §8.1).
		if (!call) return;
		const unsent = code === H2_ERROR.refusedStream;
		this.#fail(new UpstreamError('response', `the stream was ended with code ${code}`, undefined, unsent), true);
	}

	// TunnelOwner.

	tunnelWrite(piece: Uint8Array, taken: (error?: Error) => void): void {
		this.output.write(piece, taken);
	}

	tunnelEnd(): void {
		this.output.end();
	}

	tunnelClosed(error: Error | null): void {
		if (this.#call === undefined) return;
		if (!error && this.#requestEnded && this.#tunnelBody!.complete) this.#end(undefined);
		else this.#giveUp('the request was canceled');
	}

	/** Ends the exchange because the response is complete. */
	#end(trailers: HeaderList | undefined): void {
		const call = this.#call;
		if (!call) return;
		const body = this.#body;
		if (body && this.#length !== undefined && this.#received < this.#length) {
			this.#malformed('the body is shorter than its Content-Length');
			return;
		}
		this.#finish();
		// The rest of the request, if it has not been sent, is dropped.
		if (!this.#requestEnded) this.#session.writeReset(this, H2_ERROR.cancel);
		this.#body = undefined;
		body?.end(trailers && trailers.size > 0 ? trailers : undefined);
		this.#session.streamEnded(this, true);
		call.released();
	}

	/** Fails the exchange because the response violates HTTP/2. A malformed response must not be forwarded (RFC 9113 §8.1.1). */
	#malformed(message: string): void {
		this.#fail(new UpstreamError('response', message), false, false, H2_ERROR.protocol);
	}

	#giveUp(message: string): void {
		this.#fail(new UpstreamError('response', message), false, true);
	}

	/**
	 * Fails the exchange.
	 * @param closed True if the upstream knows already that the stream has ended.
	 * @param ours True if the upstream is not to blame.
	 * @param code The error code sent to the upstream.
	 */
	#fail(error: UpstreamError, closed = false, ours = false, code: number = H2_ERROR.cancel): void {
		const call = this.#call;
		if (!call) return;
		const untouched = !this.#sourceStarted && !this.#answered;
		this.#finish();
		if (!closed) this.#session.writeReset(this, code);
		const { proven } = this.#session;
		this.#session.streamEnded(this, false);
		if (!this.#answered) {
			call.failed(error, untouched && closed && (proven || error.unsent) && error.phase === 'response');
			return;
		}
		this.#tunnel?.destroy(error);
		this.#body?.fail(error);
		call.released(ours || this.#tunnel ? undefined : error);
	}

	/** Releases the call, so that no more of its callbacks are invoked. */
	#finish(): void {
		this.#call = undefined;
		this.#clock.stop();
		if (!this.#requestEnded) this.output.cancel();
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

	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null> {
		try {
			const piece = this.#source.pull(most);
			return piece instanceof Promise ? piece.catch(this.#failed) : piece;
		} catch (error) {
			return this.#failed(error);
		}
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
	}

	readonly #failed = (error: unknown): never => {
		this.failure = error;
		throw error;
	};
}

function responseOf(status: number, headers: HeaderList, body: UpstreamResponse['body']): UpstreamResponse {
	return { status, reason: undefined, headers, body, protocol: 'HTTP/2.0', upgradedStream: undefined };
}

/** Returns the `Sec-WebSocket-Accept` value for a WebSocket key (RFC 6455 §4.2.2). */
function acceptOf(key: string): string {
	return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}
