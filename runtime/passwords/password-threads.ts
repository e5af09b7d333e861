/** The threads that passwords are verified on. */
import { availableParallelism } from 'node:os';
import { TaskThreads, type ThreadFailed } from '../threads/task-threads.ts';
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

/** Verifies passwords on threads of their own. */
export class PasswordThreads implements Verifier {
	readonly most: number = threadsFor(availableParallelism());
	readonly #threads: TaskThreads<PasswordTask, PasswordVerdict>;

	/** `limit`: milliseconds for one verification. */
	constructor(failed: ThreadFailed, limit: number = LIMIT) {
		const tooLong = `a password was not verified within ${limit} ms: its hash costs too much`;
		this.#threads = new TaskThreads({ kind: 'passwords', most: this.most, limit, tooLong, failed });
	}

	/** Resolves to the verdict; null when there can be none. Whoever asks bounds how many wait. */
	verify(task: PasswordTask): Promise<PasswordVerdict> {
		return this.#threads.run(task);
	}

	end(): Promise<boolean> {
		return this.#threads.end();
	}
}

/**
 * Half of the processors, since the rest serve. With two or more there are at least two threads, so that one is free for
 * the second client: their priority is low enough not to take a processor from requests.
 */
export function threadsFor(processors: number): number {
	return processors === 1 ? 1 : Math.max(2, Math.min(4, processors >> 1));
}
