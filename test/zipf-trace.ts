/** Requests of many keys, some far more often than others: what caches are compared by. */

/** Keys that there are. */
export const KEYS = 10_000_000;

const EXPONENT = 0.9;

/** The same ranks each time, by Zipf's law (inversion of its integral); 0 is the key that is asked for most. */
export function zipfTrace(seed: number): () => number {
	const random = generator(seed);
	const a = 1 - EXPONENT;
	return () => Math.floor(((KEYS ** a - 1) * random() + 1) ** (1 / a)) - 1;
}

/** Bytes of the response of a key: 200 to 8,199, whatever its rank. */
export function sizeOf(rank: number): number {
	return 200 + ((Math.imul(rank, 0x9e3779b1) >>> 0) % 8000);
}

function generator(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}
