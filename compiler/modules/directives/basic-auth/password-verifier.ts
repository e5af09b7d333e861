/** What `basic_auth` leases: the verification of passwords. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { PasswordHash } from './password-hash.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		password_verifier: { settings: Record<string, never>; lease: PasswordVerifier };
	}
}

/** Says whether passwords are right, away from the threads that serve requests. */
export interface PasswordVerifier {
	/** False for a fake: then nothing is served, and what the environment says is not known. */
	readonly live: boolean;
	/**
	 * The verdict on a password, at once when it is remembered (under a keyed hash of user, hash and password). Rejects
	 * with HttpError 429 when too many of this client wait, and with 503 when too many wait in all.
	 */
	verify(x: Exchange, user: string, hash: PasswordHash, password: string): boolean | Promise<boolean>;
}
