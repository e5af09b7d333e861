/** Copies bytes out of memory that the next read overwrites. */

/** A copy of at least this many bytes gets a buffer of its own instead of a slice of a pool. */
const MIN_OWN_BUFFER_BYTES = 2048;

/** Returns a copy of the bytes from `start` to `end` (exclusive). */
export function ownedCopy(bytes: Buffer, start: number, end: number): Buffer {
	const length = end - start;
	// Large copies get their own buffer, so that a slow reader does not keep a whole slab of Node's buffer pool alive.
	const copy = length >= MIN_OWN_BUFFER_BYTES ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
	bytes.copy(copy, 0, start, end);
	return copy;
}
