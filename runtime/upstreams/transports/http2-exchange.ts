/** One request on a stream of HTTP/2 to an upstream (RFC 9113 §8). */
import { createHash } from 'node:crypto';
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import type { Duplex } from 'node:stream';
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { type BodyOwner, ClientBody } from '../../protocols/http1/client-body.ts';
import type { CallCarrier, ClientCall, ClientOptions } from '../../protocols/http1/client-call.ts';
import { LONGEST_TIMER } from '../../protocols/wire.ts';

/** Interim responses to one request: without a bound they would keep an exchange open for ever. */
const MAX_INTERIM = 100;

/** Pieces are the stream's own memory, which nobody uses again. */
const NO_MEMORY = { giveBack() {} };

/** What of a session an exchange needs to know. */
export interface ExchangeSession {
	readonly http2: ClientHttp2Session;
	readonly scheme: 'http' | 'https';
	/** True once it has carried an exchange to its end. */
	readonly proven: boolean;
	/** Calls back once the upstream has said what it supports. */
	whenSettled(listener: () => void): void;
	/** Why the session ended, if it has. */
	readonly failure: Error | undefined;
	/** The highest stream that the upstream says it may have acted on, once it has said so. */
	readonly lastStream: number | undefined;
	/** The exchange is over. */
	exchangeEnded(whole: boolean): void;
}

/** The exchange. */
export class Http2Exchange implements CallCarrier, BodyOwner {
	readonly #session: ExchangeSession;
	readonly #options: ClientOptions;
	readonly #request: UpstreamRequest;
	#call: ClientCall | undefined;
	#stream: ClientHttp2Stream | undefined = undefined;
	#timer: NodeJS.Timeout | undefined = undefined;
	#readTimer: NodeJS.Timeout | undefined = undefined;
	#source: BodySource | undefined = undefined;
	#sourceStarted = false;
	#sourceDone = true;
	#body: ClientBody | undefined = undefined;
	#answered = false;
	#upgraded = false;
	#interim = 0;
	#trailers: HeaderList | undefined = undefined;

	constructor(session: ExchangeSession, call: ClientCall, options: ClientOptions) {
		this.#session = session;
		this.#options = options;
		this.#request = call.request;
		this.#call = call;
		call.carrier = this;
	}

