/**
 * How long a thread has given no sign of life, counted in its own time: what it has run or been blocked, not what it has
 * waited for a processor or spent suspended with the whole process or machine.
 */
import { readFileSync } from 'node:fs';

/** Milliseconds between looks at a thread. */
export const LOOK_INTERVAL = 500;

/** What the operating system tells of a thread; times in milliseconds since its start. */
export interface ThreadTimes {
	readonly ran: number;
	/** Time that it was ready to run while others had the processors. */
	readonly waited: number;
	/** `R` running or waiting for a processor, `S` and `D` blocked, `T` and `t` stopped from outside. */
	readonly state: string;
}

/** Watches one thread. To be asked every {@link LOOK_INTERVAL}. */
export class StallClock {
	#beat = 0;
	#unanswered = 0;
	#times: ThreadTimes | undefined;

	/**
	 * Returns milliseconds of the thread's own time since its last sign of life. `elapsed` is the time since the last look by
	 * the caller's clock: when it is long, the caller has not run either, and it counts as one interval.
	 */
	look(beat: number, elapsed: number, readTimes: () => ThreadTimes | undefined): number {
		if (beat !== this.#beat || beat === 0) {
			this.#beat = beat;
			this.#unanswered = 0;
			this.#times = undefined;
			return 0;
		}
		const before = this.#times;
		const now = readTimes();
		this.#times = now;
		const most = Math.min(elapsed, LOOK_INTERVAL);
		if (now === undefined) this.#unanswered += most;
		else if (before !== undefined) this.#unanswered += ownTime(before, now, most);
		return this.#unanswered;
	}
}

function ownTime(before: ThreadTimes, now: ThreadTimes, most: number): number {
	if (now.state === 'T' || now.state === 't') return 0;
	// The wait that a runnable thread is in now is not in its statistics until it is over.
	if (now.state === 'R') return Math.min(most, now.ran - before.ran);
	return Math.max(0, most - (now.waited - before.waited));
}

/** Reads the times of a thread of this process; undefined where the system does not tell. */
export function readThreadTimes(task: number): ThreadTimes | undefined {
	if (task === 0) return undefined;
	try {
		const folder = `/proc/self/task/${task}`;
		const [ran, waited] = readFileSync(`${folder}/schedstat`, 'latin1').split(' ');
		const stat = readFileSync(`${folder}/stat`, 'latin1');
		// The name before it may hold anything, closing parentheses too.
		const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
		return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6, state };
	} catch {
		return undefined;
	}
}
