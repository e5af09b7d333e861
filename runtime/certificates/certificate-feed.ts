/** The interface of the certificate manager on the main thread, and of the sink that passes its certificates to all worker threads. */

import type { CertificatePlan } from '../../compiler/codegen/plan/certificate-plan.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { StoreDeps } from '../storage/open-store.ts';
import type { CertificateReadings } from './certificate-metrics.ts';

/** A certificate with its key, ready to be served. */
export interface PublishedCertificate {
	/**
	 * A unique ID. A certificate published later with the same ID, renewed or with a new OCSP response, replaces this one.
	 */
	readonly id: string;
	/** The names, wildcards and addresses for which the certificate is served, in lowercase. */
	readonly names: readonly string[];
	/** The certificate, followed by its chain, in PEM. */
	readonly chain: string;
	/** The private key in unencrypted PEM. It must never appear in a log, error or export. */
	readonly key: string;
	/** DER of an OCSP response to staple. */
	readonly ocsp?: Uint8Array | undefined;
}

/** The answers to all pending challenges. */
export interface ChallengeAnswers {
	/** Key authorizations by token (RFC 8555 §8.3). */
	readonly http01: { readonly [token: string]: string };
	/** Challenge certificates by lower-case name or address (RFC 8737). */
	readonly alpn: { readonly [name: string]: { readonly chain: string; readonly key: string } };
}

/**
 * Receives the manager's certificates. Every thread gets the changes in the order of the calls; a thread that starts later gets
 * the resulting state.
 */
export interface CertificateSink {
	publish(certificates: readonly PublishedCertificate[]): void;
	drop(ids: readonly string[]): void;
	/** Replaces the answers to all challenges. Resolves once every thread has them, so that the order can proceed. */
	setChallenges(answers: ChallengeAnswers): Promise<void>;
}

/** A client's request for a certificate that no thread has. */
export interface CertificateRequestedByClient {
	/** The server name in lower case, or the local address if the client sent none. */
	readonly name: string;
	/**
	 * Hexadecimal IDs of the signature schemes in the ClientHello. A `get_certificate` manager may choose a certificate by them.
	 */
	readonly signatureSchemes: readonly string[];
	readonly cipherSuites: readonly string[];
	readonly localIp: string;
	readonly remoteIp: string;
}

/** Identifies an ACME challenge for which this process has no answer. Another process may have published one in the store. */
export type ChallengeQuestion =
	| { readonly type: 'http-01'; readonly token: string }
	/** `name` is the domain name in the challenge, in lower case. */
	| { readonly type: 'tls-alpn-01'; readonly name: string };

/** The answer to a challenge: the key authorization for HTTP-01, the certificate for TLS-ALPN-01. */
export type ChallengeAnswer =
	| { readonly authorization: string }
	| { readonly certificate: { readonly chain: string; readonly key: string } };

export interface CertificateManagerDeps extends StoreDeps {
	readonly sink: CertificateSink;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** Obtains, stores, renews and staples certificates, and runs internal CAs. One per process, on the main thread. */
export interface CertificateManager {
	/**
	 * Prepares for a configuration before it is served. Resolves once the certificates available immediately, from the store or an
	 * internal CA, have been published. Orders start on `activate`. Rejects if the configuration cannot be served, for example
	 * because the files of a CA cannot be used.
	 */
	prepare(plan: CertificatePlan, settings: Settings): Promise<void>;
	/**
	 * Makes the last prepared configuration the active one: starts its orders and renewals, and drops certificates that it does not
	 * need.
	 */
	activate(): void;
	/** Discards the last prepared configuration. */
	discard(): void;
	/** Obtains a certificate for a waiting client. Resolves to true once one has been published for the name. Never rejects. */
	obtain(question: CertificateRequestedByClient): Promise<boolean>;
	/** Returns the root and intermediate certificates of an internal CA in PEM. Rejects if the CA does not exist. */
	authorityCertificates?(id: string): Promise<{ readonly root: string; readonly intermediate: string }>;
	/** Answers a request to a site's ACME server. */
	answerAcme?(
		request: AcmeServerRequest,
		settings: AcmeServerSettings,
		processSettings: Settings,
	): Promise<AcmeServerAnswer>;
	/** Returns the current values of all certificate metrics. */
	readings?(): CertificateReadings;
	/** Stops timers and orders. The next process resumes unfinished orders, which are in the store. */
	close(): Promise<void>;
}
