/** Writes heads and trailers of responses as frames. */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { FRAME_FLAG, FRAME_TYPE } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { MAX_FRAME_SIZE } from './limits.ts';
import { MAX_STATUS_AND_LENGTH_BYTES, type ResponseFields, writeLength, writeStatus } from './response-fields.ts';

/** Value of `length` for a head without a `Content-Length`. */
export const NO_LENGTH = -1;
/** Value of `length` for a head with the `Content-Length` that handlers set, if any. */
export const HANDLER_LENGTH = -2;

/** Number of bytes reserved for a `Date` field. */
const DATE_ROOM = 48;

/**
 * Writes a response head. `length` is the length of the body, `NO_LENGTH` or `HANDLER_LENGTH`. `first` is true for the first header
 * block of a connection. An interim response (below 200) gets no `Date`.
 */
export function writeHead(
	frames: FrameWriter,
	fields: ResponseFields,
	now: number,
	stream: number,
	status: number,
	headers: HeaderList,
	length: number,
	ends: boolean,
	first: boolean,
): void {
	// The date is encoded first, because `encode` returns bytes that are valid only until the next call.
	const today = fields.date(now);
	const encoded = fields.encode(headers);
	const block = encoded.bytes;
	const declared = length === HANDLER_LENGTH ? encoded.contentLength : length;
	const date = status < 200 || encoded.hasDate ? undefined : today;
	const most = MAX_STATUS_AND_LENGTH_BYTES + DATE_ROOM + block.length;
	if (most > MAX_FRAME_SIZE) {
		const start = Buffer.allocUnsafe(MAX_STATUS_AND_LENGTH_BYTES);
		let at = writeStatus(start, 0, status, first);
		if (declared >= 0) at = writeLength(start, at, declared);
		frames.headers(stream, ends, [start.subarray(0, at), block, ...(date ? [date] : [])]);
		return;
	}
	const begun = frames.begin(
		most,
		FRAME_TYPE.headers,
		FRAME_FLAG.endHeaders | (ends ? FRAME_FLAG.endStream : 0),
		stream,
	);
	const to = frames.bytes;
	let at = writeStatus(to, begun, status, first);
	to.set(block, at);
	at += block.length;
	if (date) {
		to.set(date, at);
		at += date.length;
	}
	if (declared >= 0) at = writeLength(to, at, declared);
	frames.shorten(begun, at);
}

/** Ends a stream with trailers, or with an empty DATA frame if there are none. */
export function writeTrailers(
	frames: FrameWriter,
	fields: ResponseFields,
	stream: number,
	trailers: readonly HeaderList[],
): void {
	const parts = trailers.map(list => new Uint8Array(fields.encode(list).bytes)).filter(part => part.length > 0);
	if (parts.length === 0) frames.begin(0, FRAME_TYPE.data, FRAME_FLAG.endStream, stream);
	else frames.headers(stream, true, parts);
}
