/** A clock that all threads of the process read alike: what shared memory says of a moment means the same to each. */

/** `performance.now()` begins with its thread; this is what to add to it. */
const OFFSET = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds of the monotonic clock as 32 signed bits, wrapping; only differences mean something (see {@link since}). */
export function processNow(): number {
	return (performance.now() + OFFSET) | 0;
}

/** Milliseconds from one moment to another, of less than 24 days. */
export function since(then: number, now: number): number {
	return (now - then) | 0;
}
