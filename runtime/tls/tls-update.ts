/** What the main thread tells data-plane threads about TLS; each thread takes the updates in their order. */
import type { ChallengeAnswers, PublishedCertificate } from './certificate-feed.ts';

/** How the certificates of clients are verified under one `client_auth`. */
export interface ClientTrust {
	/** Canonical JSON of the `client_auth`. */
	readonly key: string;
	/** PEM of authorities; empty: no certificate verifies by them. */
	readonly authorities: readonly string[];
	/** SHA-256 fingerprints, `AB:CD:…`, of certificates of which the client's must be one; undefined takes any. */
	readonly leaves: readonly string[] | undefined;
}

export type TlsUpdate =
	| {
			readonly kind: 'certificates';
			readonly set: readonly PublishedCertificate[];
			readonly dropped: readonly string[];
	  }
	/** Answered by `challenges_taken` with the same number. */
	| { readonly kind: 'challenges'; readonly number: number; readonly answers: ChallengeAnswers }
	/** Every thread opens session tickets with each; who comes with none that another sealed gets one of the first. */
	| { readonly kind: 'tickets'; readonly keys: readonly Uint8Array[] }
	/** Whether the manager is asked for certificates that no thread has. */
	| { readonly kind: 'on_demand'; readonly asked: boolean }
	/** Whether the manager is asked about challenges that this process has not put up. */
	| { readonly kind: 'shared_challenges'; readonly asked: boolean }
	| { readonly kind: 'trust'; readonly trust: readonly ClientTrust[] };
