/** A pool of threads, each of which processes one task at a time. Threads are started on demand and replaced when they die. */
import type { Worker } from 'node:worker_threads';
import { startThread, type ThreadKind } from './thread-source.ts';
import { THREAD_END_LIMIT_MS } from './thread-watch.ts';
import { withTimeLimit } from './within.ts';

/** Called when a thread has died, or was abandoned because a task took too long. `stalled` is true if it was abandoned. */
export type OnThreadFailure = (reason: string, stalled: boolean) => void;

export interface TaskThreadsOptions {
	readonly kind: ThreadKind;
	readonly maxThreads: number;
	/** Milliseconds after which a task is abandoned. */
	readonly limitMs: number;
	/** Error message for an abandoned task. */
	readonly timeoutMessage: string;
	readonly onFailure: OnThreadFailure;
}

interface QueuedTask<Task, Answer> {
	readonly task: Task;
	readonly settle: (answer: Answer | null) => void;
}

/** Assigns tasks to threads in order of arrival. A thread answers each task with one message. */
export class TaskThreads<Task, Answer> {
	readonly #options: TaskThreadsOptions;
	readonly #idleThreads: Worker[] = [];
	readonly #allThreads = new Set<Worker>();
	/** Abandoned threads that have not ended. */
	readonly #abandonedThreads = new Set<Worker>();
	readonly #queuedTasks: QueuedTask<Task, Answer>[] = [];
	#isEnded = false;

	constructor(options: TaskThreadsOptions) {
		this.#options = options;
	}

	/** Runs a task. Resolves to its answer, or to null if the thread failed. Callers must limit how many tasks wait. */
	run(task: Task): Promise<Answer | null> {
		if (this.#isEnded) return Promise.resolve(null);
		return new Promise(settle => {
			this.#queuedTasks.push({ task, settle });
			this.#startNextTask();
		});
	}

	/** Terminates the threads; waiting tasks resolve to null. Resolves to false if a thread cannot be terminated. */
	async end(): Promise<boolean> {
		this.#isEnded = true;
		for (const { settle } of this.#queuedTasks.splice(0)) settle(null);
		await withTimeLimit(
			Promise.all([...this.#allThreads].map(thread => thread.terminate())).then(() => {}),
			THREAD_END_LIMIT_MS,
		);
		return this.#allThreads.size + this.#abandonedThreads.size === 0;
	}

	#startNextTask(): void {
		if (this.#queuedTasks.length === 0) return;
		const thread =
			this.#idleThreads.pop() ?? (this.#allThreads.size < this.#options.maxThreads ? this.#startThread() : undefined);
		if (!thread) return;
		const { task, settle } = this.#queuedTasks.shift()!;
		let isSettled = false;
		const settleTask = (answer: Answer | null): void => {
			if (isSettled) return;
			isSettled = true;
			clearTimeout(timer);
			thread.off('message', onAnswer);
			thread.off('exit', onExit);
			settle(answer);
		};
		const onAnswer = (answer: Answer): void => {
			settleTask(answer);
			this.#idleThreads.push(thread);
			this.#startNextTask();
		};
		const onExit = (): void => settleTask(null);
		const { limitMs, timeoutMessage, onFailure } = this.#options;
		const timer = setTimeout(() => {
			onFailure(timeoutMessage, true);
			void thread.terminate();
			// Work inside OpenSSL cannot be interrupted, so this does not wait for the thread to end.
			this.#allThreads.delete(thread);
			this.#abandonedThreads.add(thread);
			settleTask(null);
			this.#startNextTask();
		}, limitMs);
		thread.on('message', onAnswer);
		thread.on('exit', onExit);
		thread.postMessage(task);
	}

	#startThread(): Worker {
		const { kind, onFailure } = this.#options;
		const thread = startThread(kind, {});
		this.#allThreads.add(thread);
		thread.on('error', error => onFailure(error instanceof Error ? error.message : String(error), false));
		thread.on('exit', () => {
			this.#allThreads.delete(thread);
			this.#abandonedThreads.delete(thread);
			const at = this.#idleThreads.indexOf(thread);
			if (at !== -1) this.#idleThreads.splice(at, 1);
			if (!this.#isEnded) this.#startNextTask();
		});
		return thread;
	}
}
