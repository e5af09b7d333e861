/** Work for pages that would block all other requests of their thread, and is therefore done elsewhere. */

/** Types of private keys that pages can generate. */
export type PageKeyKind = 'rsa' | 'dsa' | 'ecdsa' | 'ed25519';

/** A task; results are texts. */
export type PageTask =
	/** The bcrypt hash of a password in modular crypt format (`$2a$10$…`). */
	| { readonly task: 'bcrypt'; readonly password: string }
	/** 64 bytes of scrypt (N 32768, r 8, p 2) in hexadecimal. */
	| { readonly task: 'scrypt'; readonly password: string; readonly salt: string }
	/** A new private key as PEM. */
	| { readonly task: 'key'; readonly kind: PageKeyKind }
	/** The addresses of a host from the system's resolver, separated by spaces. */
	| { readonly task: 'addresses'; readonly host: string };

/** Does work for pages. */
export interface PageWork {
	/** Runs a task. Rejects with HttpError 503 if too much work is waiting, or with an Error that says why it failed. */
	run(task: PageTask): Promise<string>;
}
