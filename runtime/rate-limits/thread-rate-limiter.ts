/** A zone of `rate_limit` on one thread. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import {
	type Rate,
	type RateLimiter,
	type RateLimitOutcome,
	UNAVAILABLE,
	UNCOUNTED,
	UNDECIDED,
	type UnavailablePolicy,
} from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';
import type { LimitTable } from './limit-table.ts';

/** An event of a zone: the outcome of a request, a wait for Redis, or a decision without Redis. */
export type RateLimitEvent = RateLimitOutcome | 'waited' | { readonly policy: UnavailablePolicy };

export interface ThreadRateLimiterDeps {
	/** Returns the counter of an event. Called when the event occurs for the first time. */
	counterOf(event: RateLimitEvent): EventCounter;
	/**
	 * Tells the main thread to report usage to Redis. If `place` is given, the key in this slot of the table is reported at once,
	 * and the promise resolves when Redis has counted its usage or is unavailable.
	 */
	reportUsage(place: number | undefined): Promise<unknown>;
}

/** Counts requests in a shared table, by a clock that all threads and processes of the machine share. */
export class ThreadRateLimiter implements RateLimiter {
	readonly #table: LimitTable;
	readonly #deps: ThreadRateLimiterDeps;
	readonly #clock: Clock;
	readonly #counters = new Map<string, EventCounter>();
	/** Reports in progress, by slot, so that requests of one key share them. */
	readonly #reportsByPlace = new Map<number, Promise<unknown>>();
	/**
	 * The time of the system's monotonic clock, in milliseconds, when the thread started. `performance.now()` counts from then on.
	 */
	readonly #threadStartMs: number;

	constructor(table: LimitTable, deps: ThreadRateLimiterDeps, clock: Clock = SYSTEM_CLOCK) {
		this.#table = table;
		this.#deps = deps;
		this.#clock = clock;
		this.#threadStartMs = clock.monotonicNow() - clock.threadNow();
	}

	take(x: Exchange, key: string, rate: Rate, cost: number): number {
		const now = this.#threadStartMs + x.startedAt;
		const excessMs = this.#table.take(key, now, rate, cost);
		if (rate.shared === undefined) return excessMs;
		this.#tellMainThread();
		return excessMs <= rate.maxDelayMs ? excessMs : this.#reconsider(excessMs, key, now, rate, cost);
	}

	async takeAfterReport(x: Exchange, key: string, rate: Rate, cost: number): Promise<number> {
		const { waitMs } = rate.shared!;
		this.#countEvent('waited', 'waited');
		const deadline = this.#clock.threadNow() + waitMs;
		for (;;) {
			const place = this.#table.placeOf(key);
			if (place !== -1) await this.#reportWithin(place, deadline - this.#clock.threadNow());
			const now = this.#threadStartMs + this.#clock.threadNow();
			const excessMs = this.#table.take(key, now, rate, cost);
			this.#tellMainThread();
			if (excessMs <= rate.maxDelayMs) return excessMs;
			if (excessMs === UNDECIDED && (this.#clock.threadNow() >= deadline || x.isGone))
				return this.#decideAlone(key, now, rate, cost);
			const reconsidered = this.#reconsider(excessMs, key, now, rate, cost);
			if (reconsidered !== UNDECIDED) return reconsidered;
		}
	}

	charge(_x: Exchange, key: string, rate: Rate, cost: number): void {
		this.#table.charge(key, this.#threadStartMs + this.#clock.threadNow(), rate, cost);
		if (rate.shared !== undefined) this.#tellMainThread();
	}

	delay(x: Exchange, milliseconds: number): Promise<boolean> {
		return new Promise(resolve => {
			const stopTimer = this.#clock.startTimer(() => resolve(true), milliseconds);
			x.onGone(() => {
				stopTimer();
				resolve(false);
			});
		});
	}

	countOutcome(outcome: RateLimitOutcome): void {
		this.#countEvent(outcome, outcome);
	}

	#countEvent(name: string, event: RateLimitEvent): void {
		let counter = this.#counters.get(name);
		if (!counter) {
			counter = this.#deps.counterOf(event);
			this.#counters.set(name, counter);
		}
		counter.add();
	}

	/** Returns the decision about a request that the table has not admitted. */
	#reconsider(excessMs: number, key: string, now: number, rate: Rate, cost: number): number {
		const { waitMs, onError } = rate.shared!;
		const isRedisUnavailable = this.#table.unreported!.isAway(now, waitMs);
		if (excessMs === UNDECIDED)
			return isRedisUnavailable || waitMs === 0 ? this.#decideAlone(key, now, rate, cost) : UNDECIDED;
		// The table's own count may be over the limit because of requests that were admitted without Redis.
		return isRedisUnavailable && onError === 'allow' ? this.#decideAlone(key, now, rate, cost) : excessMs;
	}

	/** Decides about a request while Redis is unavailable or too slow. */
	#decideAlone(key: string, now: number, rate: Rate, cost: number): number {
		const { onError: policy } = rate.shared!;
		this.#countEvent(`alone ${policy}`, { policy });
		if (policy === 'deny') return UNAVAILABLE;
		const excessMs = this.#table.take(key, now, rate, cost, true);
		if (policy === 'local' || excessMs <= 0) return excessMs;
		// A delayed request has been counted. It runs at once, because the zone limits nothing while Redis is unavailable.
		return excessMs <= rate.maxDelayMs ? 0 : UNCOUNTED;
	}

	/** Waits until Redis has counted the usage of the key in a slot, for at most `limitMs`. */
	async #reportWithin(place: number, limitMs: number): Promise<void> {
		let report = this.#reportsByPlace.get(place);
		if (!report) {
			report = this.#deps.reportUsage(place).finally(() => this.#reportsByPlace.delete(place));
			this.#reportsByPlace.set(place, report);
		}
		const { promise: timeoutPromise, resolve } = Promise.withResolvers<void>();
		const stopTimer = this.#clock.startTimer(resolve, Math.max(0, limitMs));
		await Promise.race([report, timeoutPromise]);
		stopTimer();
	}

	/** Tells the main thread that usage must be reported, unless it has been told already. */
	#tellMainThread(): void {
		const unreported = this.#table.unreported!;
		if (!unreported.mustTell) return;
		unreported.mustTell = false;
		void this.#deps.reportUsage(undefined);
	}
}
