/** What a data-plane thread asks the main thread about a password, and the answer. */
import type { PasswordTask, PasswordVerdict } from './password-thread.ts';

/** Verifications of one client that wait or run. */
export const MOST_OF_CLIENT = 16;

/** A password that a data-plane thread asks to verify. */
export interface PasswordCheck {
	/** Never used twice in the process. */
	readonly id: string;
	/** Key of the client that sent it (see `clientKey`). */
	readonly client: string;
	readonly user: string;
	readonly task: PasswordTask;
}

/** A check that is not made: the client has too many waiting, or all clients together have. */
export interface PasswordRefusal {
	readonly refused: 'client' | 'all';
	/** Seconds after which it is worth trying again. */
	readonly retryAfter: number;
}

/** The answer to a check. */
export type PasswordAnswer = PasswordVerdict | PasswordRefusal;
