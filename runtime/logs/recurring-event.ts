/** An event that may occur thousands of times per second, and is logged at most once per minute. */

/** Milliseconds between two reports. */
const REPORT_INTERVAL_MS = 60_000;

/** Counts an event, and decides when to log it: at once, and then at most once per minute. */
export class RecurringEvent {
	#unreportedCount = 0;
	#nextReportAt = Number.NEGATIVE_INFINITY;

	/**
	 * Counts an event. Returns the number of events since the last report if it is time for another one, otherwise undefined.
	 * @param now Milliseconds of a clock that does not go backward.
	 */
	count(now: number): number | undefined {
		this.#unreportedCount++;
		if (now < this.#nextReportAt) return undefined;
		const count = this.#unreportedCount;
		this.#unreportedCount = 0;
		this.#nextReportAt = now + REPORT_INTERVAL_MS;
		return count;
	}
}
