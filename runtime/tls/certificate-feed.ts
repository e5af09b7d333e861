/**
 * Where certificates come from and where they go: the certificate manager on the main thread, and the sink that carries
 * what it has to every data-plane thread.
 */

import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/directives/acme-server/acme-server-handler.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { CertificatePlan } from '../../compiler/tls/certificate-plan.ts';
import type { CertificateReadings } from '../certificates/certificate-metrics.ts';
import type { LogLevel } from '../threads/messages.ts';

/** A certificate with its key, as threads serve it. */
export interface PublishedCertificate {
	/** Tells it from others; publishing an id again replaces what it was (renewal, a new OCSP answer). */
	readonly id: string;
	/** Lower-case names, wildcards and addresses that it is served for. */
	readonly names: readonly string[];
	/** PEM: the certificate, then its chain. */
	readonly chain: string;
	/** PEM, not encrypted. Never in a log, error or export. */
	readonly key: string;
	/** DER of an OCSP response to staple. */
	readonly ocsp?: Uint8Array | undefined;
}

/** Answers to challenges, all that stand at one time. */
export interface ChallengeAnswers {
	/** Key authorizations by token (RFC 8555 §8.3). */
	readonly http01: { readonly [token: string]: string };
	/** Challenge certificates by lower-case name or address (RFC 8737). */
	readonly alpn: { readonly [name: string]: { readonly chain: string; readonly key: string } };
}

/** Takes what the manager has. Every thread sees the calls in their order; a thread that starts later gets the sum of them. */
export interface CertificateSink {
	publish(certificates: readonly PublishedCertificate[]): void;
	drop(ids: readonly string[]): void;
	/** Replaces all answers to challenges; resolves when every thread has them, so that the order may go on. */
	challenges(answers: ChallengeAnswers): Promise<void>;
}

/** What a client asked for that no thread has. */
export interface CertificateQuestion {
	/** Lower-case server name; the address the client connected to when it sent none. */
	readonly name: string;
	/** Hexadecimal ids as the ClientHello has them, for managers that choose by them. */
	readonly signatureSchemes: readonly string[];
	readonly cipherSuites: readonly string[];
	readonly localIp: string;
	readonly remoteIp: string;
}

/** A challenge that an authority asks about and that no thread of this process has put up. */
export type ChallengeQuestion =
	| { readonly type: 'http-01'; readonly token: string }
	/** The name is in lower case. */
	| { readonly type: 'tls-alpn-01'; readonly name: string };

/** What answers it: the key authorization of HTTP-01, the certificate of TLS-ALPN-01. */
export type ChallengeAnswer =
	| { readonly authorization: string }
	| { readonly certificate: { readonly chain: string; readonly key: string } };

/** What the manager finds around it. */
export interface CertificateManagerSurroundings {
	readonly sink: CertificateSink;
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** Keeps certificates: store, internal authorities, orders, renewal, OCSP. One for the process, on the main thread. */
export interface CertificateManager {
	/**
	 * Called before a document is served. Resolves when what can be had at once (from the store, from an internal authority)
	 * has been published; orders wait for `activate`. Rejects when the document cannot be served (an authority's files).
	 */
	prepare(plan: CertificatePlan, settings: Settings): Promise<void>;
	/** The document prepared last is being served: begins orders and renewals, gives up what it no longer wants. */
	activate(): void;
	/** The document prepared last will not be served. */
	discard(): void;
	/** Obtains a certificate for a client that waits: true when one has been published for the name. Never rejects. */
	obtain(question: CertificateQuestion): Promise<boolean>;
	/** PEM of an internal authority's root and of its intermediate. Rejects when there is no such authority. */
	authority?(id: string): Promise<{ readonly root: string; readonly intermediate: string }>;
	/** Answers a request to an ACME server that a site serves. */
	answerAcme?(request: AcmeServerRequest, settings: AcmeServerSettings, process: Settings): Promise<AcmeServerAnswer>;
	/** What a scrape shows. */
	readings?(): CertificateReadings;
	/** Ends timers and orders; what was begun is resumed from the store by the next process. */
	close(): Promise<void>;
}
