/** Chance that repeats: the same series of numbers for the same seed. */

/** A generator of numbers (xorshift32). */
export class Chance {
	#state: number;

	constructor(seed: number) {
		// Seeds next to each other begin far from each other, and none stands still.
		this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13)) | 1;
	}

	/** From 0 to `limit`, which is not reached. */
	below(limit: number): number {
		this.#state ^= this.#state << 13;
		this.#state ^= this.#state >>> 17;
		this.#state ^= this.#state << 5;
		return (this.#state >>> 0) % limit;
	}

	/** True once in so many times. */
	once(times: number): boolean {
		return this.below(times) === 0;
	}

	/** One of a list that is not empty. */
	of<T>(values: readonly T[]): T {
		return values[this.below(values.length)]!;
	}
}
