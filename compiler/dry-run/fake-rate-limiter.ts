/** A fake `rate_limit` zone for dry runs. It keeps its own table, uses the clock of the request, and skips delays. */
import type { Exchange } from '../exchange/exchange.ts';
import {
	computeExcessMs,
	fullAtAfterCharge,
	fullAtAfterRequest,
	type Rate,
	type RateLimiter,
} from '../modules/directives/rate-limit/rate-limiter.ts';
import { FakeExchange } from './fake-exchange.ts';

/**
 * A rate limiter without a maximum number of keys. If the script of an exchange declares its zone exhausted, the client has no
 * requests left.
 */
export class FakeRateLimiter implements RateLimiter {
	readonly #zone: string | undefined;
	readonly #fullAtMsByKey = new Map<string, number>();

	constructor(zone?: string) {
		this.#zone = zone;
	}

	/** Forgets all keys. */
	reset(): void {
		this.#fullAtMsByKey.clear();
	}

	take(x: Exchange, key: string, rate: Rate, cost: number): number {
		const nowMs = x.now();
		const isExhausted = this.#zone !== undefined && x instanceof FakeExchange && x.isZoneExhausted(this.#zone);
		const fullAtMs = isExhausted ? nowMs + rate.capacityMs : (this.#fullAtMsByKey.get(key) ?? 0);
		const excessMs = computeExcessMs(fullAtMs, nowMs, rate, cost);
		if (excessMs <= rate.maxDelayMs) this.#fullAtMsByKey.set(key, fullAtAfterRequest(fullAtMs, nowMs, rate, cost));
		return excessMs;
	}

	/** Returns the result of {@link take}, because a dry run has no other machines whose reports it would wait for. */
	takeAfterReport(x: Exchange, key: string, rate: Rate, cost: number): Promise<number> {
		return Promise.resolve(this.take(x, key, rate, cost));
	}

	charge(x: Exchange, key: string, rate: Rate, cost: number): void {
		this.#fullAtMsByKey.set(key, fullAtAfterCharge(this.#fullAtMsByKey.get(key) ?? 0, x.now(), rate, cost));
	}

	delay(): Promise<boolean> {
		return Promise.resolve(true);
	}

	countOutcome(): void {}
}
