/** Decodes an upstream's gzip response for a client that did not accept gzip (RFC 9110 §12.5.3). */
import { Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type BodySource, isStream } from '../../compiler/exchange/body.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { UpstreamResponse } from '../../compiler/exchange/leases.ts';

/** Returns the response with its content decoded; unchanged if it is not gzip or has no content. */
export function gunzipResponse(response: UpstreamResponse): UpstreamResponse {
	const { headers, body } = response;
	if (body === null || body.length === 0) return response;
	if (headers.get('content-encoding')?.trim().toLowerCase() !== 'gzip') return response;
	headers.delete('content-encoding');
	headers.delete('content-length');
	return { ...response, body: new GunzippedBody(isStream(body) ? body : completeSource(body)) };
}

/** Wraps a complete body as a body source. */
function completeSource(body: string | Uint8Array): BodySource {
	let remainingBytes: Uint8Array | null = typeof body === 'string' ? Buffer.from(body) : body;
	return {
		length: remainingBytes.length,
		pull() {
			const piece = remainingBytes;
			remainingBytes = null;
			return piece;
		},
		cancel() {},
	};
}

/**
 * The decoded content of a gzip body. Reading it throws if the body is truncated. A body that is not gzip, although its header
 * field says so, is passed on unchanged.
 */
class GunzippedBody implements BodySource {
	readonly length = undefined;
	readonly #gzipSource: BodySource;
	#gunzip: Gunzip | undefined = undefined;
	#decodedPieces: AsyncIterator<Uint8Array> | undefined = undefined;
	#isPlain = false;

	constructor(source: BodySource) {
		this.#gzipSource = source;
	}

	get trailers(): HeaderList | undefined {
		return this.#gzipSource.trailers;
	}

	async pull(): Promise<Uint8Array | null> {
		if (!this.#decodedPieces) {
			const firstPiece = await this.#gzipSource.pull();
			if (firstPiece === null || this.#isPlain) return firstPiece;
			if (firstPiece.length > 0 && (firstPiece[0] !== 0x1f || (firstPiece.length > 1 && firstPiece[1] !== 0x8b))) {
				this.#isPlain = true;
				return firstPiece;
			}
			this.#decodedPieces = this.#startDecoding(Uint8Array.from(firstPiece));
		}
		const { done, value } = await this.#decodedPieces.next();
		return done ? null : value;
	}

	cancel(reason?: unknown): void {
		this.#gzipSource.cancel(reason);
		this.#gunzip?.destroy();
	}

	#startDecoding(firstPiece: Uint8Array): AsyncIterator<Uint8Array> {
		const gunzip = createGunzip();
		this.#gunzip = gunzip;
		const compressedStream = Readable.from(piecesOf(firstPiece, this.#gzipSource), {
			objectMode: false,
			highWaterMark: 65_536,
		});
		compressedStream.on('error', error => gunzip.destroy(error));
		gunzip.on('error', () => this.#gzipSource.cancel());
		compressedStream.pipe(gunzip);
		return gunzip[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
	}
}

/** Yields copies of the body's pieces, because a piece is valid only until the next pull, and the decoder keeps it longer. */
async function* piecesOf(firstPiece: Uint8Array, source: BodySource): AsyncGenerator<Uint8Array> {
	yield firstPiece;
	for (let piece = await source.pull(); piece !== null; piece = await source.pull()) yield Uint8Array.from(piece);
}
