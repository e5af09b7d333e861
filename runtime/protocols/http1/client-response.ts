/** What is made of an upstream's response on HTTP/1.1: an answer, and the content of its chunks. */
import type { UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import type { ClientCall } from './client-call.ts';
import { InvalidResponse, type ResponseHead } from './client-head.ts';
import { ownedCopy } from './owned-copy.ts';

/** Bounds of an upstream's trailer section. */
const MAX_TRAILER_SIZE = 65536;
const MAX_TRAILER_COUNT = 1000;

/** Bytes of memory whose views are kept: what is read into, not what a long head was gathered in. */
const LARGEST_MEMORY = 65_536;

/** The answer that has this head. */
export function responseOf(head: ResponseHead, body: UpstreamResponse['body']): UpstreamResponse {
	const { status, reason, headers, protocol } = head;
	return { status, reason, headers, body, protocol, upgraded: undefined };
}

/** Reads the chunks of the response that has this head. */
export function responseDecoder({ connection }: ResponseHead): ChunkedDecoder {
	return new ChunkedDecoder('response', MAX_TRAILER_SIZE, MAX_TRAILER_COUNT, undefined, connection);
}

/** Gives content to the sink; the index after the last byte that was used. @throws InvalidResponse */
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

/** Bodies of one connection that have come as a whole. */
export class WholeBodies {
	#view: Buffer | undefined = undefined;
	#memory: Buffer | undefined = undefined;
	#start = 0;

	/** The body that stands at `start`: in the memory that it was read into, if the call is done with it at once. */
	of(call: ClientCall, { headers }: ResponseHead, data: Buffer, start: number, length: number): Buffer {
		if (call.lendable?.(length, headers) !== true) return ownedCopy(data, start, start + length);
		let view = this.#view;
		// Answers of one upstream are often of one length: the view of the last one is used again.
		if (view === undefined || this.#memory !== data || this.#start !== start || view.length !== length) {
			view = data.subarray(start, start + length);
			if (data.length > LARGEST_MEMORY) return view;
			this.#view = view;
			this.#memory = data;
			this.#start = start;
		}
		return view;
	}

	/** The body whose pieces stand in `data`, one behind the other: moved together there, or copied together. */
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
