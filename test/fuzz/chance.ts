/** Random numbers from a seed, so that a failing run can be repeated. */

/** A seeded pseudorandom generator (xorshift32). */
export class SeededChance {
	#state: number;

	constructor(seed: number) {
		// Neighboring seeds must start far apart, and the state must not be zero.
		this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13)) | 1;
	}

	/** Returns a random integer from 0 to `limit` − 1. */
	below(limit: number): number {
		this.#state ^= this.#state << 13;
		this.#state ^= this.#state >>> 17;
		this.#state ^= this.#state << 5;
		return (this.#state >>> 0) % limit;
	}

	/** Returns true once in `times` calls on average. */
	once(times: number): boolean {
		return this.below(times) === 0;
	}

	/** Returns a random item of a nonempty list. */
	of<T>(values: readonly T[]): T {
		return values[this.below(values.length)]!;
	}
}
