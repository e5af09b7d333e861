/** The events that modules count. Each worker thread has its own counters, and `/metrics` and the Admin API show the sums. */
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import type { ConcurrencyOutcome } from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import type { MirrorCounts } from '../../compiler/modules/directives/mirror/mirror-gate.ts';
import type { RateLimitEvent } from '../rate-limits/thread-rate-limiter.ts';
import { MODULE_FAMILIES } from './families.ts';
import type { SeriesPages } from './series-pages.ts';
import type { ThreadTotals } from './thread-totals.ts';

/** A thread's counters. They exist as long as the thread does, so that loading a configuration does not reset them. */
export class ModuleCounters {
	readonly #pages: SeriesPages;
	readonly #countersByLabels = new Map<string, EventCounter>();

	constructor(pages: SeriesPages) {
		this.#pages = pages;
	}

	eventCounter(event: string): EventCounter {
		return this.#counterOf(MODULE_FAMILIES.events.name, { event });
	}

	rateLimitCounter(zone: string, event: RateLimitEvent): EventCounter {
		if (event === 'waited') return this.#counterOf(MODULE_FAMILIES.rateLimitWaits.name, { zone });
		if (typeof event === 'object') return this.#counterOf(MODULE_FAMILIES.rateLimitFallbacks.name, { zone, ...event });
		return this.#counterOf(MODULE_FAMILIES.rateLimits.name, { zone, outcome: event });
	}

	/** Returns the counters of mirrored requests, that is, of copies of requests that are sent to an additional upstream. */
	mirrorCounters(upstream: string): MirrorCounts {
		return {
			countSent: outcome => this.#counterOf(MODULE_FAMILIES.mirrored.name, { upstream, outcome }).add(),
			countDropped: reason => this.#counterOf(MODULE_FAMILIES.mirrorDrops.name, { upstream, reason }).add(),
		};
	}

	/** Returns the counter of the requests that a pool has refused because its upstreams were overloaded. */
	shedCounter(pool: string): EventCounter {
		return this.#counterOf(MODULE_FAMILIES.shed.name, { pool });
	}

	/** Returns the counter of the requests of a `limit_concurrent` zone that had the given outcome. */
	concurrencyLimitCounter(zone: string, outcome: ConcurrencyOutcome): EventCounter {
		return this.#counterOf(MODULE_FAMILIES.concurrencyLimits.name, { zone, outcome });
	}

	#counterOf(family: string, labels: { readonly [name: string]: string }): EventCounter {
		const key = JSON.stringify([family, labels]);
		let counter = this.#countersByLabels.get(key);
		if (!counter) {
			const { page, slot } = this.#pages.allocate(family, labels, 1);
			counter = {
				add: () => {
					page[slot]!++;
				},
			};
			this.#countersByLabels.set(key, counter);
		}
		return counter;
	}
}

/** Returns how often an event has happened, summed over all threads. */
export function moduleEvents(totals: ThreadTotals, event: string): number {
	let count = 0;
	totals.forEachSeries(MODULE_FAMILIES.events.name, (labels, values) => {
		if (labels.event === event) count = values[0]!;
	});
	return count;
}
