/** The retry budget of a pool, which keeps retries from multiplying the load of an outage. */
import type { RetryBudget as RetryBudgetSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { PoolMemory } from './pool-memory.ts';
import { millisecondsBetween } from './process-clock.ts';

/** Number of tokens that one retry takes, so that fractions of a retry can be counted. */
const RETRY = 1000;

/**
 * A token bucket that all threads share. Each request adds a fraction of a retry, each second adds some retries, and each retry
 * takes one. The bucket holds as many retries as ten seconds add, but at least ten. It starts full.
 */
export class RetryBudget {
	readonly #words: Int32Array;
	readonly #at: number;
	/** The fraction of a retry that a request adds, in thousandths. */
	readonly #share: number;
	readonly #perSecond: number;
	readonly #capacity: number;

	constructor(memory: PoolMemory, settings: RetryBudgetSettings | undefined) {
		this.#words = memory.words;
		this.#at = memory.budgetAt;
		this.#share = Math.round((settings?.ratio ?? 1) * RETRY);
		this.#perSecond = (settings?.per_second ?? 10) * RETRY;
		this.#capacity = Math.max(this.#perSecond * 10, RETRY * 10);
	}

	/** Adds a new request's fraction of a retry to the bucket. */
	request(): void {
		// The memory counts tokens taken, so that zeroed memory is a full bucket.
		if (this.#share > 0 && Atomics.load(this.#words, this.#at) > 0) Atomics.sub(this.#words, this.#at, this.#share);
	}

	/** Takes one retry from the bucket. Returns false if it holds less than that. */
	take(now: number): boolean {
		const filledAt = Atomics.load(this.#words, this.#at + 1);
		const elapsed = millisecondsBetween(filledAt, now);
		if (elapsed >= 100 && Atomics.compareExchange(this.#words, this.#at + 1, filledAt, now) === filledAt) {
			Atomics.sub(this.#words, this.#at, Math.min((elapsed * this.#perSecond) / 1000, this.#capacity) | 0);
		}
		const tokensTaken = Atomics.load(this.#words, this.#at);
		if (tokensTaken < 0) Atomics.compareExchange(this.#words, this.#at, tokensTaken, 0);
		if (Math.max(0, tokensTaken) + RETRY > this.#capacity) return false;
		Atomics.add(this.#words, this.#at, RETRY);
		return true;
	}
}
