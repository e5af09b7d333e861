/**
 * HalfSipHash-1-3 of text: a fast hash whose collisions cannot be found without its secret key (Aumasson and Bernstein, "SipHash:
 * a fast short-input PRF", and its 32-bit variant).
 */

/** A 64-bit hash in two halves. One object holds all results, because hashes are calculated for each request. */
export class HalfSipHash {
	/** `first` and `second` are the halves of the last hash, as signed 32-bit integers. */
	first = 0;
	second = 0;
	readonly #low: number;
	readonly #high: number;

	/** @param low, high The halves of the secret key. */
	constructor(low: number, high: number) {
		this.#low = low | 0;
		this.#high = high | 0;
	}

	/** Hashes the UTF-16 code units of a text. */
	hashText(text: string): void {
		let v0 = this.#low;
		let v1 = this.#high ^ 0xee;
		let v2 = 0x6c796765 ^ this.#low;
		let v3 = 0x74656462 ^ this.#high;
		const { length } = text;
		// Each round takes two code units. The last word holds the remaining unit, if any, and the length.
		const wordCount = length >> 1;
		for (let i = 0; i <= wordCount + 3; i++) {
			let word = 0;
			if (i < wordCount) word = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 16);
			else if (i === wordCount) word = (length << 25) | (length & 1 ? text.charCodeAt(length - 1) : 0);
			else if (i === wordCount + 1) v2 ^= 0xee;
			v3 ^= word;
			v0 = (v0 + v1) | 0;
			v1 = (v1 << 5) | (v1 >>> 27);
			v1 ^= v0;
			v0 = (v0 << 16) | (v0 >>> 16);
			v2 = (v2 + v3) | 0;
			v3 = (v3 << 8) | (v3 >>> 24);
			v3 ^= v2;
			v0 = (v0 + v3) | 0;
			v3 = (v3 << 7) | (v3 >>> 25);
			v3 ^= v0;
			v2 = (v2 + v1) | 0;
			v1 = (v1 << 13) | (v1 >>> 19);
			v1 ^= v2;
			v2 = (v2 << 16) | (v2 >>> 16);
			v0 ^= word;
		}
		this.first = v1 ^ v3;
		v1 ^= 0xdd;
		for (let i = 0; i < 3; i++) {
			v0 = (v0 + v1) | 0;
			v1 = (v1 << 5) | (v1 >>> 27);
			v1 ^= v0;
			v0 = (v0 << 16) | (v0 >>> 16);
			v2 = (v2 + v3) | 0;
			v3 = (v3 << 8) | (v3 >>> 24);
			v3 ^= v2;
			v0 = (v0 + v3) | 0;
			v3 = (v3 << 7) | (v3 >>> 25);
			v3 ^= v0;
			v2 = (v2 + v1) | 0;
			v1 = (v1 << 13) | (v1 >>> 19);
			v1 ^= v2;
			v2 = (v2 << 16) | (v2 >>> 16);
		}
		this.second = v1 ^ v3;
	}
}
