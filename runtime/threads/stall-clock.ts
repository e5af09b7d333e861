/**
 * Measures how long a thread has been unresponsive. Only the thread's own time counts: time during which it ran or was blocked,
 * but not time during which it waited for a processor or was suspended together with the process or machine.
 */
import { readFileSync } from 'node:fs';

/** Milliseconds between checks of a thread. */
export const CHECK_INTERVAL_MS = 500;

/** Operating system statistics of a thread. Times are totals in milliseconds since the thread started. */
export interface ThreadTimes {
	readonly ranMs: number;
	/** Time during which the thread was runnable but had no processor. */
	readonly waitedMs: number;
	/** `R` means running or waiting for a processor, `S` and `D` blocked, `T` and `t` stopped by a signal or debugger. */
	readonly state: string;
}

/** Measures how long one thread has been unresponsive. `update` must be called every {@link CHECK_INTERVAL_MS}. */
export class StallClock {
	#lastBeat = 0;
	#unansweredMs = 0;
	#lastTimes: ThreadTimes | undefined;

	/**
	 * Returns how many milliseconds of the thread's own time have passed since its last sign of life, which is a change of `beat`.
	 * `elapsedMs` is the time since the previous call, by the caller's clock. If it is long, the caller was not running either, so
	 * at most one interval is counted.
	 */
	update(beat: number, elapsedMs: number, readTimes: () => ThreadTimes | undefined): number {
		if (beat !== this.#lastBeat || beat === 0) {
			this.#lastBeat = beat;
			this.#unansweredMs = 0;
			this.#lastTimes = undefined;
			return 0;
		}
		const previousTimes = this.#lastTimes;
		const currentTimes = readTimes();
		this.#lastTimes = currentTimes;
		const maxMs = Math.min(elapsedMs, CHECK_INTERVAL_MS);
		if (currentTimes === undefined) this.#unansweredMs += maxMs;
		else if (previousTimes !== undefined) this.#unansweredMs += ownTimeMs(previousTimes, currentTimes, maxMs);
		return this.#unansweredMs;
	}
}

function ownTimeMs(previousTimes: ThreadTimes, currentTimes: ThreadTimes, maxMs: number): number {
	if (currentTimes.state === 'T' || currentTimes.state === 't') return 0;
	// The statistics of a runnable thread do not include its current wait until that wait is over.
	if (currentTimes.state === 'R') return Math.min(maxMs, currentTimes.ranMs - previousTimes.ranMs);
	return Math.max(0, maxMs - (currentTimes.waitedMs - previousTimes.waitedMs));
}

/** Reads the times of a thread of this process, by its kernel ID. Returns undefined if the system does not provide them. */
export function readThreadTimes(threadId: number): ThreadTimes | undefined {
	if (threadId === 0) return undefined;
	try {
		const folder = `/proc/self/task/${threadId}`;
		const [ran, waited] = readFileSync(`${folder}/schedstat`, 'latin1').split(' ');
		const stat = readFileSync(`${folder}/stat`, 'latin1');
		// The thread's name, in parentheses before this field, may itself contain parentheses.
		const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
		return { ranMs: Number(ran) / 1e6, waitedMs: Number(waited) / 1e6, state };
	} catch {
		return undefined;
	}
}
