/** Converts HTTP/1.1 responses from upstreams to the form that handlers use, and decodes their chunks. */
import type { UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import type { ClientCall } from './client-call.ts';
import { InvalidResponse, type ResponseHead } from './client-head.ts';
import { ownedCopy } from './owned-copy.ts';

/** Limits of an upstream's trailer section. */
const MAX_TRAILER_BYTES = 65536;
const MAX_TRAILER_COUNT = 1000;

/**
 * Maximum size, in bytes, of a buffer whose views are cached. No read buffer is larger. A larger buffer contains a long
 * head and is released soon, which a cached view would prevent.
 */
const MAX_VIEWED_BUFFER_BYTES = 65_536;

export function toUpstreamResponse(head: ResponseHead, body: UpstreamResponse['body']): UpstreamResponse {
	const { status, reason, headers, protocol } = head;
	return { status, reason, headers, body, protocol, upgradedStream: undefined };
}

/** Returns a decoder for the body of a chunked response. */
export function createResponseDecoder({ connection }: ResponseHead): ChunkedDecoder {
	return new ChunkedDecoder('response', MAX_TRAILER_BYTES, MAX_TRAILER_COUNT, undefined, connection);
}

/**
 * Decodes received bytes, and passes their content to the sink. Returns the index after the last byte consumed.
 * @throws InvalidResponse
 */
export function decodeChunks(
	decoder: ChunkedDecoder,
	data: Buffer,
	start: number,
	end: number,
	sink: ChunkSink,
): number {
	const consumedEnd = decoder.write(data.subarray(0, end), start, sink);
	if (consumedEnd < 0) throw new InvalidResponse('the chunked coding is malformed');
	return consumedEnd;
}

/** Extracts complete bodies from the received data of one connection. */
export class CompleteBodies {
	#bodyView: Buffer | undefined = undefined;
	#viewedBuffer: Buffer | undefined = undefined;
	#viewStart = 0;

	/**
	 * Returns the body at `start`. It is a view of the read buffer if the request no longer needs it when `onResponse` returns;
	 * otherwise it is a copy.
	 */
	extract(call: ClientCall, { headers }: ResponseHead, data: Buffer, start: number, length: number): Buffer {
		if (call.canLendBody?.(length, headers) !== true) return ownedCopy(data, start, start + length);
		let view = this.#bodyView;
		// Consecutive responses of one upstream often have the same length. The previous view can then be reused.
		if (view === undefined || this.#viewedBuffer !== data || this.#viewStart !== start || view.length !== length) {
			view = data.subarray(start, start + length);
			if (data.length > MAX_VIEWED_BUFFER_BYTES) return view;
			this.#bodyView = view;
			this.#viewedBuffer = data;
			this.#viewStart = start;
		}
		return view;
	}

	/** Joins the chunks of a body, which are views of `data`. Like {@link extract}, returns a view or a copy. */
	joinPieces(call: ClientCall, head: ResponseHead, data: Buffer, pieces: readonly Buffer[]): Buffer {
		let length = 0;
		for (const piece of pieces) length += piece.length;
		if (length === 0 || call.canLendBody?.(length, head.headers) !== true) return Buffer.concat(pieces, length);
		const start = pieces[0]!.byteOffset - data.byteOffset;
		let end = start;
		for (const piece of pieces) {
			const pieceStart = piece.byteOffset - data.byteOffset;
			data.copyWithin(end, pieceStart, pieceStart + piece.length);
			end += piece.length;
		}
		return this.extract(call, head, data, start, length);
	}
}
