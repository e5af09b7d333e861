/** A clock that all threads of the process share, for times in shared memory. */

/** Milliseconds to add to `performance.now()`, which starts at 0 in each thread, to get the process's common time. */
const CLOCK_OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * Returns milliseconds of the monotonic clock as a wrapping 32-bit integer; only differences between two values are meaningful
 * (see {@link millisecondsBetween}).
 */
export function processClockNow(): number {
	return (performance.now() + CLOCK_OFFSET_MS) | 0;
}

/** Returns the milliseconds between two times less than 24 days apart. */
export function millisecondsBetween(earlier: number, now: number): number {
	return (now - earlier) | 0;
}
