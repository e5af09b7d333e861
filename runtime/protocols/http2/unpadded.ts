/** Removes the padding of frames (RFC 9113 §6.1, §6.2). */
import { FRAME_FLAG } from './frame-codes.ts';

/**
 * Returns the range of a frame's content, without padding and without its first `skip` bytes. Returns undefined if the padding is
 * too long.
 */
export function rangeWithoutPadding(
	flags: number,
	bytes: Buffer,
	start: number,
	end: number,
	skip: number,
): readonly [from: number, to: number] | undefined {
	let from = start;
	let to = end;
	if ((flags & FRAME_FLAG.padded) !== 0) {
		if (from >= end) return undefined;
		to -= bytes[from++]!;
	}
	from += skip;
	return from > to ? undefined : [from, to];
}
