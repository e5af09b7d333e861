/** The password threads as the main thread sees them: started when first needed, one task each, replaced when they die. */
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { startThread } from '../thread-source.ts';
import { END_LIMIT } from '../threads/thread-watch.ts';
import { within } from '../within.ts';
import type { PasswordTask, PasswordVerdict } from './password-thread.ts';

/** Milliseconds after which a verification is given up: a hash of cost 31 would hold its thread for a day. */
const LIMIT = 30_000;

/** Where verifications run. */
export interface Verifier {
	/** Verifications that run at one time. */
	readonly most: number;
	/** Resolves to the verdict. Never rejects. */
	verify(task: PasswordTask): Promise<PasswordVerdict>;
	/** Ends the threads; what waits gets no verdict. Resolves to false when one cannot be ended. */
	end(): Promise<boolean>;
}

/** Told why a thread died, or was given up because it took too long (`stalled`). */
export type ThreadFailed = (reason: string, stalled: boolean) => void;

interface Waiting {
	readonly task: PasswordTask;
	readonly settle: (verdict: PasswordVerdict) => void;
}

/** Verifies passwords on threads of their own. */
export class PasswordThreads implements Verifier {
	readonly most: number = threadsFor(availableParallelism());
	readonly #limit: number;
	readonly #failed: ThreadFailed;
	readonly #idle: Worker[] = [];
	readonly #all = new Set<Worker>();
	/** Threads that were given up and have not ended. */
	readonly #abandoned = new Set<Worker>();
	readonly #waiting: Waiting[] = [];
	#ended = false;

	/** `limit`: milliseconds for one verification. */
	constructor(failed: ThreadFailed, limit: number = LIMIT) {
		this.#failed = failed;
		this.#limit = limit;
	}

	/** Resolves to the verdict; null when there can be none. Whoever asks bounds how many wait. */
	verify(task: PasswordTask): Promise<PasswordVerdict> {
		if (this.#ended) return Promise.resolve(null);
		return new Promise(settle => {
			this.#waiting.push({ task, settle });
			this.#next();
		});
	}

	async end(): Promise<boolean> {
		this.#ended = true;
		for (const { settle } of this.#waiting.splice(0)) settle(null);
		await within(
			Promise.all([...this.#all].map(thread => thread.terminate())).then(() => {}),
			END_LIMIT,
		);
		return this.#all.size + this.#abandoned.size === 0;
	}

	#next(): void {
		if (this.#waiting.length === 0) return;
		const thread = this.#idle.pop() ?? (this.#all.size < this.most ? this.#start() : undefined);
		if (!thread) return;
		const { task, settle } = this.#waiting.shift()!;
		let over = false;
		const end = (verdict: PasswordVerdict): void => {
			if (over) return;
			over = true;
			clearTimeout(timer);
			thread.off('message', answered);
			thread.off('exit', died);
			settle(verdict);
		};
		const answered = (verdict: PasswordVerdict): void => {
			end(verdict);
			this.#idle.push(thread);
			this.#next();
		};
		const died = (): void => end(null);
		const timer = setTimeout(() => {
			this.#failed(`a password was not verified within ${this.#limit} ms: its hash costs too much`, true);
			void thread.terminate();
			// Hashing inside OpenSSL is not interrupted: nobody waits for the thread to end.
			this.#all.delete(thread);
			this.#abandoned.add(thread);
			end(null);
			this.#next();
		}, this.#limit);
		thread.on('message', answered);
		thread.on('exit', died);
		thread.postMessage(task);
	}

	#start(): Worker {
		const thread = startThread('passwords', {});
		this.#all.add(thread);
		thread.on('error', error => this.#failed(error instanceof Error ? error.message : String(error), false));
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

/**
 * Half of the processors, since the rest serve. With two or more there are at least two threads, so that one is free for
 * the second client: their priority is low enough not to take a processor from requests.
 */
export function threadsFor(processors: number): number {
	return processors === 1 ? 1 : Math.max(2, Math.min(4, processors >> 1));
}
