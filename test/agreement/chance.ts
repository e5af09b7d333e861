/** Random choices from a seed, so that what a run has found can be found again. */

/** Choices from one seed (mulberry32). */
export class Chance {
	#state: number;

	constructor(seed: number) {
		this.#state = seed | 0;
	}

	/** A whole number from 0 to `bound` − 1. */
	below(bound: number): number {
		this.#state = (this.#state + 0x6d2b79f5) | 0;
		let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) % bound;
	}

	/** True `percent` times in a hundred. */
	happens(percent: number): boolean {
		return this.below(100) < percent;
	}

	/** One of a list. */
	of<T>(list: readonly T[]): T {
		return list[this.below(list.length)]!;
	}

	/** Several of a list, each at most once; at least one. */
	some<T>(list: readonly T[], most: number): T[] {
		const chosen = new Set<T>([this.of(list)]);
		while (chosen.size < most && this.happens(40)) chosen.add(this.of(list));
		return [...chosen];
	}

	/** From `least` to `most` times what `make` makes. */
	times<T>(least: number, most: number, make: () => T): T[] {
		return Array.from({ length: least + this.below(most - least + 1) }, make);
	}
}
