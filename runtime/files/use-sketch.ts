/** Estimates in bounded memory how popular each file has been recently (Einziger, Friedman and Manes, TinyLFU, 2017). */

/**
 * Number of counters in each of the two rows. The rows use different hashes, and the smaller of a file's two counters is its
 * estimate.
 */
const COUNTERS_PER_ROW = 1 << 16;
const MAX_COUNT = 255;
/** Number of requests after which all counters are halved, so that popularity decays. */
const HALVING_INTERVAL_USES = COUNTERS_PER_ROW * 8;

/** Counts by hash. Collisions make a count too large, never too small. */
export class UseSketch {
	readonly #counts = new Uint8Array(COUNTERS_PER_ROW * 2);
	#usesSinceHalving = 0;

	/** Counts a use of the file with this hash. */
	add(hash: number): void {
		const counts = this.#counts;
		const firstSlot = hash & (COUNTERS_PER_ROW - 1);
		const secondSlot = COUNTERS_PER_ROW + secondHash(hash);
		if (counts[firstSlot]! < MAX_COUNT) counts[firstSlot]!++;
		if (counts[secondSlot]! < MAX_COUNT) counts[secondSlot]!++;
		if (++this.#usesSinceHalving === HALVING_INTERVAL_USES) this.#halve();
	}

	/** Returns an estimate of the number of recent uses of the file with this hash. */
	estimate(hash: number): number {
		return Math.min(this.#counts[hash & (COUNTERS_PER_ROW - 1)]!, this.#counts[COUNTERS_PER_ROW + secondHash(hash)]!);
	}

	#halve(): void {
		this.#usesSinceHalving = 0;
		const counts = this.#counts;
		for (let i = 0; i < counts.length; i++) counts[i] = counts[i]! >>> 1;
	}
}

function secondHash(hash: number): number {
	return Math.imul(hash, 0x9e3779b1) >>> 16;
}
