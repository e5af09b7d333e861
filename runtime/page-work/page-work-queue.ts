/** The main thread's queue of expensive template functions. One thread runs them, and the number of waiting tasks is limited. */
import { type OnThreadFailure, TaskThreads } from '../threads/task-threads.ts';
import type { ComputedTask } from './do-page-task.ts';
import type { PageTaskResult } from './page-work-thread.ts';

/** Timeout of a task in milliseconds. Generating a key takes several seconds, with a large variance. */
const TASK_TIMEOUT_MS = 60_000;
/** Maximum number of waiting and running tasks. */
const MAX_PENDING_TASKS = 64;

/** The reply to a worker thread. Null means that too many tasks are waiting. */
export type PageTaskReply = PageTaskResult | null;

/** Queues tasks, and runs them on one thread. */
export class PageWorkQueue {
	readonly #threads: TaskThreads<ComputedTask, PageTaskResult>;
	#pendingCount = 0;

	/** @param onFailure Called with the reason if the thread died or was terminated. */
	constructor(onFailure: OnThreadFailure) {
		const timeoutMessage = `a template function did not finish within ${TASK_TIMEOUT_MS} ms`;
		this.#threads = new TaskThreads({
			kind: 'pages',
			maxThreads: 1,
			limitMs: TASK_TIMEOUT_MS,
			timeoutMessage,
			onFailure,
		});
	}

	/** Runs a task and resolves to its result, or to null if too many tasks are waiting. */
	async run(task: ComputedTask): Promise<PageTaskReply> {
		if (this.#pendingCount >= MAX_PENDING_TASKS) return null;
		this.#pendingCount++;
		try {
			return (await this.#threads.run(task)) ?? { failure: 'the task was canceled' };
		} finally {
			this.#pendingCount--;
		}
	}

	/** Terminates the thread. Resolves to false if it cannot be terminated. */
	end(): Promise<boolean> {
		return this.#threads.end();
	}
}
