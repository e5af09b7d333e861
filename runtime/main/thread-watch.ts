/** Watches one thread from the main thread: whether it responds, and what it was doing when it stopped. */

import { ThreadActivity } from '../threads/thread-activity.ts';
import { readThreadTimes, StallClock } from './stall-clock.ts';

/** Milliseconds of its own time without a sign of life after which a thread is unresponsive. */
const UNRESPONSIVE_AFTER = 2000;
/** Milliseconds of its own time without a sign of life after which it is replaced. */
const OVERDUE_AFTER = 4000;
/** Tolerated milliseconds: checks that come slightly early add up to slightly less time. */
const TOLERANCE = 50;

/** Milliseconds that a thread has to end. One blocked in a system call that does not return never does. */
export const END_LIMIT = 2000;

/** The state of one thread from its start to its end. */
export class ThreadWatch {
	readonly activity = new ThreadActivity();
	readonly #clock = new StallClock();
	/** Milliseconds of the thread's own time since its last sign of life, at the last check. */
	unanswered = 0;

	/** Checks the thread. `elapsed` is in milliseconds since the last check. */
	look(elapsed: number): void {
		const { beat, task } = this.activity.read();
		this.unanswered = this.#clock.look(beat, elapsed, () => readThreadTimes(task));
	}

	/** Whether the thread has been silent for so long that nothing should wait for it. */
	get isUnresponsive(): boolean {
		return this.unanswered >= UNRESPONSIVE_AFTER - TOLERANCE;
	}

	/** Whether it must be replaced. */
	get isOverdue(): boolean {
		return this.unanswered >= OVERDUE_AFTER - TOLERANCE;
	}

	get isBuilding(): boolean {
		return this.activity.read().phase === 'build';
	}

	/** Log fields that say for how long the thread has not responded, and what it was doing. */
	get fields(): { readonly [name: string]: unknown } {
		const { phase, request, requestIsNew } = this.activity.read();
		return {
			unanswered_ms: Math.round(this.unanswered),
			doing: phase === 'requests' && requestIsNew ? 'request' : phase,
			[requestIsNew ? 'request' : 'last_request']: request,
		};
	}
}
