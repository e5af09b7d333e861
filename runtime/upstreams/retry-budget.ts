/** The retry budget of a pool: retries may not multiply what an outage already costs. */
import type { RetryBudget as RetryBudgetSettings } from '../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import type { PoolMemory } from './pool-memory.ts';
import { since } from './process-clock.ts';

/** Thousandths of a retry: what tokens are counted in. */
const RETRY = 1000;

/**
 * A bucket of tokens that all threads share: each request puts a share of a retry in, each second a few whole ones, and each
 * retry takes one out. It holds ten seconds' worth of the latter, and ten retries at least, and begins full.
 */
export class RetryBudget {
	readonly #words: Int32Array;
	readonly #at: number;
	/** Thousandths that a request brings. */
	readonly #share: number;
	readonly #perSecond: number;
	readonly #most: number;

	constructor(memory: PoolMemory, settings: RetryBudgetSettings | undefined) {
		this.#words = memory.words;
		this.#at = memory.budgetAt;
		this.#share = Math.round((settings?.ratio ?? 1) * RETRY);
		this.#perSecond = (settings?.per_second ?? 10) * RETRY;
		this.#most = Math.max(this.#perSecond * 10, RETRY * 10);
	}

	/** A request has come. */
	request(): void {
		// What stands in memory is what was taken: so it begins full without anybody filling it.
		if (this.#share > 0 && Atomics.load(this.#words, this.#at) > 0) Atomics.sub(this.#words, this.#at, this.#share);
	}

	/** Takes a retry out; false when there is none. */
	take(now: number): boolean {
		const filledAt = Atomics.load(this.#words, this.#at + 1);
		const elapsed = since(filledAt, now);
		if (elapsed >= 100 && Atomics.compareExchange(this.#words, this.#at + 1, filledAt, now) === filledAt) {
			Atomics.sub(this.#words, this.#at, Math.min((elapsed * this.#perSecond) / 1000, this.#most) | 0);
		}
		const taken = Atomics.load(this.#words, this.#at);
		if (taken < 0) Atomics.compareExchange(this.#words, this.#at, taken, 0);
		if (Math.max(0, taken) + RETRY > this.#most) return false;
		Atomics.add(this.#words, this.#at, RETRY);
		return true;
	}
}
