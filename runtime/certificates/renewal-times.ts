/** Renewal times and retry delays. */

/** Default fraction of a certificate's lifetime that remains when it is renewed. */
export const DEFAULT_RENEWAL_RATIO: number = 1 / 3;

/** The validity of a certificate, in milliseconds since the epoch. */
export interface ValidityPeriod {
	readonly notBefore: number;
	readonly notAfter: number;
}

/**
 * Returns when to renew: when `ratio` of the lifetime remains, or earlier by up to 5% of this remaining time, so that certificates
 * issued together are not renewed all at once. `chance` is a random number from 0 to 1.
 */
export function renewalTime({ notBefore, notAfter }: ValidityPeriod, ratio: number, chance: number): number {
	const renewalWindowMs = (notAfter - notBefore) * ratio;
	return notAfter - renewalWindowMs - (renewalWindowMs / 20) * chance;
}

const MINUTE_MS = 60_000;
/** Delays in milliseconds, by the number of consecutive failures. */
const RETRY_DELAYS_MS: readonly number[] = [
	...[1, 2, 2, 5, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30, 30, 30].map(minutes => minutes * MINUTE_MS),
	...[60, 60, 120, 120, 180, 180, 360].map(minutes => minutes * MINUTE_MS),
];
/** Milliseconds after the first failure during which retries are frequent: 30 days. */
const FREQUENT_RETRIES_MS = 30 * 24 * 60 * MINUTE_MS;
/** Delay between retries after {@link FREQUENT_RETRIES_MS}, in milliseconds: one day. */
const LATE_RETRY_MS = 24 * 60 * MINUTE_MS;

/**
 * Returns the delay in milliseconds after a number of consecutive failures, with a jitter of 10%. `failingMs` is the time since
 * the first of these failures; `chance` is a random number from 0 to 1.
 */
export function retryDelay(failureCount: number, failingMs: number, chance: number): number {
	const delayMs =
		failingMs > FREQUENT_RETRIES_MS
			? LATE_RETRY_MS
			: RETRY_DELAYS_MS[Math.min(Math.max(failureCount, 1), RETRY_DELAYS_MS.length) - 1]!;
	return delayMs * (0.9 + 0.2 * chance);
}
