/** Metrics of a thread's requests to upstreams, by upstream; allocates only when a series is created. */
import type { UpstreamError } from '../../compiler/exchange/leases.ts';
import { type SeriesFamily, slotsPerSeries, UPSTREAM_FAMILIES } from '../metrics/families.ts';
import type { SeriesPages, SeriesPlace } from '../metrics/series-pages.ts';

/** Maximum upstreams with their own series; all others share `other`, because placeholders can create any number of addresses. */
const MAX_UPSTREAMS = 1000;

interface UpstreamSeries {
	readonly connect: SeriesPlace;
	readonly firstByte: SeriesPlace;
	readonly total: SeriesPlace;
	readonly retries: SeriesPlace;
	readonly errors: Map<string, SeriesPlace>;
}

export class UpstreamObserver {
	readonly #pages: SeriesPages;
	readonly #seriesByUpstream = new Map<string, UpstreamSeries>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	/** Records a response head. `connectMs` is −1 for a reused connection. */
	recordResponse(upstream: string, connectMs: number, firstByteMs: number): void {
		const series = this.#seriesOf(upstream);
		if (connectMs >= 0) addToHistogram(series.connect, UPSTREAM_FAMILIES.connect.buckets, connectMs / 1000);
		addToHistogram(series.firstByte, UPSTREAM_FAMILIES.firstByte.buckets, firstByteMs / 1000);
	}

	/** Records the end of a response. */
	recordEnd(upstream: string, totalMs: number): void {
		addToHistogram(this.#seriesOf(upstream).total, UPSTREAM_FAMILIES.total.buckets, totalMs / 1000);
	}

	recordFailure(upstream: string, error: UpstreamError): void {
		const { errors } = this.#seriesOf(upstream);
		let place = errors.get(error.phase);
		if (!place) {
			place = this.#allocate(UPSTREAM_FAMILIES.errors, { upstream: this.#labelOf(upstream), kind: error.phase });
			errors.set(error.phase, place);
		}
		place.page[place.slot]!++;
	}

	recordRetry(upstream: string): void {
		const { retries } = this.#seriesOf(upstream);
		retries.page[retries.slot]!++;
	}

	#labelOf(upstream: string): string {
		return this.#seriesByUpstream.has(upstream) ? upstream : 'other';
	}

	#seriesOf(upstream: string): UpstreamSeries {
		const existing = this.#seriesByUpstream.get(upstream);
		if (existing) return existing;
		if (this.#seriesByUpstream.size >= MAX_UPSTREAMS && upstream !== 'other') return this.#seriesOf('other');
		const labels = { upstream };
		const series = {
			connect: this.#allocate(UPSTREAM_FAMILIES.connect, labels),
			firstByte: this.#allocate(UPSTREAM_FAMILIES.firstByte, labels),
			total: this.#allocate(UPSTREAM_FAMILIES.total, labels),
			retries: this.#allocate(UPSTREAM_FAMILIES.retries, labels),
			errors: new Map(),
		};
		this.#seriesByUpstream.set(upstream, series);
		return series;
	}

	#allocate(family: SeriesFamily, labels: { readonly [name: string]: string }): SeriesPlace {
		return this.#pages.allocate(family.name, labels, slotsPerSeries(family));
	}
}

/** Adds a value to a histogram: to one bucket and to the sum. (Buckets become cumulative when they are scraped.) */
function addToHistogram(place: SeriesPlace, buckets: readonly number[], value: number): void {
	let bucket = 0;
	while (bucket < buckets.length && value > buckets[bucket]!) bucket++;
	place.page[place.slot + bucket]!++;
	place.page[place.slot + buckets.length + 1]! += value;
}
