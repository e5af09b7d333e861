/** A pool of threads, each of which processes one task at a time. Threads are started on demand and replaced when they die. */
import type { Worker } from 'node:worker_threads';
import { startThread, type ThreadKind } from './thread-source.ts';
import { THREAD_END_LIMIT_MS } from './thread-watch.ts';
import { withTimeLimit } from './within.ts';

/** Called when a thread died, or was abandoned because it took too long (`stalled`). */
export type OnThreadFailure = (reason: string, stalled: boolean) => void;

export interface TaskThreadsOptions {
	readonly kind: ThreadKind;
	/** Maximum number of threads. */
	readonly most: number;
	/** Milliseconds after which a task is abandoned. */
	readonly limit: number;
	/** Error message for an abandoned task. */
	readonly tooLong: string;
	readonly failed: OnThreadFailure;
}

interface Waiting<Task, Answer> {
	readonly task: Task;
	readonly settle: (answer: Answer | null) => void;
}

/** Assigns tasks to threads in order of arrival. A thread answers each task with one message. */
export class TaskThreads<Task, Answer> {
	readonly #options: TaskThreadsOptions;
	readonly #idle: Worker[] = [];
	readonly #all = new Set<Worker>();
	/** Abandoned threads that have not ended. */
	readonly #abandoned = new Set<Worker>();
	readonly #waiting: Waiting<Task, Answer>[] = [];
	#ended = false;

	constructor(options: TaskThreadsOptions) {
		this.#options = options;
	}

	/** Runs a task. Resolves to its answer, or to null if the thread failed. Callers must limit how many tasks wait. */
	run(task: Task): Promise<Answer | null> {
		if (this.#ended) return Promise.resolve(null);
		return new Promise(settle => {
			this.#waiting.push({ task, settle });
			this.#next();
		});
	}

	/** Terminates the threads; waiting tasks resolve to null. Resolves to false if a thread cannot be terminated. */
	async end(): Promise<boolean> {
		this.#ended = true;
		for (const { settle } of this.#waiting.splice(0)) settle(null);
		await withTimeLimit(
			Promise.all([...this.#all].map(thread => thread.terminate())).then(() => {}),
			THREAD_END_LIMIT_MS,
		);
		return this.#all.size + this.#abandoned.size === 0;
	}

	#next(): void {
		if (this.#waiting.length === 0) return;
		const thread = this.#idle.pop() ?? (this.#all.size < this.#options.most ? this.#start() : undefined);
		if (!thread) return;
		const { task, settle } = this.#waiting.shift()!;
		let over = false;
		const end = (answer: Answer | null): void => {
			if (over) return;
			over = true;
			clearTimeout(timer);
			thread.off('message', answered);
			thread.off('exit', died);
			settle(answer);
		};
		const answered = (answer: Answer): void => {
			end(answer);
			this.#idle.push(thread);
			this.#next();
		};
		const died = (): void => end(null);
		const { limit, tooLong, failed } = this.#options;
		const timer = setTimeout(() => {
			failed(tooLong, true);
			void thread.terminate();
			// Work inside OpenSSL cannot be interrupted, so this does not wait for the thread to end.
			this.#all.delete(thread);
			this.#abandoned.add(thread);
			end(null);
			this.#next();
		}, limit);
		thread.on('message', answered);
		thread.on('exit', died);
		thread.postMessage(task);
	}

	#start(): Worker {
		const { kind, failed } = this.#options;
		const thread = startThread(kind, {});
		this.#all.add(thread);
		thread.on('error', error => failed(error instanceof Error ? error.message : String(error), false));
		thread.on('exit', () => {
			this.#all.delete(thread);
			this.#abandoned.delete(thread);
			const at = this.#idle.indexOf(thread);
			if (at !== -1) this.#idle.splice(at, 1);
			if (!this.#ended) this.#next();
		});
		return thread;
	}
}
