/** Updates of TLS state that the main thread sends to data-plane threads. Each thread applies them in order. */
import type { ChallengeAnswers, PublishedCertificate } from '../certificates/certificate-feed.ts';

/** The certificates that verify clients under one `client_auth`. */
export interface ClientTrust {
	/** Canonical JSON of the `client_auth`. */
	readonly key: string;
	/** CA certificates in PEM. If empty, no certificate chain verifies. */
	readonly authorities: readonly string[];
	/** SHA-256 fingerprints, `AB:CD:…`, of the accepted client certificates; undefined accepts any. */
	readonly leaves: readonly string[] | undefined;
}

export type TlsUpdate =
	| {
			readonly kind: 'certificates';
			readonly set: readonly PublishedCertificate[];
			readonly dropped: readonly string[];
	  }
	/** Delivers the answers to challenges. A thread acknowledges them with a `challenges_taken` message with the same number. */
	| { readonly kind: 'challenges'; readonly number: number; readonly answers: ChallengeAnswers }
	/** Session ticket keys. Each of them decrypts tickets; the first one encrypts new tickets. */
	| { readonly kind: 'tickets'; readonly keys: readonly Uint8Array[] }
	/** Turns on or off whether threads ask the main thread for certificates that they do not have. */
	| { readonly kind: 'on_demand'; readonly asked: boolean }
	/** Turns on or off whether threads ask the main thread about challenges that this process has not published. */
	| { readonly kind: 'shared_challenges'; readonly asked: boolean }
	| { readonly kind: 'trust'; readonly trust: readonly ClientTrust[] };
