/** Asks upstreams for gzip where the client asked for nothing, and gives the client what is in it (RFC 9110 §12.5.3). */
import { Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { UpstreamLink } from './link.ts';

/** A link around another. */
export class DecodingLink implements UpstreamLink {
	readonly #link: UpstreamLink;

	constructor(link: UpstreamLink) {
		this.#link = link;
	}

	get idle(): number {
		return this.#link.idle;
	}

	get unused(): boolean {
		return this.#link.unused;
	}

	send(call: ClientCall, fresh: boolean): void {
		this.#link.send(asks(call.request) ? new DecodingCall(call) : call, fresh);
	}

	sweep(now: number): void {
		this.#link.sweep(now);
	}

	close(): void {
		this.#link.close();
	}
}

/** Ranges are of what is sent, so that parts of gzip would be of no use. */
function asks({ method, headers, upgrade }: UpstreamRequest): boolean {
	if (method === 'HEAD' || upgrade !== undefined) return false;
	return headers.get('accept-encoding') === undefined && headers.get('range') === undefined;
}

/** Stands between a call and what carries it. */
class DecodingCall implements ClientCall, CallCarrier {
	readonly request: UpstreamRequest;
	carrier: CallCarrier;
	readonly #call: ClientCall;

	constructor(call: ClientCall) {
		this.#call = call;
		const headers = new HeaderList([...call.request.headers].flat());
		headers.add('Accept-Encoding', 'gzip');
		this.request = { ...call.request, headers };
		this.carrier = this;
		call.carrier = this;
	}

	get connectTime(): number {
		return this.#call.connectTime;
	}

	set connectTime(value: number) {
		this.#call.connectTime = value;
	}

	cancel(): void {
		if (this.carrier !== this) this.carrier.cancel(this);
	}

	informed(status: number, headers: HeaderList): void {
		this.#call.informed(status, headers);
	}

	answered(response: UpstreamResponse): void {
		const { headers, body } = response;
		const gzipped = headers.get('content-encoding')?.trim().toLowerCase() === 'gzip';
		if (!gzipped || body === null || body === '') {
			this.#call.answered(response);
			return;
		}
		headers.delete('content-encoding');
		headers.delete('content-length');
		this.#call.answered({ ...response, body: new GunzippedBody(isStream(body) ? body : bytesOf(body)) });
	}

	failed(error: UpstreamError, untouched: boolean): void {
		this.#call.failed(error, untouched);
	}

	released(failure?: UpstreamError): void {
		this.#call.released(failure);
	}
}

/** A whole body as a source. */
function bytesOf(body: string | Uint8Array): BodySource {
	let rest: Uint8Array | null = typeof body === 'string' ? Buffer.from(body) : body;
	return {
		length: rest.length,
		pull() {
			const piece = rest;
			rest = null;
			return piece;
		},
		cancel() {},
	};
}

/** The content of a gzipped body; a body that breaks off, or is no gzip, throws. */
class GunzippedBody implements BodySource {
	readonly length = undefined;
	readonly #source: BodySource;
	readonly #gunzip: Gunzip;
	readonly #pieces: AsyncIterator<Uint8Array>;

	constructor(source: BodySource) {
		this.#source = source;
		this.#gunzip = createGunzip();
		const compressed = Readable.from(piecesOf(source), { objectMode: false, highWaterMark: 65_536 });
		compressed.on('error', error => this.#gunzip.destroy(error));
		this.#gunzip.on('error', () => source.cancel());
		compressed.pipe(this.#gunzip);
		this.#pieces = this.#gunzip[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
	}

	get trailers(): HeaderList | undefined {
		return this.#source.trailers;
	}

	async pull(): Promise<Uint8Array | null> {
		const { done, value } = await this.#pieces.next();
		return done ? null : value;
	}

	cancel(reason?: unknown): void {
		this.#source.cancel(reason);
		this.#gunzip.destroy();
	}
}

/** Pieces are the reader's until the next pull, and the stream keeps them longer. */
async function* piecesOf(source: BodySource): AsyncGenerator<Uint8Array> {
	for (let piece = await source.pull(); piece !== null; piece = await source.pull()) yield Uint8Array.from(piece);
}
