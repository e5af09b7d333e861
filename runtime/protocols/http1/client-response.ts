/** Converts HTTP/1.1 responses of upstreams, and decodes their chunks. */
import type { UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import type { ClientCall } from './client-call.ts';
import { InvalidResponse, type ResponseHead } from './client-head.ts';
import { ownedCopy } from './owned-copy.ts';

/** Limits of an upstream's trailer section. */
const MAX_TRAILER_SIZE = 65536;
const MAX_TRAILER_COUNT = 1000;

/** Maximum bytes of memory whose views are cached: read buffers, but not the buffers of long heads. */
const LARGEST_MEMORY = 65_536;

/** Returns the response with this head. */
export function responseOf(head: ResponseHead, body: UpstreamResponse['body']): UpstreamResponse {
	const { status, reason, headers, protocol } = head;
	return { status, reason, headers, body, protocol, upgraded: undefined };
}

/** Returns a decoder for the chunks of a response. */
export function responseDecoder({ connection }: ResponseHead): ChunkedDecoder {
	return new ChunkedDecoder('response', MAX_TRAILER_SIZE, MAX_TRAILER_COUNT, undefined, connection);
}

/** Decodes content into the sink; returns the index after the last consumed byte. @throws InvalidResponse */
export function decodeChunks(
	decoder: ChunkedDecoder,
	data: Buffer,
	start: number,
	end: number,
	sink: ChunkSink,
): number {
	const used = decoder.write(data.subarray(0, end), start, sink);
	if (used < 0) throw new InvalidResponse('the chunked coding is malformed');
	return used;
}

/** Complete bodies of one connection. */
export class WholeBodies {
	#view: Buffer | undefined = undefined;
	#memory: Buffer | undefined = undefined;
	#start = 0;

	/** Returns the body at `start`, in the read buffer itself if the request finishes with it at once. */
	of(call: ClientCall, { headers }: ResponseHead, data: Buffer, start: number, length: number): Buffer {
		if (call.lendable?.(length, headers) !== true) return ownedCopy(data, start, start + length);
		let view = this.#view;
		// Responses of one upstream often have the same length, so the last view is reused.
		if (view === undefined || this.#memory !== data || this.#start !== start || view.length !== length) {
			view = data.subarray(start, start + length);
			if (data.length > LARGEST_MEMORY) return view;
			this.#view = view;
			this.#memory = data;
			this.#start = start;
		}
		return view;
	}

	/** Joins the pieces of a body in `data`, in place or as a copy. */
	ofPieces(call: ClientCall, head: ResponseHead, data: Buffer, pieces: readonly Buffer[]): Buffer {
		let length = 0;
		for (const piece of pieces) length += piece.length;
		if (length === 0 || call.lendable?.(length, head.headers) !== true) return Buffer.concat(pieces, length);
		const start = pieces[0]!.byteOffset - data.byteOffset;
		let end = start;
		for (const piece of pieces) {
			const from = piece.byteOffset - data.byteOffset;
			data.copyWithin(end, from, from + piece.length);
			end += piece.length;
		}
		return this.of(call, head, data, start, length);
	}
}
