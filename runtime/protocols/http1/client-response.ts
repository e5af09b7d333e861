/** What is made of an upstream's response on HTTP/1.1: an answer, and the content of its chunks. */
import type { UpstreamResponse } from '../../../compiler/exchange/leases.ts';
import { ChunkedDecoder, type ChunkSink } from './chunked-decoder.ts';
import type { ClientCall } from './client-call.ts';
import { InvalidResponse, type ResponseHead } from './client-head.ts';
import { ownedCopy } from './owned-copy.ts';

/** Bounds of an upstream's trailer section. */
const MAX_TRAILER_SIZE = 65536;
const MAX_TRAILER_COUNT = 1000;

/** The answer that has this head. */
export function responseOf(head: ResponseHead, body: UpstreamResponse['body']): UpstreamResponse {
	return { status: head.status, headers: head.headers, body, protocol: head.protocol, upgraded: undefined };
}

/** Reads the chunks of one response. */
export function responseDecoder(): ChunkedDecoder {
	return new ChunkedDecoder('response', MAX_TRAILER_SIZE, MAX_TRAILER_COUNT);
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

/** A body that has come as a whole: in the memory that it was read into, if the call is done with it at once. */
export function wholeBody(call: ClientCall, data: Buffer, start: number, length: number): Buffer {
	if (call.lendable?.(length) === true) return data.subarray(start, start + length);
	return ownedCopy(data, start, start + length);
}
