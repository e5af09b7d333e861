/** The pool of threads that verify passwords. */
import { availableParallelism } from 'node:os';
import { type OnThreadFailure, TaskThreads } from '../threads/task-threads.ts';
import type { PasswordTask, PasswordVerdict } from './password-thread.ts';

/** Timeout of a verification in milliseconds. A hash of cost 31 would occupy its thread for a day. */
const VERIFICATION_TIMEOUT_MS = 30_000;

export interface PasswordVerificationRunner {
	/** Maximum concurrent verifications. */
	readonly maxThreads: number;
	/** Resolves to the verdict. Never rejects. */
	verify(task: PasswordTask): Promise<PasswordVerdict>;
	/** Terminates the threads. Waiting checks get no verdict. Resolves to false if a thread cannot be terminated. */
	end(): Promise<boolean>;
}

/** Verifies passwords on dedicated threads. */
export class PasswordThreads implements PasswordVerificationRunner {
	readonly maxThreads: number = passwordThreadCount(availableParallelism());
	readonly #threads: TaskThreads<PasswordTask, PasswordVerdict>;

	/** @param limitMs Timeout of a verification in milliseconds. */
	constructor(onFailure: OnThreadFailure, limitMs: number = VERIFICATION_TIMEOUT_MS) {
		const timeoutMessage = `a password was not verified within ${limitMs} ms: the cost of its hash is too high`;
		this.#threads = new TaskThreads({
			kind: 'passwords',
			maxThreads: this.maxThreads,
			limitMs,
			timeoutMessage,
			onFailure,
		});
	}

	/** Resolves to the verdict, or to null on failure. The caller limits the number of waiting tasks. */
	verify(task: PasswordTask): Promise<PasswordVerdict> {
		return this.#threads.run(task);
	}

	end(): Promise<boolean> {
		return this.#threads.end();
	}
}

/**
 * Returns the number of threads: half of the processors, at most 4. With two or more processors, there are at least two threads,
 * so that one is free for a second client. Their low priority keeps them from taking CPU time from requests.
 */
export function passwordThreadCount(processorCount: number): number {
	return processorCount === 1 ? 1 : Math.max(2, Math.min(4, processorCount >> 1));
}
