/** The lease of `rate_limit`: a zone's table of keys, shared by the whole process, and the algorithm that decides. */
import type { Exchange } from '../../../exchange/exchange.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		rate_limiter: { settings: RateLimiterSettings; lease: RateLimiter };
	}
}

/** What identifies a table. Limits are not part of it, so that a reload can change them without losing counts. */
export interface RateLimiterSettings {
	readonly zone: string;
	/** Maximum number of keys in the table. */
	readonly maxKeys: number;
}

/** A limit, in milliseconds, because the table stores times. */
export interface Rate {
	/** Time after which one more request is admitted. */
	readonly interval: number;
	/** Time in which a key that has used up its burst regains all of it: `burst × interval`. */
	readonly capacity: number;
	/** Maximum time for which a request may be delayed. */
	readonly maxDelay: number;
}

/** How a zone treated a request, for metrics. */
export type RateLimitOutcome = 'admitted' | 'delayed' | 'refused' | 'would_refuse';

/** A zone's table of keys. */
export interface RateLimiter {
	/**
	 * Counts a request if it may run now or after a permitted delay. Returns milliseconds: at most 0 if it may run now, and then
	 * `-result / rate.interval` further requests may, too; otherwise the time after which it may. It has been counted if that time
	 * is at most `rate.maxDelay`.
	 */
	take(x: Exchange, key: string, rate: Rate, cost: number): number;
	/** Adds a cost to the amount used by a key, up to its burst. A negative cost is refunded. */
	charge(x: Exchange, key: string, rate: Rate, cost: number): void;
	/** Resolves after a time with true, or with false as soon as the client has disconnected. */
	delay(x: Exchange, milliseconds: number): Promise<boolean>;
	count(outcome: RateLimitOutcome): void;
}

/**
 * The generic cell rate algorithm. A key has one value, the time at which all of its burst will be available again. Each request
 * moves it forward by one interval per unit of cost, and may run unless that leads beyond `now + rate.capacity`. In any period,
 * a key therefore gets at most its burst plus one request per interval.
 *
 * @param full The key's time, in the same milliseconds as `now`.
 * @returns The same as {@link RateLimiter.take}.
 */
export function excess(full: number, now: number, rate: Rate, cost: number): number {
	// Even a request that costs nothing is refused while none could be paid for.
	const result = Math.max(full - now, 0) + Math.max(cost, 1) * rate.interval - rate.capacity;
	// Whole microseconds: a rounding error of the clock must neither refuse a request nor hide one that remains.
	return Math.round(result * 1000) / 1000;
}

/** Returns the key's time after a request of this cost. */
export function afterRequest(full: number, now: number, rate: Rate, cost: number): number {
	return Math.max(full, now) + cost * rate.interval;
}

/** Returns the key's time after a charge. */
export function afterCharge(full: number, now: number, rate: Rate, cost: number): number {
	const charged = afterRequest(full, now, rate, cost);
	return cost < 0 ? charged : Math.min(charged, Math.max(full, now + rate.capacity));
}
