/** What is in an upstream's gzip, for a client that did not ask for any (RFC 9110 §12.5.3). */
import { Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type BodySource, isStream } from '../../compiler/exchange/body.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { UpstreamResponse } from '../../compiler/exchange/leases.ts';

/** The response with its content decoded; one that is not in gzip, and one without content, as it is. */
export function gunzipped(response: UpstreamResponse): UpstreamResponse {
	const { headers, body } = response;
	if (body === null || body === '') return response;
	if (headers.get('content-encoding')?.trim().toLowerCase() !== 'gzip') return response;
	headers.delete('content-encoding');
	headers.delete('content-length');
	return { ...response, body: new GunzippedBody(isStream(body) ? body : bytesOf(body)) };
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
