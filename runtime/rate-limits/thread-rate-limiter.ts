/** A zone of `rate_limit` on one thread. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import type { Rate, RateLimiter, RateLimitOutcome } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { LimitTable } from './limit-table.ts';

/** Counts in a shared table, by a clock that all threads and processes of the machine share. */
export class ThreadRateLimiter implements RateLimiter {
	readonly #table: LimitTable;
	readonly #counterOf: (outcome: RateLimitOutcome) => EventCounter;
	readonly #counters = new Map<RateLimitOutcome, EventCounter>();
	/**
	 * The time of the system's monotonic clock, in milliseconds, when the thread started. `performance.now()` counts from then on.
	 */
	readonly #threadStart = Number(process.hrtime.bigint()) / 1e6 - performance.now();

	/** @param counterOf Returns the counter of an outcome; called once for each outcome that occurs. */
	constructor(table: LimitTable, counterOf: (outcome: RateLimitOutcome) => EventCounter) {
		this.#table = table;
		this.#counterOf = counterOf;
	}

	take(x: Exchange, key: string, rate: Rate, cost: number): number {
		return this.#table.take(key, this.#threadStart + x.startedAt, rate, cost);
	}

	charge(_x: Exchange, key: string, rate: Rate, cost: number): void {
		this.#table.charge(key, this.#threadStart + performance.now(), rate, cost);
	}

	delay(x: Exchange, milliseconds: number): Promise<boolean> {
		return new Promise(resolve => {
			const timer = setTimeout(() => resolve(true), milliseconds);
			x.onGone(() => {
				clearTimeout(timer);
				resolve(false);
			});
		});
	}

	countOutcome(outcome: RateLimitOutcome): void {
		let counter = this.#counters.get(outcome);
		if (!counter) {
			counter = this.#counterOf(outcome);
			this.#counters.set(outcome, counter);
		}
		counter.add();
	}
}
