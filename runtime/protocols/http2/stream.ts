/** One stream: a request, its exchange, and its response (RFC 9113 §5.1, §8.1). */
import { randomBytes } from 'node:crypto';
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
import { H2_ERROR } from './frame-codes.ts';
import type { Http2Engine } from './http2-engine.ts';
import { INITIAL_STREAM_WINDOW, LONG_TEXT_CHARS, MAX_DRAIN_MS, MAX_STREAM_WINDOW, RESET_DELAY_MS } from './limits.ts';
import { ReceiveWindow } from './receive-window.ts';
import { type BodyFeeder, StreamBody } from './request-body.ts';
import type { RequestHead } from './request-fields.ts';
import { HANDLER_LENGTH, NO_LENGTH } from './response-writer.ts';
import { type OutputOwner, type OutputSession, StreamOutput } from './stream-output.ts';
import { TextSource } from './text-source.ts';
import { type TunnelOwner, TunnelStream } from './tunnel-stream.ts';

/** The error codes with which a protocol resets streams. */
export interface ResetCodes {
	/** Not an error: says that the rest of the request is not needed. */
	readonly none: number;
	readonly cancel: number;
	readonly internal: number;
	/** The connection of a CONNECT tunnel was closed abnormally. */
	readonly connect: number;
}

/** The error codes of HTTP/2. */
export const HTTP2_RESET_CODES: ResetCodes = H2_ERROR;

/**
 * The connection, as its streams see it. It is an HTTP/2 or an HTTP/3 connection, because streams of both protocols differ only
 * in their frames.
 */
export interface StreamSession extends OutputSession {
	readonly engine: Pick<Http2Engine, 'host' | 'limits' | 'now' | 'after' | 'pieceMemory'>;
	readonly protocol: 'HTTP/2.0' | 'HTTP/3.0';
	readonly codes: ResetCodes;
	readonly info: ConnectionInfo;
	readonly scheme: 'http' | 'https';
	/** Writes a response head. `length` is the bytes of the body, `NO_LENGTH` or `HANDLER_LENGTH`. */
	writeHead(stream: number, status: number, headers: HeaderList, length: number, ends: boolean): void;
	/** Ends a stream with trailers, or without any if the list is empty. */
	writeEnd(stream: number, trailers: readonly HeaderList[]): void;
	/**
	 * Called when bytes of received DATA are no longer held. Opens the receive windows: that of the connection, and that of the stream
	 * unless it is undefined because the client cannot send on it any more.
	 */
	dataTaken(stream: Http2Stream | undefined, bytes: number, keepsUp: boolean): void;
	/** Called when both sides of a stream have ended. */
	streamEnded(stream: Http2Stream): void;
	/** Resets a stream. */
	resetStream(stream: Http2Stream, code: number): void;
	/**
	 * Called when the exchange of a stream has ended, possibly after the stream itself. `whole` is true if the response was written
	 * completely.
	 */
	exchangeEnded(whole: boolean): void;
	/** Must be called after writing something while no received bytes are being processed. Sends it. */
	settle(): void;
}

/** A stream that is not closed, or whose exchange has not ended. */
export class Http2Stream implements ExchangeTransport, BodyFeeder, OutputOwner, TunnelOwner {
	readonly id: number;
	readonly output: StreamOutput;
	readonly window: ReceiveWindow = new ReceiveWindow(INITIAL_STREAM_WINDOW, MAX_STREAM_WINDOW);
	/** True while the client has not closed its side, so that it can send more. */
	remoteOpen: boolean;
	/** True once the stream has been reset by either side, or its connection has closed. */
	gone = false;
	body: StreamBody | undefined = undefined;
	readonly #session: StreamSession;
	#exchange: Exchange | undefined = undefined;
	/** True while handlers have the exchange and no byte of its response has been sent. */
	#handling = false;
	/** True once our side has ended. */
	#localEnded = false;
	#expectsContinue = false;
	/** After the response has been sent: the client is told to stop once it has sent more than this many bytes of its request. */
	#drainEnd = 0;
	#holdsBack = false;
	/** The trailers of a response of which everything but the end has been sent. */
	#heldEnd: readonly HeaderList[] | undefined = undefined;
	#status = 0;
	/** When a response that waits for the rest of its request must be sent at the latest; 0 if none has been held back. */
	#holdEnd = 0;
	/** The `:protocol` of an extended CONNECT, '' for a plain CONNECT, undefined for other methods. */
	#connect: string | undefined = undefined;
	#tunnel: TunnelStream | undefined = undefined;
	#readDeadline = Infinity;
	#writeDeadline = Infinity;
	/** Created when we first wait for the client. */
	#readPace: TransferPace | undefined = undefined;
	#writePace: TransferPace | undefined = undefined;
	#bounds: TransferLimits | undefined = undefined;
	/** The body of the response, if its rate is limited. */
	#pacedBody: PacedBody | undefined = undefined;
	readonly #startedAt: number;

