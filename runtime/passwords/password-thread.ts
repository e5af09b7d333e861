/** The thread that verifies passwords, one at a time and at a lower priority than the threads that serve requests. */
import type { MessagePort } from 'node:worker_threads';
import type { PasswordHash } from '../../compiler/modules/directives/basic-auth/password-hash.ts';
import { lowerPriority } from '../threads/lower-priority.ts';
import { verifyPassword } from './verify-password.ts';

/** A password and the hash to verify it against. */
export interface PasswordTask {
	readonly hash: PasswordHash;
	readonly password: string;
}

/** The verdict; null if verification failed, for example for lack of memory. */
export type PasswordVerdict = boolean | null;

/** The thread's nice value, so that brute-force attacks do not take CPU time from requests. */
const NICE_VALUE = 5;

/** Answers every task with its verdict, in order. */
export function runPasswordThread(port: MessagePort): void {
	lowerPriority(NICE_VALUE);
	port.on('message', ({ hash, password }: PasswordTask) => {
		let verdict: PasswordVerdict;
		try {
			verdict = verifyPassword(hash, password);
		} catch {
			verdict = null;
		}
		port.postMessage(verdict);
	});
}
