/** Copies bytes out of memory that the next read overwrites. */

/** Bytes from which a copy gets memory of its own. */
const OWN_MEMORY = 2048;

/** A copy of the bytes from `start` up to but not including `end`. */
export function ownedCopy(bytes: Buffer, start: number, end: number): Buffer {
	const length = end - start;
	// Large pieces get memory of their own, so that a slow reader does not keep a whole pool slab alive.
	const own = length >= OWN_MEMORY ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
	bytes.copy(own, 0, start, end);
	return own;
}
