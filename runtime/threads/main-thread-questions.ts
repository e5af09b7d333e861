/** What data-plane threads ask the main thread, and what it answers. */
import type { PasswordTask, PasswordVerdict } from '../passwords/password-thread.ts';

/** A question. */
export type MainThreadQuestion =
	| { readonly about: 'password'; readonly task: PasswordTask }
	| { readonly about: 'metrics' };

/** The answer to each. */
export interface MainThreadAnswers {
	password: PasswordVerdict;
	/** Prometheus text exposition. */
	metrics: string;
}
