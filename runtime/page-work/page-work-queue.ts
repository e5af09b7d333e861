/** The queue of work for pages, on the main thread: one thread does it, and a bounded number of tasks waits. */
import { TaskThreads, type ThreadFailed } from '../main/task-threads.ts';
import type { ComputedTask } from './do-page-task.ts';
import type { PageAnswer } from './page-work-thread.ts';

/** Milliseconds after which a task is given up. A key takes several seconds, and some take long to be found. */
const LIMIT = 60_000;
/** Tasks that wait or run. */
const MOST = 64;

/** What a data-plane thread is answered: null when too many tasks wait. */
export type QueuedAnswer = PageAnswer | null;

/** Has work for pages done. */
export class PageWorkQueue {
	readonly #threads: TaskThreads<ComputedTask, PageAnswer>;
	#pending = 0;

	/** `failed` is told why the thread died or was ended. */
	constructor(failed: ThreadFailed) {
		const tooLong = `work for a page was not done within ${LIMIT} ms`;
		this.#threads = new TaskThreads({ kind: 'pages', most: 1, limit: LIMIT, tooLong, failed });
	}

	/** Resolves to what became of the task. */
	async run(task: ComputedTask): Promise<QueuedAnswer> {
		if (this.#pending >= MOST) return null;
		this.#pending++;
		try {
			return (await this.#threads.run(task)) ?? { failure: 'the work was given up' };
		} finally {
			this.#pending--;
		}
	}

	/** Ends the thread. Resolves to false when it cannot be ended. */
	end(): Promise<boolean> {
		return this.#threads.end();
	}
}
