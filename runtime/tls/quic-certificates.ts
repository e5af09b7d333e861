/** Chooses the certificate of a QUIC handshake from the same policies and certificates as for connections over TCP. */
import type { X509Certificate } from 'node:crypto';
import type { HandshakePolicy } from '../../compiler/codegen/plan/site-tls.ts';
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import { TLS_CURVE_NAMES } from '../../compiler/modules/directives/tls/handshake-words.ts';
import type { CertificateRequestedByClient } from '../certificates/certificate-feed.ts';
import { clientVerifier } from '../sockets/client-verifier.ts';
import type { QuicClientFacts } from '../sockets/quic/quic-connection.ts';
import type { QuicCertificate, QuicCertificateChoice, QuicClientAuth, QuicHello } from '../sockets/quic/quic-tls.ts';
import type { ClientHello } from './client-hello.ts';
import { type ClientRefusal, clientRefusalReason } from './client-verification.ts';
import type { HandshakeSelector } from './handshake-selector.ts';
import { logSecret } from './secrets-log.ts';
import type { TableCertificate } from './table-certificate.ts';
import type { ThreadTls } from './thread-tls.ts';

/** Maximum number of handshakes that wait for on-demand certificates. */
const MAX_WAITING_HANDSHAKES = 64;
/** TLS alerts (RFC 8446 §6). */
const HANDSHAKE_FAILURE_ALERT = 40;
const INTERNAL_ERROR_ALERT = 80;
const UNRECOGNIZED_NAME_ALERT = 112;

export interface QuicCertificatesDeps {
	readonly tls: ThreadTls;
	/** Returns the listener's current settings. */
	readonly selector: () => HandshakeSelector;
	/** Asks the main thread for a certificate that this thread does not have. Resolves to true once it has been published. */
	readonly obtain: (question: CertificateRequestedByClient) => Promise<boolean>;
	countFailure(reason: string): void;
}

/** Reports whether sites with a policy are served over HTTP/3. QUIC requires TLS 1.3 (RFC 9001 §4.2). */
export function servesHttp3(policy: HandshakePolicy): boolean {
	return policy.max_version !== 'tls1.2';
}

/**
 * Reports whether clients over TCP are told that a site is also served over HTTP/3. It is not announced for sites that request
 * client certificates: browsers send none over QUIC, so they would be rejected, or, where the certificate is optional, not
 * recognized.
 */
export function advertisesHttp3(policy: HandshakePolicy): boolean {
	return servesHttp3(policy) && policy.client_auth === undefined;
}

interface HandshakeClientAuth extends QuicClientAuth {
	readonly auth: ClientAuth;
	/** The value of {@link ThreadTls.trustLosses} when the handshake began. */
	readonly trustLosses: number;
}

/** Chooses the certificates for the QUIC handshakes of one listener. */
export class QuicCertificates {
	readonly #deps: QuicCertificatesDeps;
	/**
	 * The certificates requested from the main thread, by name. `resumeCallbacks` continue the waiting handshakes;
	 * `wasObtained` is the result, once it is known.
	 */
	readonly #requestsByName = new Map<string, { resumeCallbacks: (() => void)[]; wasObtained: boolean | undefined }>();

	constructor(deps: QuicCertificatesDeps) {
		this.#deps = deps;
	}

