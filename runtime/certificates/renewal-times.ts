/** When certificates are renewed, and how long to wait after failures. */

/** Part of a life that is left when a certificate is renewed, if nothing is said. */
export const RENEWAL_RATIO: number = 1 / 3;

/** A certificate's life in milliseconds since the epoch. */
export interface Life {
	readonly notBefore: number;
	readonly notAfter: number;
}

/**
 * When to renew: when `ratio` of the life is left, or up to a twentieth of that part earlier, so that certificates of one
 * day are not renewed in one minute. `chance` is from 0 to 1.
 */
export function renewalTime({ notBefore, notAfter }: Life, ratio: number, chance: number): number {
	const window = (notAfter - notBefore) * ratio;
	return notAfter - window - (window / 20) * chance;
}

const MINUTE = 60_000;
/** Milliseconds after so many failures in a row. */
const WAITS: readonly number[] = [
	...[1, 2, 2, 5, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30, 30, 30].map(minutes => minutes * MINUTE),
	...[60, 60, 120, 120, 180, 180, 360].map(minutes => minutes * MINUTE),
];
/** For so long failures are answered by trying again, in milliseconds: 30 days. */
const PATIENCE = 30 * 24 * 60 * MINUTE;
/** What is tried after that, in milliseconds: once a day. */
const RESIGNED = 24 * 60 * MINUTE;

/**
 * Milliseconds to wait after the `failures`-th failure in a row, a tenth more or less by chance (from 0 to 1). `trying` is
 * how long there have been failures.
 */
export function backOff(failures: number, trying: number, chance: number): number {
	const wait = trying > PATIENCE ? RESIGNED : WAITS[Math.min(Math.max(failures, 1), WAITS.length) - 1]!;
	return wait * (0.9 + 0.2 * chance);
}
