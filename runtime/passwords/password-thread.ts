/** The thread that verifies passwords: one after the other, a little behind the threads that serve requests. */
import type { MessagePort } from 'node:worker_threads';
import type { PasswordHash } from '../../compiler/directives/basic-auth/password-hash.ts';
import { lowerPriority } from '../threads/lower-priority.ts';
import { verifyPassword } from './verify-password.ts';

/** What is to be verified. */
export interface PasswordTask {
	readonly hash: PasswordHash;
	readonly password: string;
}

/** The verdict; null when verifying failed, as when there is no memory for it. */
export type PasswordVerdict = boolean | null;

/** Nice value of the thread: brute force must not cost requests their processor. */
const NICE = 5;

/** Answers every task with its verdict, in order. */
export function runPasswordThread(port: MessagePort): void {
	lowerPriority(NICE);
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
