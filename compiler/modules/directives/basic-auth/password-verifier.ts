/** The lease through which `basic_auth` verifies passwords. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { PasswordHash } from './password-hash.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		password_verifier: { settings: Record<string, never>; lease: PasswordVerifier };
	}
}

/** Verifies passwords on threads that serve no requests. */
export interface PasswordVerifier {
	/** False for a fake, which is used when a configuration is only checked and environment variables are unknown. */
	readonly isLive: boolean;
	/**
	 * Reports whether the password is correct; immediately if the result is cached (under a keyed hash of user, hash and password).
	 * Rejects with HttpError 429 if too many verifications for this client are pending, and with 503 if too many are pending in
	 * total.
	 */
	verify(x: Exchange, user: string, hash: PasswordHash, password: string): boolean | Promise<boolean>;
}