	/** Opens the stream and sends. */
	begin(): void {
		if (this.#request.upgrade === undefined) this.#begin();
		else {
			this.#session.whenSettled(() => {
				if (this.#call === undefined) return;
				if (this.#session.http2.remoteSettings?.enableConnectProtocol === true) this.#begin();
				else this.#fail(new UpstreamError('request', 'the upstream takes no upgrades over HTTP/2', undefined, true));
			});
		}
	}

	#begin(): void {
		const request = this.#request;
		const body = typeof request.body === 'string' ? Buffer.from(request.body) : request.body;
		const extended = request.upgrade !== undefined;
		const empty =
			!extended && (body === null || (!isStream(body) && body.length === 0) || (isStream(body) && body.length === 0));
		let stream: ClientHttp2Stream;
		try {
			stream = this.#session.http2.request(headersOf(request, this.#session.scheme, body?.length) as never, {
				endStream: empty,
				waitForTrailers: isStream(body) && !empty,
			});
		} catch (error) {
			this.#fail(new UpstreamError('request', messageOf(error), error, true));
			return;
		}
		this.#stream = stream;
		stream.on('headers', (_fields: unknown, _flags: unknown, raw: unknown) => this.#informed(raw as string[]));
		stream.on('response', (_fields: unknown, flags: number, raw: unknown) => {
			this.#answer(raw as string[], (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0);
		});
		stream.on('trailers', (_fields: unknown, _flags: unknown, raw: unknown) => {
			this.#trailers = fieldsOf(raw as string[]).headers;
		});
		stream.on('error', () => {});
		stream.on('close', () => this.#closed());
		if (extended || empty) this.#sent();
		else if (isStream(body!)) this.#sendStream(body);
		else {
			stream.end(body);
			this.#sent();
		}
	}

	cancel(call: ClientCall): void {
		if (this.#call !== call) return;
		this.#fail(new UpstreamError('response', 'the exchange was given up'));
	}

	/** BodyOwner */
	resumeBody(): void {
		this.#stream?.resume();
	}

	/** BodyOwner */
	cancelBody(): void {
		this.#fail(new UpstreamError('response', 'the body was given up'));
	}

	#sendStream(source: BodySource): void {
		this.#source = source;
		this.#sourceDone = false;
		this.#stream!.on('wantTrailers', () => {
			const fields: { [name: string]: string[] } = {};
			for (const [name, value] of source.trailers ?? []) {
				const lower = name.toLowerCase();
				fields[lower] = [...(fields[lower] ?? []), value];
			}
			this.#stream!.sendTrailers(fields);
		});
		const waits = this.#options.continueTimeout > 0 && expectsContinue(this.#request.headers);
		if (!waits) this.#pull();
		else this.#timer = setTimeout(() => this.#pull(), Math.min(this.#options.continueTimeout, LONGEST_TIMER));
	}

	#pull(): void {
		const source = this.#source;
		if (!source || this.#sourceDone || this.#call === undefined) return;
		this.#clearTimer();
		this.#sourceStarted = true;
		try {
			for (;;) {
				const bytes = source.pull();
				if (bytes instanceof Promise) {
					bytes.then(
						piece => {
							if (this.#write(piece)) this.#pull();
						},
						error => this.#sourceFailed(error),
					);
					return;
				}
				if (!this.#write(bytes)) return;
			}
		} catch (error) {
			this.#sourceFailed(error);
		}
	}

	/** True when the next piece may be pulled at once. */
	#write(bytes: Uint8Array | null): boolean {
		if (this.#sourceDone) return false;
		if (bytes === null) {
			this.#sourceDone = true;
			this.#stream!.end();
			this.#sent();
			return false;
		}
		if (bytes.length === 0) return true;
		const timeout = this.#options.writeTimeout;
		const timer = timeout > 0 ? setTimeout(() => this.#writeTimedOut(), Math.min(timeout, LONGEST_TIMER)) : undefined;
		this.#stream!.write(bytes, error => {
			clearTimeout(timer);
			if (!error) this.#pull();
		});
		return false;
	}

	#writeTimedOut(): void {
		this.#fail(new UpstreamError('timeout', 'the upstream took nothing for too long'));
	}

	#sourceFailed(error: unknown): void {
		this.#fail(new UpstreamError('request', 'the request body could not be read', error));
	}

	#sent(): void {
		if (this.#answered) return;
		const { responseHeaderTimeout, readTimeout } = this.#options;
		if (responseHeaderTimeout > 0) {
			const wait = Math.min(responseHeaderTimeout, LONGEST_TIMER);
			this.#timer = setTimeout(() => {
				this.#fail(new UpstreamError('timeout', 'no response head came in time'));
			}, wait);
		}
		if (readTimeout > 0) {
			const wait = Math.min(readTimeout, LONGEST_TIMER);
			this.#readTimer = setInterval(() => {
				if (this.#stream!.isPaused()) return;
				this.#fail(new UpstreamError('timeout', 'the upstream sent nothing for too long'));
			}, wait);
		}
	}

	#informed(raw: readonly string[]): void {
		this.#readTimer?.refresh();
		const call = this.#call;
		if (!call) return;
		const { status, headers } = fieldsOf(raw);
		if (++this.#interim > MAX_INTERIM) {
			this.#fail(new UpstreamError('response', 'too many interim responses'));
			return;
		}
		if (status === 100 && this.#source && !this.#sourceStarted) this.#pull();
		else call.informed(status, headers);
	}

	#answer(raw: readonly string[], ended: boolean): void {
		this.#readTimer?.refresh();
		const call = this.#call;
		if (!call) return;
		this.#clearTimer();
		this.#answered = true;
		const { status, headers, length } = fieldsOf(raw);
		const stream = this.#stream!;
		if (this.#request.upgrade !== undefined && status >= 200 && status < 300) {
			this.#upgraded = true;
			clearInterval(this.#readTimer);
			headers.add('Upgrade', this.#request.upgrade);
			const key = this.#request.headers.get('sec-websocket-key');
			if (key !== undefined) headers.add('Sec-WebSocket-Accept', acceptOf(key));
			call.answered({ status: 101, headers, body: null, protocol: 'HTTP/2.0', upgraded: stream as Duplex });
			return;
		}
		const bodiless = this.#request.method === 'HEAD' || status === 204 || status === 304;
		if (bodiless || ended) {
			if (ended && length !== undefined && length > 0 && !bodiless) {
				this.#answered = false;
				this.#fail(new UpstreamError('response', 'the body is shorter than its Content-Length'));
				return;
			}
			if (bodiless && length !== undefined && status !== 204) headers.add('Content-Length', String(length));
			call.answered(responseOf(status, headers, null));
			stream.resume();
			return;
		}
		const body = new ClientBody(this, length, NO_MEMORY);
		this.#body = body;
		let received = 0;
		stream.on('data', (bytes: Buffer) => {
			this.#readTimer?.refresh();
			received += bytes.length;
			if (length !== undefined && received > length) {
				this.#fail(new UpstreamError('response', 'the body is longer than its Content-Length'));
			} else if (!body.push(bytes)) stream.pause();
		});
		stream.on('end', () => {
			if (this.#call === undefined || stream.rstCode !== 0) return;
			if (length !== undefined && received < length) {
				this.#fail(new UpstreamError('response', 'the body is shorter than its Content-Length'));
				return;
			}
			// Trailers are told before the end.
			this.#body = undefined;
			body.end(this.#trailers);
		});
		call.answered(responseOf(status, headers, body));
	}

	#closed(): void {
		const call = this.#call;
		if (!call) return;
		const { rstCode } = this.#stream!;
		if (this.#upgraded || (this.#answered && this.#body === undefined)) {
			this.#finish();
			this.#session.exchangeEnded(rstCode === 0);
			call.released();
			return;
		}
		const { failure, lastStream } = this.#session;
		const id = this.#stream!.id;
		const refused =
			rstCode === constants.NGHTTP2_REFUSED_STREAM || id === undefined || (lastStream !== undefined && id > lastStream);
		const message = failure ? messageOf(failure) : `the stream was ended with code ${rstCode}`;
		this.#fail(new UpstreamError('response', message, failure, refused));
	}

	#fail(error: UpstreamError): void {
		const call = this.#call;
		if (!call) return;
		const unsent = !this.#sourceStarted;
		this.#finish();
		if (this.#stream && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
		this.#session.exchangeEnded(false);
		if (!this.#answered) {
			const lost = this.#session.failure !== undefined && this.#session.proven;
			call.failed(error, (lost || error.unsent) && unsent && error.phase === 'response');
			return;
		}
		if (this.#upgraded) this.#stream!.destroy();
		this.#body?.fail(error);
		call.released();
	}

	/** Nothing more is told. */
	#finish(): void {
		this.#call = undefined;
		this.#clearTimer();
		clearInterval(this.#readTimer);
		if (this.#source && !this.#sourceDone) {
			this.#sourceDone = true;
			if (this.#sourceStarted) this.#source.cancel();
		}
	}

	#clearTimer(): void {
		if (this.#timer === undefined) return;
		clearTimeout(this.#timer);
		this.#timer = undefined;
	}
}

function responseOf(status: number, headers: HeaderList, body: UpstreamResponse['body']): UpstreamResponse {
	return { status, headers, body, protocol: 'HTTP/2.0', upgraded: undefined };
}

function expectsContinue(headers: HeaderList): boolean {
	return headers.get('expect')?.toLowerCase() === '100-continue';
}

/** Pseudo-fields and fields, one after the other; names in lower case (RFC 9113 §8.2). */
function headersOf(request: UpstreamRequest, scheme: string, length: number | undefined): string[] {
	const { headers, upgrade } = request;
	const extended = upgrade !== undefined;
	const items = [
		...[':method', extended ? 'CONNECT' : request.method],
		...(extended ? [':protocol', upgrade.toLowerCase()] : []),
		...[':scheme', scheme, ':authority', headers.get('host') ?? '', ':path', request.target],
	];
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i).toLowerCase();
		if (name === 'host') continue;
		// The key is that of HTTP/1.1's handshake (RFC 8441 §5).
		if (extended && name === 'sec-websocket-key') continue;
		items.push(name, headers.valueAt(i));
	}
	const hasBody = request.method === 'POST' || request.method === 'PUT' || request.method === 'PATCH';
	if (!extended && length !== undefined && (length > 0 || (hasBody && request.body === null))) {
		items.push('content-length', String(length));
	}
	return items;
}

/** What a block of fields holds; those of one connection and pseudo-fields are left out. */
function fieldsOf(raw: readonly string[]): { status: number; headers: HeaderList; length: number | undefined } {
	const items: string[] = [];
	let status = 0;
	let length: number | undefined;
	for (let i = 0; i + 1 < raw.length; i += 2) {
		const name = raw[i]!;
		const value = raw[i + 1]!;
		switch (name) {
			case ':status':
				status = Number(value);
				break;
			case 'content-length':
				if (/^\d{1,15}$/.test(value)) length = Number(value);
				break;
			case 'connection':
			case 'keep-alive':
			case 'proxy-connection':
			case 'transfer-encoding':
			case 'upgrade':
			case 'proxy-authenticate':
				break;
			default:
				if (!name.startsWith(':')) items.push(name, value);
		}
	}
	return { status, headers: new HeaderList(items), length };
}

/** The answer to a WebSocket key (RFC 6455 §4.2.2). */
function acceptOf(key: string): string {
	return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
