/**
 * Expensive tasks for page templates, such as hashing a password. They run on another thread, because they would block all other
 * requests of the template's thread.
 */

/** Types of private keys that templates of pages can generate. */
export type PageKeyKind = 'rsa' | 'dsa' | 'ecdsa' | 'ed25519';

/** A task whose result is a string. The comment on each kind of task describes the result. */
export type PageTask =
	/** The bcrypt hash of a password in modular crypt format (`$2a$10$…`). */
	| { readonly task: 'bcrypt'; readonly password: string }
	/** The 64-byte scrypt hash of a password (N 32768, r 8, p 2) in hexadecimal. */
	| { readonly task: 'scrypt'; readonly password: string; readonly salt: string }
	/** A new private key as PEM. */
	| { readonly task: 'key'; readonly kind: PageKeyKind }
	/** The addresses of a host from the system's resolver, separated by spaces. */
	| { readonly task: 'addresses'; readonly host: string };

/** Runs expensive tasks for page templates. */
export interface PageWork {
	/** Runs a task. Rejects with HttpError 503 if too much work is pending, or with an Error that says why the task failed. */
	run(task: PageTask): Promise<string>;
}
