/** Metrics of a thread's requests to upstreams, by upstream; allocates only when a series is created. */
import type { UpstreamError } from '../../compiler/exchange/leases.ts';
import { type SeriesFamily, slotsPerSeries, UPSTREAM_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** Maximum upstreams with their own series; all others share `other`, because placeholders can create any number of addresses. */
const MAX_UPSTREAMS = 1000;

interface Series {
	readonly connect: SeriesPlace;
	readonly firstByte: SeriesPlace;
	readonly total: SeriesPlace;
	readonly retries: SeriesPlace;
	readonly errors: Map<string, SeriesPlace>;
}

export class UpstreamObserver {
	readonly #pages: SeriesPages;
	readonly #upstreams = new Map<string, Series>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** Records a response head. `connectMs` is −1 for a reused connection. */
	answered(upstream: string, connectMs: number, firstByteMs: number): void {
		const series = this.#series(upstream);
		if (connectMs >= 0) observe(series.connect, UPSTREAM_FAMILIES.connect.buckets, connectMs / 1000);
		observe(series.firstByte, UPSTREAM_FAMILIES.firstByte.buckets, firstByteMs / 1000);
	}

	/** Records the end of a response. */
	ended(upstream: string, totalMs: number): void {
		observe(this.#series(upstream).total, UPSTREAM_FAMILIES.total.buckets, totalMs / 1000);
	}

	/** Records a failed request. */
	failed(upstream: string, error: UpstreamError): void {
		const { errors } = this.#series(upstream);
		let place = errors.get(error.phase);
		if (!place) {
			place = this.#allocate(UPSTREAM_FAMILIES.errors, { upstream: this.#label(upstream), kind: error.phase });
			errors.set(error.phase, place);
		}
		place.page[place.slot]!++;
	}

	/** Records a retry. */
	retried(upstream: string): void {
		const { retries } = this.#series(upstream);
		retries.page[retries.slot]!++;
	}

	#label(upstream: string): string {
		return this.#upstreams.has(upstream) ? upstream : 'other';
	}

	#series(upstream: string): Series {
		const existing = this.#upstreams.get(upstream);
		if (existing) return existing;
		if (this.#upstreams.size >= MAX_UPSTREAMS && upstream !== 'other') return this.#series('other');
		const labels = { upstream };
		const series = {
			connect: this.#allocate(UPSTREAM_FAMILIES.connect, labels),
			firstByte: this.#allocate(UPSTREAM_FAMILIES.firstByte, labels),
			total: this.#allocate(UPSTREAM_FAMILIES.total, labels),
			retries: this.#allocate(UPSTREAM_FAMILIES.retries, labels),
			errors: new Map(),
		};
		this.#upstreams.set(upstream, series);
		return series;
	}

	#allocate(family: SeriesFamily, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family.name, labels, slotsPerSeries(family));
	}
}

/** Adds a value to a histogram: to one bucket and to the sum. (Buckets become cumulative when they are scraped.) */
function observe(place: SeriesPlace, buckets: readonly number[], value: number): void {
	let bucket = 0;
	while (bucket < buckets.length && value > buckets[bucket]!) bucket++;
	place.page[place.slot + bucket]!++;
	place.page[place.slot + buckets.length + 1]! += value;
}
