/** MurmurHash2 by Austin Appleby (public domain), which nginx's `split_clients` also uses. Not cryptographically secure. */

const FACTOR = 0x5bd1e995;

/** Returns the 32-bit hash of a text's UTF-8 bytes, with seed 0, as an unsigned number. */
export function murmurHash2(text: string): number {
	const bytes = Buffer.from(text);
	const { length } = bytes;
	let hash = length;
	let offset = 0;
	for (; length - offset >= 4; offset += 4) {
		let block = Math.imul(bytes.readInt32LE(offset), FACTOR);
		block = Math.imul(block ^ (block >>> 24), FACTOR);
		hash = Math.imul(hash, FACTOR) ^ block;
	}
	if (offset < length) {
		for (let i = length - 1; i >= offset; i--) hash ^= bytes[i]! << (8 * (i - offset));
		hash = Math.imul(hash, FACTOR);
	}
	hash = Math.imul(hash ^ (hash >>> 13), FACTOR);
	return (hash ^ (hash >>> 15)) >>> 0;
}
