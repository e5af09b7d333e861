/** Removes the padding of frames (RFC 9113 §6.1, §6.2). */
import { FRAME_FLAG } from './frame-codes.ts';

/**
 * Returns the range of a frame's content, without padding and without the first `skippedBytes`. Returns undefined if the padding
 * is too long.
 */
export function rangeWithoutPadding(
	flags: number,
	bytes: Buffer,
	start: number,
	end: number,
	skippedBytes: number,
): readonly [from: number, to: number] | undefined {
	let contentStart = start;
	let contentEnd = end;
	if ((flags & FRAME_FLAG.padded) !== 0) {
		if (contentStart >= end) return undefined;
		contentEnd -= bytes[contentStart++]!;
	}
	contentStart += skippedBytes;
	return contentStart > contentEnd ? undefined : [contentStart, contentEnd];
}
