/** Checks a client's certificate after the handshake. If anything needed for the check is unknown, the client is rejected. */
import type { X509Certificate } from 'node:crypto';
import type { ClientAuth } from '../../compiler/document/tls-settings.ts';
import type { ClientProof } from '../sockets/direct-handshake.ts';
import type { ThreadTls } from './thread-tls.ts';

/** Why a client was rejected. */
export type ClientRefusal =
	| 'client_certificate_missing'
	| 'client_certificate_untrusted'
	| 'client_certificate_expired';

/** The result of the certificate verification during the handshake, in the form in which Node reports it. */
export type ClientVerdict = Pick<ClientProof, 'authorized' | 'authorizationError'>;

/**
 * Returns the reason to reject a client, or undefined to accept it. A resumed session has the certificate of its first handshake.
 */
export function clientRefusalReason(
	verification: ClientVerdict,
	auth: ClientAuth,
	tls: ThreadTls,
	certificate: X509Certificate | undefined,
): ClientRefusal | undefined {
	switch (auth.mode) {
		case 'request':
			return undefined;
		case 'require':
			return certificate ? leafRefusalReason(auth, tls, certificate) : 'client_certificate_missing';
		case 'verify_if_given':
			return certificate ? trustRefusalReason(verification, auth, tls, certificate) : undefined;
		case 'require_and_verify':
			return certificate ? trustRefusalReason(verification, auth, tls, certificate) : 'client_certificate_missing';
		default:
			return 'client_certificate_untrusted';
	}
}

function trustRefusalReason(
	verification: ClientVerdict,
	auth: ClientAuth,
	tls: ThreadTls,
	certificate: X509Certificate,
): ClientRefusal | undefined {
	if (auth.trust_pool && !verification.authorized) return nodeRefusalReason(verification);
	if (!auth.trust_pool && !auth.trusted_leaves) return 'client_certificate_untrusted';
	// A resumed session has the verdict of its first handshake. Where OpenSSL's callbacks are accessible, it is not resumed once the
	// certificate has expired; see `ClientVerifier.rejectExpiredSessions`.
	if (hasExpired(certificate)) return 'client_certificate_expired';
	return leafRefusalReason(auth, tls, certificate);
}

function leafRefusalReason(auth: ClientAuth, tls: ThreadTls, certificate: X509Certificate): ClientRefusal | undefined {
	if (!auth.trusted_leaves) return undefined;
	const leaves = tls.trustFor(tls.trustKeyOf(auth))?.leaves;
	if (!leaves?.includes(certificate.fingerprint256)) return 'client_certificate_untrusted';
	if (Date.now() < Date.parse(certificate.validFrom)) return 'client_certificate_untrusted';
	return hasExpired(certificate) ? 'client_certificate_expired' : undefined;
}

function hasExpired(certificate: X509Certificate): boolean {
	return Date.now() >= Date.parse(certificate.validTo);
}

/** Returns the reason for which Node did not authorize a client. */
export function nodeRefusalReason({ authorizationError }: ClientVerdict): ClientRefusal {
	return String(authorizationError) === 'CERT_HAS_EXPIRED'
		? 'client_certificate_expired'
		: 'client_certificate_untrusted';
}
