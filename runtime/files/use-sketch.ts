/** How often something was asked for lately, roughly and in bounded memory (Einziger, Friedman and Manes, TinyLFU, 2017). */

/** Counters of each of the two rows. */
const COUNTERS = 1 << 16;
const MOST = 255;
/** Requests after which every count is halved: what was popular once must not be for ever. */
const AGE = COUNTERS * 8;

/** Counts by hash. Others with a like hash make a count too large, never too small. */
export class UseSketch {
	readonly #counts = new Uint8Array(COUNTERS * 2);
	#added = 0;

	/** One time more. */
	add(hash: number): void {
		const counts = this.#counts;
		const one = hash & (COUNTERS - 1);
		const two = COUNTERS + other(hash);
		if (counts[one]! < MOST) counts[one]!++;
		if (counts[two]! < MOST) counts[two]!++;
		if (++this.#added === AGE) this.#halve();
	}

	/** How many times lately. */
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
