/** Work that pages ask for and that would hold up every other request of their thread: it is done elsewhere. */

/** Kinds of private keys that pages can have made. */
export type PageKeyKind = 'rsa' | 'dsa' | 'ecdsa' | 'ed25519';

/** What is to be done. Results are texts. */
export type PageTask =
	/** The bcrypt hash of a password, as it is written down (`$2a$10$…`). */
	| { readonly task: 'bcrypt'; readonly password: string }
	/** 64 bytes of scrypt (N 32768, r 8, p 2) in hexadecimal. */
	| { readonly task: 'scrypt'; readonly password: string; readonly salt: string }
	/** A new private key as PEM. */
	| { readonly task: 'key'; readonly kind: PageKeyKind }
	/** The addresses of a host, as the system's resolver has them, joined by blanks. */
	| { readonly task: 'addresses'; readonly host: string };

/** Does work for pages. */
export interface PageWork {
	/** Rejects with HttpError 503 when too much waits to be done, and with an Error that says why it could not be done. */
	run(task: PageTask): Promise<string>;
}
