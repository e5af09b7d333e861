/** A zone of `limit_concurrent` on one thread. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { EventCounter } from '../../compiler/exchange/leases.ts';
import type {
	ConcurrencyLimit,
	ConcurrencyLimiter,
	ConcurrencyOutcome,
	ConcurrencyPlace,
} from '../../compiler/modules/directives/limit-concurrent/concurrency-limiter.ts';
import { type ConcurrencyTable, NO_PLACE } from './concurrency-table.ts';

/** Counts in a table that all threads share. */
export class ThreadConcurrencyLimiter implements ConcurrencyLimiter {
	readonly #table: ConcurrencyTable;
	readonly #counterOf: (outcome: ConcurrencyOutcome) => EventCounter;
	readonly #counters = new Map<ConcurrencyOutcome, EventCounter>();

	/** @param counterOf Returns the counter of an outcome; called once for each outcome that occurs. */
	constructor(table: ConcurrencyTable, counterOf: (outcome: ConcurrencyOutcome) => EventCounter) {
		this.#table = table;
		this.#counterOf = counterOf;
	}

	enter(
		x: Exchange,
		key: string,
		{ maxRequests: requests, maxQueued: queue, timeoutMs: timeout }: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<ConcurrencyPlace | 'timed_out' | 'left'> {
		const table = this.#table;
		const result = table.enter(key, requests, queue);
		if (result === NO_PLACE) return 'refused';
		if (result > NO_PLACE) return new Place(table, result);
		const waiter = -2 - result;
		return new Promise(resolve => {
			// True once the wait has ended. Another request may then have the same waiter number.
			let isSettled = false;
			const endWait = (outcome: 'timed_out' | 'left'): void => {
				if (isSettled || !table.cancel(waiter)) return;
				isSettled = true;
				clearTimeout(timer);
				resolve(outcome);
			};
			const timer = setTimeout(() => endWait('timed_out'), timeout);
			table.wait(waiter, slot => {
				isSettled = true;
				clearTimeout(timer);
				resolve(new Place(table, slot));
			});
			x.onGone(() => endWait('left'));
		});
	}

	countOutcome(outcome: ConcurrencyOutcome): void {
		let counter = this.#counters.get(outcome);
		if (!counter) {
			counter = this.#counterOf(outcome);
			this.#counters.set(outcome, counter);
		}
		counter.add();
	}
}

class Place implements ConcurrencyPlace {
	readonly #table: ConcurrencyTable;
	#slot: number;

	constructor(table: ConcurrencyTable, slot: number) {
		this.#table = table;
		this.#slot = slot;
	}

	leave(): void {
		const slot = this.#slot;
		if (slot === NO_PLACE) return;
		this.#slot = NO_PLACE;
		this.#table.leave(slot);
	}
}
