/** What an issuer is to the certificate manager: something that gives a certificate for a name. */
import type { IssuerSettings } from '../../compiler/tls/certificate-plan.ts';
import type { KeyType } from './certificate-keys.ts';

/** One certificate that is wanted. */
export interface IssueOrder {
	/** Lower-case name, wildcard or address. */
	readonly name: string;
	readonly keyType: KeyType;
	/** PEM of a private key to certify again; a new one is made if left out. */
	readonly privateKey?: string | undefined;
	/** PEM of the chain that the new certificate takes the place of. */
	readonly replaces?: string | undefined;
	/** Failures in a row that came before. */
	readonly failures: number;
	readonly signal: AbortSignal;
}

/** What an issuer gave. */
export interface Issued {
	/** PEM: the certificate, then its chain. */
	readonly chain: string;
	/** PKCS#8 PEM. */
	readonly privateKey: string;
	/** Kept beside the certificate; JSON values, no secret. */
	readonly details?: { readonly [name: string]: unknown };
	/** Called once the certificate is in the store: what the issuer kept to be able to resume can go. */
	readonly kept?: () => Promise<void>;
}

/** When an issuer would have a certificate renewed (RFC 9773). */
export interface RenewalAdvice {
	/** Milliseconds since the epoch. */
	readonly renewAt: number;
	/** When to ask again, in milliseconds since the epoch. */
	readonly askAgainAt: number;
}

/** Issues certificates: an ACME authority or the local one. */
export interface Issuer {
	/** Its kind, as metrics and log entries name it: `acme`, `internal`. */
	readonly kind: string;
	/** Segment below `certificates/` under which its certificates lie. */
	readonly storeName: string;
	/** Whether it answers at once and needs nobody's leave: then sites have their certificates before they are served. */
	readonly immediate: boolean;
	/** Part of a certificate's life that is left when it is renewed, if the policy does not say. */
	readonly renewalRatio?: number | undefined;
	/** Rejects with {@link IssueError}, StoreError or the signal's reason. */
	issue(order: IssueOrder): Promise<Issued>;
	/** Asks when to renew; undefined when the issuer has no opinion. Rejects with IssueError. */
	advise?(chain: string): Promise<RenewalAdvice | undefined>;
	/** Ends what it holds open. */
	close?(): void;
}

/** No certificate was given. The message is a sentence for an operator and holds no secret. */
export class IssueError extends Error {
	/** `issuer/refused`, `issuer/unreachable`, `issuer/rate-limited`, … */
	readonly code: string;
	/** Milliseconds since the epoch before which trying again is useless. */
	readonly retryAt: number | undefined;
	/** Whether trying again the same way can never help: a name that the issuer does not take. */
	readonly final: boolean;

	constructor(code: string, message: string, more: { retryAt?: number | undefined; final?: boolean } = {}) {
		super(message);
		this.name = 'IssueError';
		this.code = code;
		this.retryAt = more.retryAt;
		this.final = more.final === true;
	}
}

/** Finds what settings say, with the type that the schema promises. */
export function setting<T>(settings: IssuerSettings, name: string): T | undefined {
	return settings[name] as T | undefined;
}
