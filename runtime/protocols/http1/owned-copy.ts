/** Copies bytes from memory that the next read overwrites. */

/** From this many bytes on, a copy gets a buffer of its own. */
const OWN_MEMORY = 2048;

/** Returns a copy of the bytes from `start` to `end` (exclusive). */
export function ownedCopy(bytes: Buffer, start: number, end: number): Buffer {
	const length = end - start;
	// Large pieces get their own buffer, so that a slow reader does not keep a whole pool slab alive.
	const own = length >= OWN_MEMORY ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
	bytes.copy(own, 0, start, end);
	return own;
}
