/** Generates request traces with a Zipf distribution of keys, a common benchmark for caches. */

/** Number of distinct keys. */
export const KEY_COUNT = 10_000_000;

const EXPONENT = 0.9;

/** Returns a generator of ranks that follow Zipf's law (by inversion of its integral). 0 is the most popular key. */
export function zipfTrace(seed: number): () => number {
	const random = seededRandom(seed);
	const a = 1 - EXPONENT;
	return () => Math.floor(((KEY_COUNT ** a - 1) * random() + 1) ** (1 / a)) - 1;
}

/** Returns the size in bytes of the response for a key: 200 to 8,199, which does not depend on the popularity of the key. */
export function responseSizeForRank(rank: number): number {
	return 200 + ((Math.imul(rank, 0x9e3779b1) >>> 0) % 8000);
}

/** Returns a generator of numbers from 0 to less than 1. The same seed yields the same numbers. */
export function seededRandom(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}
