/** A set of hashes that takes the same memory whatever is in it: now and then it has one that was never added. */

/** Bits, a power of two: half a MiB. */
const BITS = 2 ** 22;

/** The set. */
export class KeyMarks {
	#words: Int32Array | undefined;

	add(hash: number): void {
		this.#words ??= new Int32Array(BITS / 32);
		const bit = hash & (BITS - 1);
		this.#words[bit >> 5]! |= 1 << (bit & 31);
	}

	/** False for what was never added. */
	has(hash: number): boolean {
		const bit = hash & (BITS - 1);
		return this.#words !== undefined && (this.#words[bit >> 5]! & (1 << (bit & 31))) !== 0;
	}
}
