/** Measured values of which a report shows percentiles. */

/** Collects measured values, and keeps at most {@link MAX_SAMPLES} of them, evenly spaced over the whole series. */
export class Samples {
	#values: number[] = [];
	#stride = 1;
	#count = 0;
	highest = 0;

	get count(): number {
		return this.#count;
	}

	add(value: number): void {
		this.highest = Math.max(this.highest, value);
		if (this.#count++ % this.#stride !== 0) return;
		this.#values.push(value);
		if (this.#values.length < MAX_SAMPLES) return;
		this.#values = this.#values.filter((_, index) => index % 2 === 0);
		this.#stride *= 2;
	}

	/** Returns a percentile, such as the 99th; 0 without values. */
	percentile(percent: number): number {
		const sorted = [...this.#values].sort((a, b) => a - b);
		return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0;
	}
}

const MAX_SAMPLES = 200_000;
