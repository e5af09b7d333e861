/** Padding of frames (RFC 9113 §6.1, §6.2). */
import { FLAG } from './frame-codes.ts';

/** Where the content of a padded frame is, its first `skip` bytes left out; undefined when its padding is longer than itself. */
export function unpadded(
	flags: number,
	bytes: Buffer,
	start: number,
	end: number,
	skip: number,
): readonly [from: number, to: number] | undefined {
	let from = start;
	let to = end;
	if ((flags & FLAG.padded) !== 0) {
		if (from >= end) return undefined;
		to -= bytes[from++]!;
	}
	from += skip;
	return from > to ? undefined : [from, to];
}
