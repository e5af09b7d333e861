/** The limiter that `rate_limit` leases for a zone: a process-wide table of keys, and the algorithm that admits requests. */
import type { Exchange } from '../../../exchange/exchange.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		rate_limiter: { settings: RateLimiterSettings; lease: RateLimiter };
	}
}

/** Identifies a table of keys. Limits are not included, so that a reload can change them without losing counts. */
export interface RateLimiterSettings {
	readonly zone: string;
	/** Maximum number of keys in the table. */
	readonly maxKeys: number;
	/** True if the machines of the cluster share the counts. */
	readonly isShared?: true;
}

/**
 * How requests are decided while Redis is unavailable or too slow: by the limit of this machine alone, or by admitting or refusing
 * all of them.
 */
export type UnavailablePolicy = 'local' | 'allow' | 'deny';

/** The settings of a zone whose counts the machines of a cluster share. */
export interface SharedRate {
	/** Maximum usage of a key that this machine has admitted and Redis has not counted yet: `batch × interval`. */
	readonly batchMs: number;
	/** Maximum milliseconds for which a request waits for Redis. */
	readonly waitMs: number;
	readonly onError: UnavailablePolicy;
}

/** A rate limit, expressed in milliseconds because the table stores times. */
export interface Rate {
	/** Milliseconds after which one more request is admitted. */
	readonly intervalMs: number;
	/** Milliseconds in which a key that has used up its burst regains all of it: `burst × interval`. */
	readonly capacityMs: number;
	/** Maximum milliseconds for which a request may be delayed. */
	readonly maxDelayMs: number;
	/** Present if the machines of the cluster share the counts. */
	readonly shared?: SharedRate;
}

/** Result of {@link RateLimiter.take}: the decision needs an answer from Redis. Nothing was counted. */
export const UNDECIDED = Number.POSITIVE_INFINITY;
/** Result of {@link RateLimiter.take}: Redis is unavailable, and the zone refuses requests in that case. Nothing was counted. */
export const UNAVAILABLE = Number.MAX_VALUE;
/**
 * Result of {@link RateLimiter.take}: the request may run now although it exceeds the limit, because Redis is unavailable, and the
 * zone admits all requests in that case. Nothing was counted, so nothing must be refunded.
 */
export const UNCOUNTED = Number.NEGATIVE_INFINITY;

/** How a zone treated a request, for metrics. */
export type RateLimitOutcome = 'admitted' | 'delayed' | 'refused' | 'would_refuse';

/** A zone's table of keys, which decides when requests may run. */
export interface RateLimiter {
	/**
	 * Counts a request if it may run now or after a permitted delay. Returns the milliseconds until the request may run. If the result
	 * exceeds `rate.maxDelayMs`, the request has not been counted. If the result is 0 or negative, the request may run now, and so may
	 * `-result / rate.intervalMs` further requests. The result can also be {@link UNDECIDED}, {@link UNAVAILABLE} or
	 * {@link UNCOUNTED} if `rate.shared` is present.
	 */
	take(x: Exchange, key: string, rate: Rate, cost: number): number;
	/**
	 * Waits until Redis has counted what this machine has admitted, and then decides like {@link take}. Must be called after `take` has
	 * returned {@link UNDECIDED}; never resolves to it.
	 */
	takeAfterReport(x: Exchange, key: string, rate: Rate, cost: number): Promise<number>;
	/** Adds a cost to the amount used by a key, up to its burst. A negative cost is a refund. */
	charge(x: Exchange, key: string, rate: Rate, cost: number): void;
	/** Resolves to true after a number of milliseconds, or to false as soon as the client has disconnected. */
	delay(x: Exchange, milliseconds: number): Promise<boolean>;
	countOutcome(outcome: RateLimitOutcome): void;
}

/** Maximum milliseconds by which {@link computeExcessMs} rounds its result, with some reserve for inexact clock values. */
export const EXCESS_ROUNDING_MS = 0.001;

/**
 * Decides by the generic cell rate algorithm. The only state of a key is the time at which its full burst will be available again.
 * Each request moves this time forward by one interval per unit of cost. A request may run unless the time would be later than
 * `nowMs + rate.capacityMs`. In any period, a key therefore gets at most its burst plus one request per interval.
 *
 * @param fullAtMs Time at which the key's full burst is available again, in milliseconds of the same clock as `nowMs`.
 * @returns The same as {@link RateLimiter.take}.
 */
export function computeExcessMs(fullAtMs: number, nowMs: number, rate: Rate, cost: number): number {
	// A request with cost 0 is refused whenever a request with cost 1 would be.
	const excessMs = Math.max(fullAtMs - nowMs, 0) + Math.max(cost, 1) * rate.intervalMs - rate.capacityMs;
	// Rounded to microseconds, so that inexact clock values do not change the decision.
	return Math.round(excessMs * 1000) / 1000;
}

/** Returns the new `fullAtMs` of a key after a request with a cost. */
export function fullAtAfterRequest(fullAtMs: number, nowMs: number, rate: Rate, cost: number): number {
	return Math.max(fullAtMs, nowMs) + cost * rate.intervalMs;
}

/** Returns the new `fullAtMs` of a key after a charge or, if the cost is negative, a refund. */
export function fullAtAfterCharge(fullAtMs: number, nowMs: number, rate: Rate, cost: number): number {
	const chargedFullAtMs = fullAtAfterRequest(fullAtMs, nowMs, rate, cost);
	return cost < 0 ? chargedFullAtMs : Math.min(chargedFullAtMs, Math.max(fullAtMs, nowMs + rate.capacityMs));
}
