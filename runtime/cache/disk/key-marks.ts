/** A set of hashes in constant memory, with occasional false positives. */

/** Number of bits, a power of two: half a MiB. */
const BIT_COUNT = 2 ** 22;

export class KeyMarks {
	#words: Int32Array | undefined;

	add(hash: number): void {
		this.#words ??= new Int32Array(BIT_COUNT / 32);
		const bit = hash & (BIT_COUNT - 1);
		this.#words[bit >> 5]! |= 1 << (bit & 31);
	}

	/** Returns false only for a hash that was never added. */
	has(hash: number): boolean {
		const bit = hash & (BIT_COUNT - 1);
		return this.#words !== undefined && (this.#words[bit >> 5]! & (1 << (bit & 31))) !== 0;
	}
}
