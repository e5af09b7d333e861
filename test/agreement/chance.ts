/** Random choices from a seed, so that a failing run can be repeated. */

/** A seeded random number generator (mulberry32). */
export class SeededChance {
	#state: number;

	constructor(seed: number) {
		this.#state = seed | 0;
	}

	/** Returns a random integer from 0 to `bound` − 1. */
	below(bound: number): number {
		this.#state = (this.#state + 0x6d2b79f5) | 0;
		let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) % bound;
	}

	/** Returns true with a probability of `percent` %. */
	happens(percent: number): boolean {
		return this.below(100) < percent;
	}

	/** Returns a random item of a list. */
	of<T>(list: readonly T[]): T {
		return list[this.below(list.length)]!;
	}

	/** Returns a random selection of a list's items: at least one and at most `most`, each only once. */
	some<T>(list: readonly T[], most: number): T[] {
		const chosen = new Set<T>([this.of(list)]);
		while (chosen.size < most && this.happens(40)) chosen.add(this.of(list));
		return [...chosen];
	}

	/** Calls `make` between `least` and `most` times, and returns the results. */
	repeat<T>(least: number, most: number, make: () => T): T[] {
		return Array.from({ length: least + this.below(most - least + 1) }, make);
	}
}
