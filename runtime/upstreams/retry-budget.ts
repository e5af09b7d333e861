/** The retry budget of a pool, which keeps retries from multiplying the load of an outage. */
import type { RetryBudget as RetryBudgetSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { PoolMemory } from './pool-memory.ts';
import { millisecondsBetween } from './process-clock.ts';

/** Number of tokens that one retry takes, so that fractions of a retry can be counted. */
const TOKENS_PER_RETRY = 1000;

/**
 * A token bucket that all threads share. Each request adds a fraction of a retry, each second adds some retries, and each retry
 * takes one. The bucket holds as many retries as ten seconds add, but at least ten. It starts full.
 */
export class RetryBudget {
	readonly #words: Int32Array;
	readonly #budgetIndex: number;
	/** The fraction of a retry that a request adds, in thousandths. */
	readonly #tokensPerRequest: number;
	readonly #tokensPerSecond: number;
	readonly #capacityTokens: number;

	constructor(memory: PoolMemory, settings: RetryBudgetSettings | undefined) {
		this.#words = memory.words;
		this.#budgetIndex = memory.budgetIndex;
		this.#tokensPerRequest = Math.round((settings?.ratio ?? 1) * TOKENS_PER_RETRY);
		this.#tokensPerSecond = (settings?.per_second ?? 10) * TOKENS_PER_RETRY;
		this.#capacityTokens = Math.max(this.#tokensPerSecond * 10, TOKENS_PER_RETRY * 10);
	}

	/** Adds a new request's fraction of a retry to the bucket. */
	addRequest(): void {
		// The shared memory contains the number of tokens taken, so that memory full of zeros means a full bucket.
		if (this.#tokensPerRequest > 0 && Atomics.load(this.#words, this.#budgetIndex) > 0)
			Atomics.sub(this.#words, this.#budgetIndex, this.#tokensPerRequest);
	}

	/** Takes one retry from the bucket. Returns false if the bucket does not hold a whole retry. */
	takeRetry(now: number): boolean {
		const filledAt = Atomics.load(this.#words, this.#budgetIndex + 1);
		const elapsedMs = millisecondsBetween(filledAt, now);
		if (elapsedMs >= 100 && Atomics.compareExchange(this.#words, this.#budgetIndex + 1, filledAt, now) === filledAt) {
			Atomics.sub(
				this.#words,
				this.#budgetIndex,
				Math.min((elapsedMs * this.#tokensPerSecond) / 1000, this.#capacityTokens) | 0,
			);
		}
		const tokensTaken = Atomics.load(this.#words, this.#budgetIndex);
		if (tokensTaken < 0) Atomics.compareExchange(this.#words, this.#budgetIndex, tokensTaken, 0);
		if (Math.max(0, tokensTaken) + TOKENS_PER_RETRY > this.#capacityTokens) return false;
		Atomics.add(this.#words, this.#budgetIndex, TOKENS_PER_RETRY);
		return true;
	}
}
