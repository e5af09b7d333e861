/** Messages between worker threads and the main thread about verifying a password. */
import type { PasswordTask, PasswordVerdict } from './password-thread.ts';

/** Maximum pending verifications per client. */
export const MAX_CHECKS_PER_CLIENT = 16;

/** A request to verify a password. */
export interface PasswordCheck {
	/** Unique within the process. */
	readonly id: string;
	/** The key of the client that sent the password (see `clientKey`). */
	readonly client: string;
	readonly user: string;
	readonly task: PasswordTask;
}

/** A rejected check: too many checks are pending, of this client or in total. */
export interface PasswordRefusal {
	readonly refused: 'client' | 'all';
	/** Number of seconds after which a retry is likely to succeed. */
	readonly retryAfter: number;
}

export type PasswordAnswer = PasswordVerdict | PasswordRefusal;
