/** Approximate recent popularity in bounded memory (Einziger, Friedman and Manes, TinyLFU, 2017). */

/** Number of counters in each of the two rows. */
const COUNTERS = 1 << 16;
const MOST = 255;
/** Number of requests after which all counters are halved, so that popularity decays. */
const AGE = COUNTERS * 8;

/** Counts by hash. Collisions make a count too large, never too small. */
export class UseSketch {
	readonly #counts = new Uint8Array(COUNTERS * 2);
	#added = 0;

	/** Counts a use. */
	add(hash: number): void {
		const counts = this.#counts;
		const one = hash & (COUNTERS - 1);
		const two = COUNTERS + other(hash);
		if (counts[one]! < MOST) counts[one]!++;
		if (counts[two]! < MOST) counts[two]!++;
		if (++this.#added === AGE) this.#halve();
	}

	/** Returns the number of recent uses. */
	of(hash: number): number {
		return Math.min(this.#counts[hash & (COUNTERS - 1)]!, this.#counts[COUNTERS + other(hash)]!);
	}

	#halve(): void {
		this.#added = 0;
		const counts = this.#counts;
		for (let i = 0; i < counts.length; i++) counts[i] = counts[i]! >>> 1;
	}
}

function other(hash: number): number {
	return Math.imul(hash, 0x9e3779b1) >>> 16;
}
