/** Watches one thread from the main thread: whether it still responds, and what it was doing if it does not. */

import { readThreadTimes, StallClock } from './stall-clock.ts';
import { ThreadActivity } from './thread-activity.ts';

/** A thread is considered unresponsive after this many milliseconds of its own time without a sign of life. */
const UNRESPONSIVE_AFTER_MS = 2000;
/** A thread is replaced after this many milliseconds of its own time without a sign of life. */
const OVERDUE_AFTER_MS = 4000;
/** Tolerance in milliseconds. If checks run slightly early, the measured times add up to slightly less than the limit. */
const CHECK_TOLERANCE_MS = 50;

/** Milliseconds that a thread is given to terminate. A thread blocked in a system call that never returns cannot terminate. */
export const THREAD_END_LIMIT_MS = 2000;

/** Tracks whether one thread responds, from its start to its end. */
export class ThreadWatch {
	readonly activity = new ThreadActivity();
	readonly #stallClock = new StallClock();
	/** Number of milliseconds of the thread's own time since its last sign of life, at the last check. */
	unansweredMs = 0;

	/** Checks the thread. `elapsedMs` is the time since the last check. */
	check(elapsedMs: number): void {
		const { beat, threadId } = this.activity.read();
		this.unansweredMs = this.#stallClock.update(beat, elapsedMs, () => readThreadTimes(threadId));
	}

	/** Whether the thread has been silent for so long that nothing should wait for it. */
	get isUnresponsive(): boolean {
		return this.unansweredMs >= UNRESPONSIVE_AFTER_MS - CHECK_TOLERANCE_MS;
	}

	/** Whether the thread has been silent for so long that it must be replaced. */
	get isOverdue(): boolean {
		return this.unansweredMs >= OVERDUE_AFTER_MS - CHECK_TOLERANCE_MS;
	}

	get isBuilding(): boolean {
		return this.activity.read().phase === 'build';
	}

	/** Log fields that describe an unresponsive thread: for how long it has not responded, and what it was doing. */
	get logFields(): { readonly [name: string]: unknown } {
		const { phase, request, isRequestNew } = this.activity.read();
		return {
			unanswered_ms: Math.round(this.unansweredMs),
			doing: phase === 'requests' && isRequestNew ? 'request' : phase,
			[isRequestNew ? 'request' : 'last_request']: request,
		};
	}
}
