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

/** Counts requests in a table that all threads share. */
export class ThreadConcurrencyLimiter implements ConcurrencyLimiter {
	readonly #table: ConcurrencyTable;
	readonly #counterOf: (outcome: ConcurrencyOutcome) => EventCounter;
	readonly #countersByOutcome = new Map<ConcurrencyOutcome, EventCounter>();

	/** @param counterOf Returns the counter of an outcome; called once for each outcome that occurs. */
	constructor(table: ConcurrencyTable, counterOf: (outcome: ConcurrencyOutcome) => EventCounter) {
		this.#table = table;
		this.#counterOf = counterOf;
	}

	enter(
		x: Exchange,
		key: string,
		{ maxRequests: maxRunning, maxQueued: maxWaiting, timeoutMs: waitLimitMs }: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<ConcurrencyPlace | 'timed_out' | 'left'> {
		const table = this.#table;
		const slotOrWaiter = table.enter(key, maxRunning, maxWaiting);
		if (slotOrWaiter === NO_PLACE) return 'refused';
		if (slotOrWaiter > NO_PLACE) return new TablePlace(table, slotOrWaiter);
		const waiter = -2 - slotOrWaiter;
		return new Promise(resolve => {
			// True once the wait has ended. After that, another request may have the same number.
			let isSettled = false;
			const endWait = (outcome: 'timed_out' | 'left'): void => {
				if (isSettled || !table.cancel(waiter)) return;
				isSettled = true;
				clearTimeout(timer);
				resolve(outcome);
			};
			const timer = setTimeout(() => endWait('timed_out'), waitLimitMs);
			table.wait(waiter, slot => {
				isSettled = true;
				clearTimeout(timer);
				resolve(new TablePlace(table, slot));
			});
			x.onGone(() => endWait('left'));
		});
	}

	countOutcome(outcome: ConcurrencyOutcome): void {
		let counter = this.#countersByOutcome.get(outcome);
		if (!counter) {
			counter = this.#counterOf(outcome);
			this.#countersByOutcome.set(outcome, counter);
		}
		counter.add();
	}
}

class TablePlace implements ConcurrencyPlace {
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
