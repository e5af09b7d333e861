/** A fake zone of `rate_limit` for dry runs. It has its own table, uses the clock of the request, and does not wait for delays. */
import type { Exchange } from '../exchange/exchange.ts';
import {
	computeExcessMs,
	type Rate,
	type RateLimiter,
	timeAfterCharge,
	timeAfterRequest,
} from '../modules/directives/rate-limit/rate-limiter.ts';
import { FakeExchange } from './fake-exchange.ts';

/** A limiter without a maximum number of keys. An exchange may say that its key has no requests left. */
export class FakeRateLimiter implements RateLimiter {
	readonly #zone: string | undefined;
	readonly #full = new Map<string, number>();

	constructor(zone?: string) {
		this.#zone = zone;
	}

	/** Forgets all keys. */
	reset(): void {
		this.#full.clear();
	}

	take(x: Exchange, key: string, rate: Rate, cost: number): number {
		const now = x.now();
		const isExhausted = this.#zone !== undefined && x instanceof FakeExchange && x.exhausts(this.#zone);
		const full = isExhausted ? now + rate.capacityMs : (this.#full.get(key) ?? 0);
		const result = computeExcessMs(full, now, rate, cost);
		if (result <= rate.maxDelayMs) this.#full.set(key, timeAfterRequest(full, now, rate, cost));
		return result;
	}

	charge(x: Exchange, key: string, rate: Rate, cost: number): void {
		this.#full.set(key, timeAfterCharge(this.#full.get(key) ?? 0, x.now(), rate, cost));
	}

	delay(): Promise<boolean> {
		return Promise.resolve(true);
	}

	count(): void {}
}