	constructor(session: StreamSession, id: number, sendWindow: number, remoteOpen: boolean) {
		this.id = id;
		this.#session = session;
		this.remoteOpen = remoteOpen;
		this.#startedAt = session.engine.now;
		this.output = new StreamOutput(id, sendWindow, session, this);
	}

	/** Creates the body of a request that has one, because its content may arrive before the exchange starts. */
	expectBody(contentLength: number): void {
		if (!this.remoteOpen || this.body !== undefined) return;
		this.body = new StreamBody(this, contentLength < 0 ? undefined : contentLength, this.#session.engine.pieceMemory);
	}

	/** Starts the exchange of a request whose head has been received. */
	begin(fields: RequestHead): void {
		const session = this.#session;
		const { engine } = session;
		let { method } = fields;
		const { items } = fields;
		this.expectBody(fields.contentLength);
		let { body } = this;
		if (method === 'CONNECT') {
			this.#connect = fields.protocol ?? '';
			body = undefined;
			if (fields.protocol !== undefined) {
				// Handlers see the same upgrade request as in HTTP/1.1, so that rules and upstreams need not support another form
				// (RFC 8441 §5).
				method = 'GET';
				items.push('connection', 'Upgrade', 'upgrade', fields.protocol);
				if (fields.protocol === 'websocket') items.push('sec-websocket-key', randomBytes(16).toString('base64'));
			}
		}
		const received: ReceivedRequestLine = {
			method,
			path: fields.path,
			query: fields.query,
			authority: fields.authority,
		};
		const request = new Request(received, session.scheme, fields.host, new HeaderList(items), body ?? null);
		const x = new Exchange(session.protocol, session.info, received, request, this, engine.now);
		x.response.headers.add('Server', SERVER_NAME);
		this.#exchange = x;
		this.#expectsContinue = fields.expectsContinue;
		this.#handling = true;
		const pending = this.#handle(x);
		if (pending === undefined) {
			this.#respond(x);
			return;
		}
		pending.then(
			() => this.#handledLater(x),
			() => {
				x.aborted = true;
				this.#handledLater(x);
			},
		);
	}

	/** Passes an exchange to the host. The host must not throw. If it does, only this stream is lost, not the process. */
	#handle(x: Exchange): void | Promise<void> {
		try {
			return this.#session.engine.host.handle(x);
		} catch {
			x.aborted = true;
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
		if (!this.#handling || this.gone || status < 102 || status > 199) return;
		this.#session.writeHead(this.id, status, headers, NO_LENGTH, false);
		this.#session.settle();
	}

	writableBytes(): number {
		return this.output.room;
	}

	/** Does nothing: a client that disconnects resets its streams, which is always noticed. */
	watch(): void {}

	bodyAwaited(): void {
		if (this.gone) return;
		this.#readPace ??= this.#pace(this.#readBounds(), this.#session.engine.limits.bodyTimeout);
		this.#readDeadline = this.#readPace.startWait(performance.now(), this.body!.received);
		if (!this.#expectsContinue || this.body!.received > 0) return;
		this.#expectsContinue = false;
		if (!this.#handling) return;
		this.#session.writeHead(this.id, 100, new HeaderList(), NO_LENGTH, false);
		this.#session.settle();
	}

	bodyTaken(bytes: number, keepsUp: boolean): void {
		this.#session.dataTaken(this.gone || !this.remoteOpen ? undefined : this, bytes, keepsUp);
	}

	/** Called when content has been received: `bytes[start, end)`. */
	data(bytes: Buffer, start: number, end: number): void {
		const body = this.body!;
		if (this.#localEnded && !this.#tunnel) {
			body.feed(bytes, start, end);
			if (body.received > this.#drainEnd) this.#stopLater();
			return;
		}
		body.feed(bytes, start, end);
		if (this.#exchange) this.#exchange.bytesReceived = body.received;
		if (this.#holdsBack) {
			this.#readDeadline = Math.min(this.#holdEnd, this.#session.engine.after(RESET_DELAY_MS));
			return;
		}
		this.#readPace?.endWait(this.#session.engine.now);
		this.#readDeadline = Infinity;
	}

	setLimits(bounds: TransferLimits): void {
		this.#bounds = { ...this.#bounds, ...bounds };
		if (this.#readPace) this.#readPace.setLimits(...this.#readBounds());
		if (this.#writePace) this.#writePace.setLimits(...this.#writeBounds());
	}

	#readBounds(): [idle: number, rate: number] {
		const { limits } = this.#session.engine;
		return [this.#bounds?.readTimeout ?? limits.bodyIdleTimeout, this.#bounds?.readRate ?? limits.bodyRate];
	}

	#writeBounds(): [idle: number, rate: number] {
		const { limits } = this.#session.engine;
		return [this.#bounds?.writeTimeout ?? limits.writeIdleTimeout, this.#bounds?.writeRate ?? limits.writeRate];
	}

	/** Creates the pace of one direction. `whole` is the maximum milliseconds from the end of the head to the end of the transfer; 0 for none. */
	#pace([idle, rate]: [idle: number, rate: number], whole: number): TransferPace {
		const pace = new TransferPace();
		pace.start(idle, rate, whole === 0 ? Infinity : this.#startedAt + whole);
		return pace;
	}

	/** True if the response has been sent and the rest of the request is being discarded. */
	get draining(): boolean {
		return this.#localEnded && this.remoteOpen && this.#tunnel === undefined;
	}

	/** Called when the client has ended its side. Returns false if the length of its content differs from the `Content-Length`. */
	endRemote(trailers: HeaderList | undefined): boolean {
		const { body } = this;
		if (body !== undefined) {
			if (body.length !== undefined && body.length !== body.received && this.#connect === undefined) return false;
			body.trailers = trailers;
			this.remoteOpen = false;
			this.#readDeadline = Infinity;
			body.end();
		} else this.remoteOpen = false;
		if (this.#localEnded) this.#session.streamEnded(this);
		if (this.#holdsBack) this.#release();
		return true;
	}

	/** Called when the stream has been reset, or its connection has closed. */
	reset(): void {
		if (this.gone) return;
		this.gone = true;
		this.#readDeadline = Infinity;
		this.#writeDeadline = Infinity;
		this.body?.fail(new HttpError(400, 'The request was cut short.'));
		const x = this.#exchange;
		if (x === undefined) return;
		if (this.#tunnel) {
			this.#tunnel.destroy(new Error('The client has left.'));
			return;
		}
		x.markGone();
		this.output.cancel();
		if (!this.#handling) this.#finish(false);
	}

	/** Handles expired deadlines. */
	check(now: number): void {
		this.output.rest();
		if (now >= this.#writeDeadline) {
			this.#writeDeadline = Infinity;
			this.#session.engine.host.refused('write_timeout');
			this.#session.resetStream(this, this.#session.codes.cancel);
		} else if (now >= this.#readDeadline) {
			this.#readDeadline = Infinity;
			if (this.#localEnded && !this.#tunnel) {
				this.#stop();
				return;
			}
			if (this.#holdsBack) {
				this.#release();
				return;
			}
			this.#session.engine.host.refused('body_timeout');
			this.body!.fail(new HttpError(408, 'The body of the request did not come in time.'));
		}
	}

	#handledLater(x: Exchange): void {
		this.#session.engine.now = performance.now();
		this.#respond(x);
		this.#session.settle();
	}

	#respond(x: Exchange): void {
		this.#handling = false;
		const session = this.#session;
		const { response } = x;
		if (x.aborted || this.gone) {
			if (isStream(response.body)) response.body.cancel();
			// Handlers may hold more resources for this client than the body, such as an upgraded upstream connection.
			x.markGone();
			if (this.gone) this.#finish(false);
			else session.resetStream(this, session.codes.internal);
			return;
		}
		let status = response.status === 0 ? 200 : response.status;
		let body: Body = response.body;
		const successful = status >= 200 && status < 300;
		if (x.upgradeCallback && (this.#connect === '' ? successful : this.#connect !== undefined && status === 101)) {
			if (isStream(body)) body.cancel();
			this.#openTunnel(x);
			return;
		}
		if (x.upgradeCallback) {
			x.upgradeCallback = undefined;
			x.markGone();
		}
		// A 2xx would tell the client that its tunnel is open. An invalid status has no meaning at all.
		const refusesTunnel = this.#connect !== undefined && successful;
		if (refusesTunnel || !(status >= 200 && status <= 999) || !Number.isInteger(status)) {
			if (isStream(body)) body.cancel();
			body = null;
			status = refusesTunnel ? (this.#connect === '' ? 405 : 501) : 500;
			response.status = status;
		}
		this.#status = status;
		if (!isStream(body) && this.#mayHold(status)) {
			this.#hold();
			return;
		}
		this.#holdsBack = false;
		const length = bodyLength(body);
		const bodiless = status === 204 || status === 304;
		if (bodiless || x.received.method === 'HEAD') {
			// A response to HEAD has the length that a GET response would have. A 304 has a length only if a handler knows it.
			const declared =
				status === 204 ? NO_LENGTH : bodiless || body === null ? HANDLER_LENGTH : (length ?? HANDLER_LENGTH);
			session.writeHead(this.id, status, response.headers, declared, true);
			if (isStream(body)) body.cancel();
			this.#endLocal();
			return;
		}
		if (status === 205 && body !== null) {
			if (isStream(body)) body.cancel();
			body = null;
		}
		const empty = !isStream(body) && (body === null || length === 0);
		const ends = empty && response.trailers === undefined;
		session.writeHead(this.id, status, response.headers, body === null ? 0 : (length ?? NO_LENGTH), ends);
		if (ends) this.#endLocal();
		else if (empty) this.bodyEnded(undefined, false);
		else this.#sendBody(body!, length);
	}

	#sendBody(body: NonNullable<Body>, length: number | undefined): void {
		if (this.#bounds !== undefined) this.#pacedBody = paceBody(body, this.#bounds);
		if (this.#pacedBody !== undefined) this.output.sendSource(this.#pacedBody, length);
		else if (isStream(body)) this.output.sendSource(body, length);
		else if (typeof body !== 'string') this.output.sendWhole(body);
		else if (length! <= Math.min(LONG_TEXT_CHARS, this.output.room)) this.output.sendWhole(Buffer.from(body, 'utf8'));
		else this.output.sendSource(new TextSource(body, length!), length);
	}

	/**
	 * Holds back a successful response, or the end of a streamed one, until the rest of its request has been received. A client that
	 * has the whole response may stop reading frames, including the window updates that it needs to send the rest of its request
	 * (curl before version 8 does). A client that sends nothing gets its response soon. A client that did not announce the length of
	 * its request gets the response at once, because it may be waiting for it.
	 */
	#hold(): void {
		const { engine } = this.#session;
		this.#holdsBack = true;
		this.#holdEnd = engine.after(MAX_DRAIN_MS);
		this.#readDeadline = engine.after(RESET_DELAY_MS);
		this.body!.cancel();
	}

	/** Reports whether a response may wait for the rest of its request. It waits at most once. */
	#mayHold(status: number): boolean {
		if (this.#holdEnd !== 0 || !this.remoteOpen || status >= 300 || this.#tunnel !== undefined) return false;
		const { body } = this;
		return body?.length !== undefined && !(this.#expectsContinue && body.received === 0);
	}

	/** Sends the response that was held back, or its end, because the rest of its request has arrived or is not coming. */
	#release(): void {
		const trailers = this.#heldEnd;
		if (trailers === undefined) {
			this.#respond(this.#exchange!);
			return;
		}
		this.#heldEnd = undefined;
		this.#holdsBack = false;
		this.#session.writeEnd(this.id, trailers);
		this.#endLocal();
	}

	#openTunnel(x: Exchange): void {
		const { headers } = x.response;
		headers.delete('sec-websocket-accept');
		this.#session.writeHead(this.id, 200, headers, NO_LENGTH, false);
		this.body ??= new StreamBody(this, undefined, undefined);
		this.body.keepPieces();
		if (!this.remoteOpen) this.body.end();
		this.output.openTunnel();
		const tunnel = new TunnelStream(this, this.body);
		this.#tunnel = tunnel;
		this.#session.settle();
		try {
			x.upgradeCallback!(tunnel);
		} catch {
			tunnel.destroy();
		}
	}

	tunnelWrite(piece: Uint8Array, taken: (error?: Error) => void): void {
		this.output.write(piece, taken);
		this.#session.settle();
	}

	tunnelEnd(): void {
		this.output.end();
		this.#session.settle();
	}

	tunnelClosed(error: Error | null): void {
		this.output.cancel();
		if (!this.gone && (this.remoteOpen || !this.#localEnded)) {
			this.gone = true;
			// CONNECT_ERROR is for plain CONNECT. An extended CONNECT is canceled (RFC 8441 §5, RFC 9220 §3).
			const { codes } = this.#session;
			this.#session.resetStream(this, error && this.#connect === '' ? codes.connect : codes.cancel);
			this.#session.settle();
		}
		this.#finish(error === null);
	}

	sent(bytes: number): void {
		this.#exchange!.response.bytesSent += bytes;
	}

	blocked(blocked: boolean): void {
		// Tunnels have no write timeout, because only their users know how long a tunnel may be inactive.
		if (this.#tunnel) return;
		const now = performance.now();
		if (blocked) {
			const { writeTimeout } = this.#session.engine.limits;
			this.#writePace ??= this.#pace(this.#writeBounds(), writeTimeout);
			if (this.#pacedBody !== undefined && writeTimeout !== 0) {
				// Time that the response spends waiting for its rate is not the client's.
				this.#writePace.setEndDeadline(this.#startedAt + writeTimeout + this.#pacedBody.waitedMs(now));
			}
			this.#writeDeadline = this.#writePace.startWait(now, this.#exchange?.response.bytesSent ?? 0);
		} else {
			this.#writePace?.endWait(now);
			this.#writeDeadline = Infinity;
		}
	}

	broken(): void {
		this.#session.resetStream(this, this.#session.codes.internal);
		this.#session.settle();
	}

	endsApart(source: BodySource | undefined): boolean {
		return (
			this.#exchange!.response.trailers !== undefined || source?.trailers !== undefined || this.#mayHold(this.#status)
		);
	}

	bodyEnded(source: BodySource | undefined, ended: boolean): void {
		if (!ended) {
			const trailers: HeaderList[] = [];
			const own = this.#tunnel ? undefined : this.#exchange!.response.trailers;
			if (own) trailers.push(own);
			if (source?.trailers) trailers.push(source.trailers);
			if (this.#mayHold(this.#status)) {
				this.#heldEnd = trailers;
				this.#hold();
				return;
			}
			this.#session.writeEnd(this.id, trailers);
		}
		this.#endLocal();
	}

	/** Called when our side has ended. */
	#endLocal(): void {
		this.#localEnded = true;
		this.#writeDeadline = Infinity;
		if (!this.remoteOpen) this.#session.streamEnded(this);
		if (this.#tunnel) return;
		if (this.remoteOpen) this.#drain();
		if (this.#exchange !== undefined) this.#finish(true);
	}

	/**
	 * Handles the rest of a request, which nobody wants. It is received and discarded for a while rather than stopped at once: many
	 * clients take a reset for a failed request, whatever its code (RFC 9113 §8.1), and curl before version 8 then discards the part
	 * of the response that it has not read.
	 */
	#drain(): void {
		const body = this.body;
		if (body === undefined || this.#connect !== undefined) {
			this.#stop();
			return;
		}
		const { engine } = this.#session;
		const { maxDrain, bodyIdleTimeout } = engine.limits;
		const outstanding = (body.length ?? body.received) - body.received;
		this.#drainEnd = body.received + maxDrain;
		if ((this.#expectsContinue && body.received === 0) || outstanding > maxDrain) this.#stopLater();
		else this.#readDeadline = engine.after(bodyIdleTimeout);
	}

	#stopLater(): void {
		this.#drainEnd = Infinity;
		this.#readDeadline = this.#session.engine.after(RESET_DELAY_MS);
	}

	/** Tells the client to stop sending, with a code that means no error. */
	#stop(): void {
		this.gone = true;
		this.#session.resetStream(this, this.#session.codes.none);
		this.body?.fail(new HttpError(400, 'The request was cut short.'));
	}

	#finish(whole: boolean): void {
		const x = this.#exchange;
		if (x === undefined) return;
		this.#exchange = undefined;
		this.body?.cancel();
		const { engine } = this.#session;
		engine.host.finished(x);
		this.#session.exchangeEnded(whole);
	}
}