	/** Chooses the certificate for a ClientHello. `resume` is called once a handshake no longer needs to wait. */
	choose(hello: QuicHello, resume: () => void): QuicCertificateChoice {
		const { tls } = this.#deps;
		const selector = this.#deps.selector();
		const { fallback_sni: fallbackName } = selector.settings;
		const name = selector.nameFor(hello.serverName, hello);
		const policyIndex = selector.policyIndexOf(name);
		const policy = selector.policy(policyIndex);
		if (!servesHttp3(policy)) return this.#refuse('not_over_quic', HANDSHAKE_FAILURE_ALERT);
		const clientHello: ClientHello = { ...hello, alpn: ['h3'], offersAcmeTls: false, ticket: undefined };
		let certificate = selector.selectCertificate(policyIndex, name, clientHello, tls.certificates);
		if (certificate === undefined && tls.obtainsOnDemand) {
			if (this.#requestCertificate(hello, name, resume)) return 'wait';
			certificate = tls.certificates.find(name, clientHello);
		}
		certificate ??= fallbackName === undefined ? undefined : tls.certificates.find(fallbackName, clientHello);
		if (certificate === undefined) return this.#refuse('no_certificate', UNRECOGNIZED_NAME_ALERT);
		const { client_auth: auth, insecure_secrets_log: secretsLogFile } = policy;
		const quicCertificate = toQuicCertificate(certificate, policy);
		if (auth === undefined && secretsLogFile === undefined) return quicCertificate;
		const clientAuth = auth && this.#createClientAuth(auth);
		if (auth !== undefined && clientAuth === undefined) return this.#refuse('no_certificate', INTERNAL_ERROR_ALERT);
		return {
			...quicCertificate,
			clientAuth,
			keyLog: secretsLogFile === undefined ? undefined : line => logSecret(secretsLogFile, line),
		};
	}

	/**
	 * Returns the client authentication for a handshake; undefined if the trusted certificates are not known, or if OpenSSL's
	 * verification is not accessible.
	 */
	#createClientAuth(auth: ClientAuth): HandshakeClientAuth | undefined {
		const { tls } = this.#deps;
		const terms = clientVerifier() && tls.clientAuthTerms(auth);
		return terms && { ...terms, auth, trustLosses: tls.trustLosses };
	}

	/** Returns the reason to reject the client of a completed handshake, or undefined to accept it. */
	refusalReason(
		{ auth: handshakeAuth, verified }: QuicClientFacts,
		certificate: X509Certificate | undefined,
	): ClientRefusal | undefined {
		const { tls } = this.#deps;
		const { auth, trustLosses } = handshakeAuth as HandshakeClientAuth;
		// The authority that verified this certificate may have been removed during the handshake.
		if (certificate && trustLosses !== tls.trustLosses) return 'client_certificate_untrusted';
		const verdict = { authorized: verified, authorizationError: new Error('rejected') };
		return clientRefusalReason(verdict, auth, tls, certificate);
	}

	/** Returns the client authentication settings of a handshake. */
	authOf({ auth }: QuicClientFacts): ClientAuth {
		return (auth as HandshakeClientAuth).auth;
	}

	/** Requests a certificate. Returns true if the handshake must wait for it. */
	#requestCertificate(hello: QuicHello, name: string, resume: () => void): boolean {
		const existingRequest = this.#requestsByName.get(name);
		if (existingRequest !== undefined) {
			if (existingRequest.wasObtained !== undefined) return false;
			if (existingRequest.resumeCallbacks.length >= MAX_WAITING_HANDSHAKES) return false;
			existingRequest.resumeCallbacks.push(resume);
			return true;
		}
		if (this.#requestsByName.size >= MAX_WAITING_HANDSHAKES) return false;
		const newRequest = { resumeCallbacks: [resume], wasObtained: undefined as boolean | undefined };
		this.#requestsByName.set(name, newRequest);
		const { cipherSuites, signatureSchemes, localAddress: localIp, remoteAddress: remoteIp } = hello;
		const handleAnswer = (wasObtained: boolean): void => {
			newRequest.wasObtained = wasObtained;
			for (const resumeHandshake of newRequest.resumeCallbacks) resumeHandshake();
			// The entry is kept until the waiting handshakes have chosen their certificates, in a later turn of the event loop.
			// Afterwards, a new handshake may request the certificate again.
			setImmediate(() => setImmediate(() => this.#requestsByName.delete(name)));
		};
		const question = { name, cipherSuites, signatureSchemes, localIp, remoteIp };
		// An async function turns any error into a rejection, because this code runs in a callback of OpenSSL, which must not throw.
		void (async () => this.#deps.obtain(question))().then(handleAnswer, () => handleAnswer(false));
		return true;
	}

	#refuse(reason: string, alert: number): { readonly alert: number } {
		this.#deps.countFailure(reason);
		return { alert };
	}
}

function toQuicCertificate({ published, serial }: TableCertificate, policy: HandshakePolicy): QuicCertificate {
	const { chain, key, ocsp } = published;
	const curves = policy.curves?.flatMap(name => TLS_CURVE_NAMES[name] ?? []) ?? [];
	return { serial, chain, key, ocsp, groups: curves.length > 0 ? curves.join(':') : undefined };
}
