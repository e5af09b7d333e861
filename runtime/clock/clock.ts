/**
 * Clocks and timers for code whose decisions depend on time. A simulation of many machines has its own implementation of them.
 */

/** A source of time and of timers. All times are in milliseconds. */
export interface Clock {
	/** Returns the time since the thread started, as `performance.now()` does. */
	threadNow(): number;
	/** Returns the time by a monotonic clock that all threads and processes of the machine share. */
	monotonicNow(): number;
	/**
	 * Calls `callback` once after a delay, unless the returned function is called first.
	 * @param keepsProcess False if the process may end before the timer has expired.
	 */
	startTimer(callback: () => void, delayMs: number, keepsProcess?: boolean): () => void;
	/** Calls `callback` once, after all events that are already due have been handled. */
	callSoon(callback: () => void): void;
}

/** Returns the time in milliseconds, by a monotonic clock that all processes of the machine share. */
export function monotonicNowMs(): number {
	return Number(process.hrtime.bigint()) / 1e6;
}

/** The clock of the system that the process runs on. */
export const SYSTEM_CLOCK: Clock = {
	threadNow: () => performance.now(),
	monotonicNow: monotonicNowMs,
	startTimer(callback, delayMs, keepsProcess = true) {
		const timer = setTimeout(callback, delayMs);
		if (!keepsProcess) timer.unref();
		return () => clearTimeout(timer);
	},
	callSoon(callback) {
		setImmediate(callback);
	},
};
