/** Watches one thread from the main thread: whether it answers, and what it was doing when it stopped. */

import { ThreadActivity } from '../threads/thread-activity.ts';
import { readThreadTimes, StallClock } from './stall-clock.ts';

/** Milliseconds of its own time without a sign of life after which a thread counts as unresponsive. */
const UNRESPONSIVE_AFTER = 2000;
/** Milliseconds after which it is replaced. */
const OVERDUE_AFTER = 4000;
/** Looks come a little early now and then, and their times add up to a little less. */
const TOLERANCE = 50;

/** Milliseconds that a thread is given to end. One inside a system call that does not return never does. */
export const END_LIMIT = 1000;

/** What is known of one thread, from its start to its end. */
export class ThreadWatch {
	readonly activity = new ThreadActivity();
	readonly #clock = new StallClock();
	/** Milliseconds of the thread's own time since its last sign of life, at the last look. */
	unanswered = 0;

	/** Looks at the thread. `elapsed`: milliseconds since the last look. */
	look(elapsed: number): void {
		const { beat, task } = this.activity.read();
		this.unanswered = this.#clock.look(beat, elapsed, () => readThreadTimes(task));
	}

	/** Whether the thread has given no sign of life for so long that nobody should wait for it. */
	get isUnresponsive(): boolean {
		return this.unanswered >= UNRESPONSIVE_AFTER - TOLERANCE;
	}

	/** Whether it has to be replaced. */
	get isOverdue(): boolean {
		return this.unanswered >= OVERDUE_AFTER - TOLERANCE;
	}

	/** Whether it is building a generation. */
	get isBuilding(): boolean {
		return this.activity.read().phase === 'build';
	}

	/** Fields of a log entry that say since when the thread has not answered, and what it was doing. */
	get fields(): { readonly [name: string]: unknown } {
		const { phase, request, requestIsNew } = this.activity.read();
		return {
			unanswered_ms: Math.round(this.unanswered),
			doing: phase === 'requests' && requestIsNew ? 'request' : phase,
			[requestIsNew ? 'request' : 'last_request']: request,
		};
	}
}
