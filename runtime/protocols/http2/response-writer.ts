/** Writes heads and trailers of responses as frames. */
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { FRAME_FLAG, FRAME_TYPE } from './frame-codes.ts';
import type { FrameWriter } from './frame-writer.ts';
import { MAX_FRAME_PAYLOAD } from './limits.ts';
import { MAX_STATUS_AND_LENGTH_BYTES, type ResponseFields, writeLength, writeStatus } from './response-fields.ts';

/** Value of `length` for a head without a `Content-Length`. */
export const NO_CONTENT_LENGTH = -1;
/** Value of `length` for a head with the `Content-Length` that handlers set, if any. */
export const HANDLER_CONTENT_LENGTH = -2;

/** Number of bytes reserved for a `Date` field. */
const MAX_DATE_BYTES = 48;

/**
 * Writes a response head. `length` is the length of the body, `NO_CONTENT_LENGTH` or `HANDLER_CONTENT_LENGTH`. `isFirstBlock` is
 * true for the first header block of a connection. An interim response (below 200) gets no `Date`.
 */
export function writeHead(
	frames: FrameWriter,
	responseFields: ResponseFields,
	now: number,
	streamId: number,
	status: number,
	headers: HeaderList,
	length: number,
	endsStream: boolean,
	isFirstBlock: boolean,
): void {
	// The date is encoded first, because `encode` returns bytes that are valid only until the next call.
	const dateField = responseFields.encodeDate(now);
	const encodedFields = responseFields.encode(headers);
	const block = encodedFields.bytes;
	const declaredLength = length === HANDLER_CONTENT_LENGTH ? encodedFields.contentLength : length;
	const addedDate = status < 200 || encodedFields.hasDate ? undefined : dateField;
	const maxBytes = MAX_STATUS_AND_LENGTH_BYTES + MAX_DATE_BYTES + block.length;
	if (maxBytes > MAX_FRAME_PAYLOAD) {
		const blockStart = Buffer.allocUnsafe(MAX_STATUS_AND_LENGTH_BYTES);
		let at = writeStatus(blockStart, 0, status, isFirstBlock);
		if (declaredLength >= 0) at = writeLength(blockStart, at, declaredLength);
		frames.writeHeaders(streamId, endsStream, [blockStart.subarray(0, at), block, ...(addedDate ? [addedDate] : [])]);
		return;
	}
	const payloadStart = frames.beginFrame(
		maxBytes,
		FRAME_TYPE.headers,
		FRAME_FLAG.endHeaders | (endsStream ? FRAME_FLAG.endStream : 0),
		streamId,
	);
	const target = frames.bytes;
	let at = writeStatus(target, payloadStart, status, isFirstBlock);
	target.set(block, at);
	at += block.length;
	if (addedDate) {
		target.set(addedDate, at);
		at += addedDate.length;
	}
	if (declaredLength >= 0) at = writeLength(target, at, declaredLength);
	frames.shortenLastFrame(payloadStart, at);
}

/** Ends a stream with trailers, or with an empty DATA frame if there are none. */
export function writeTrailers(
	frames: FrameWriter,
	responseFields: ResponseFields,
	streamId: number,
	trailers: readonly HeaderList[],
): void {
	const parts = trailers.map(list => new Uint8Array(responseFields.encode(list).bytes)).filter(part => part.length > 0);
	if (parts.length === 0) frames.beginFrame(0, FRAME_TYPE.data, FRAME_FLAG.endStream, streamId);
	else frames.writeHeaders(streamId, true, parts);
}
