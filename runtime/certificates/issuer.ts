/** The interface of issuers, which provide certificates for names. */
import type { IssuerSettings } from '../../compiler/document/tls-settings.ts';
import type { KeyType } from './certificate-keys.ts';

/** A request for one certificate. */
export interface IssueOrder {
	/** A name, wildcard or address in lower case. */
	readonly name: string;
	readonly keyType: KeyType;
	/** The private key to reuse, in PEM. If undefined, a new one is generated. */
	readonly privateKey?: string | undefined;
	/** The chain that the new certificate replaces, in PEM. */
	readonly replaces?: string | undefined;
	/** Number of consecutive failures so far. */
	readonly failures: number;
	readonly signal: AbortSignal;
}

export interface IssuedCertificate {
	/** The certificate, followed by its chain, in PEM. */
	readonly chain: string;
	/** The private key in PKCS#8 PEM. */
	readonly privateKey: string;
	/** JSON metadata that is stored with the certificate. Must not contain secrets. */
	readonly details?: { readonly [name: string]: unknown };
	/** Called once the certificate is stored, so that the issuer can delete the state with which the order could be resumed. */
	readonly onStored?: () => Promise<void>;
}

/** The time at which an issuer wants a certificate to be renewed (RFC 9773). */
export interface RenewalAdvice {
	/** Time of renewal, in milliseconds since the epoch. */
	readonly renewAt: number;
	/** Time at which to ask the issuer again, in milliseconds since the epoch. */
	readonly askAgainAt: number;
}

/** Issues certificates, from an ACME server or an internal CA. */
export interface Issuer {
	/** The kind in metrics and log entries: `acme` or `internal`. */
	readonly kind: string;
	/** The folder of the issuer's certificates below `certificates/` in the store. */
	readonly storeName: string;
	/**
	 * True if the issuer issues certificates immediately, without validation. Sites then have their certificates before they are
	 * first served.
	 */
	readonly isImmediate: boolean;
	/** Default fraction of a certificate's lifetime that remains when it is renewed. */
	readonly renewalRatio?: number | undefined;
	/** Obtains a certificate. Rejects with {@link IssueError}, StoreError or the signal's reason. */
	issue(order: IssueOrder): Promise<IssuedCertificate>;
	/** Asks when to renew. Resolves to undefined if the issuer has no preference. Rejects with IssueError. */
	advise?(chain: string): Promise<RenewalAdvice | undefined>;
	/** Closes the issuer's connections. */
	close?(): void;
}

/**
 * The error for a certificate that could not be obtained. The message is a full sentence for the operator and contains no secrets.
 */
export class IssueError extends Error {
	/** Code of the error, such as `issuer/refused`, `issuer/unreachable` or `issuer/rate-limited`. */
	readonly code: string;
	/** Earliest time at which a retry can succeed, in milliseconds since the epoch. */
	readonly retryAt: number | undefined;
	/** True if a retry cannot succeed, for example because the issuer does not accept the name. */
	readonly isFinal: boolean;

	constructor(code: string, message: string, options: { retryAt?: number | undefined; isFinal?: boolean } = {}) {
		super(message);
		this.name = 'IssueError';
		this.code = code;
		this.retryAt = options.retryAt;
		this.isFinal = options.isFinal === true;
	}
}

/** Returns a setting, with the type that the schema guarantees. */
export function issuerSetting<T>(settings: IssuerSettings, name: string): T | undefined {
	return settings[name] as T | undefined;
}
