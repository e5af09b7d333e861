/**
 * Makes OpenSSL verify client certificates during the handshake, so that a rejected client gets an alert with the reason
 * (RFC 8446 §6.2). Node accepts every handshake with a certificate and leaves verification to the application, which can then
 * only close the connection.
 */
import type { SecureContext } from 'node:tls';
import { contextAddress } from './context-address.ts';
import { foreignFunctions } from './foreign-functions.ts';
import { isDirectIo } from './io-mode.ts';

/** Criteria for accepting a client certificate. A certificate must meet both of them. */
export interface ClientCertificateCriteria {
	/** True if the certificate must be signed by an authority that the TLS context trusts. */
	readonly chain: boolean;
	/** SHA-256 fingerprints (`AB:CD:…`), one of which the certificate must have. Undefined accepts any certificate. */
	readonly leaves: readonly string[] | undefined;
}

/** The rules for client certificates: whether one is required, and which are accepted. */
export interface ClientCertificateTerms {
	/** True if a client without a certificate is rejected. */
	readonly required: boolean;
	readonly criteria: ClientCertificateCriteria;
}

/** Enables the verification of client certificates by OpenSSL. */
export interface ClientVerifier {
	/**
	 * Enables verification for a TLS context, and calls {@link rejectExpiredSessions} for it if its criteria reject any certificate.
	 * Throws if the context's internals are not as expected.
	 */
	enableFor(context: SecureContext, criteria: ClientCertificateCriteria): void;
	/**
	 * Makes OpenSSL ignore the ticket of a session whose client certificate has expired since the session began. A full handshake
	 * follows, in which the client must present a valid certificate. Without this, a client could go on resuming for hours, because
	 * OpenSSL does not verify a certificate again when it resumes a session.
	 * @param contextPointer Address of the `SSL_CTX`.
	 */
	rejectExpiredSessions(contextPointer: bigint): void;
	/**
	 * Verifies a certificate inside OpenSSL's verification callback, for contexts without {@link enableFor}. Returns
	 * false if the certificate is rejected. Never throws.
	 * @param storeContext The callback's `X509_STORE_CTX`, with the trusted authorities set.
	 */
	accepts(storeContext: bigint, criteria: ClientCertificateCriteria): boolean;
	/** True if the last rejected certificate had expired. `accepts` itself does not tell why it rejects a certificate. */
	readonly refusedAsExpired: boolean;
}

/** OpenSSL's verification results (x509_vfy.h). OpenSSL sends a different alert for each. */
const VERIFY_OK = 0;
const NOT_YET_VALID = 9;
const CERTIFICATE_EXPIRED = 10;
const CERTIFICATE_REJECTED = 28;
const VERIFICATION_FAILED = 50;

/** OpenSSL's statuses of a ticket that it has decrypted, and what the ticket callback may answer (ssl.h). */
const TICKET_VALID = 5;
const TICKET_VALID_RENEW = 6;
const IGNORE_AND_RENEW = 2;
const USE_TICKET = 3;
const USE_AND_RENEW = 4;

const SHA256_BYTES = 32;

let threadVerifier: ClientVerifier | undefined | null = null;

/** Returns the verifier of this thread, or undefined if OpenSSL cannot be accessed. */
export function clientVerifier(): ClientVerifier | undefined {
	if (!isDirectIo()) return undefined;
	if (threadVerifier === null) {
		try {
			threadVerifier = makeVerifier();
		} catch {
			// This Node has no `node:ffi`, or does not export OpenSSL's symbols.
			threadVerifier = undefined;
		}
	}
	return threadVerifier;
}

/** Reports whether the criteria can reject a certificate. Otherwise, they accept every certificate. */
export function checksCertificates({ chain, leaves }: ClientCertificateCriteria): boolean {
	return chain || leaves !== undefined;
}

/** Criteria whose fingerprints are hexadecimal, without separators. */
interface PreparedCriteria {
	readonly chain: boolean;
	readonly leaves: ReadonlySet<string> | undefined;
}

function prepareCriteria({ chain, leaves }: ClientCertificateCriteria): PreparedCriteria {
	const hexFingerprints = leaves?.map(fingerprint => fingerprint.replaceAll(':', '').toLowerCase());
	return { chain, leaves: hexFingerprints && new Set(hexFingerprints) };
}

function makeVerifier(): ClientVerifier | undefined {
	const ffi = foreignFunctions();
	if (ffi === undefined) return undefined;
	const { lib, functions } = ffi.dlopen(null, {
		SSL_CTX_set_cert_verify_callback: { return: 'void', arguments: ['pointer', 'pointer', 'pointer'] },
		SSL_CTX_set_session_ticket_cb: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer'] },
		SSL_SESSION_get0_peer: { return: 'pointer', arguments: ['pointer'] },
		X509_verify_cert: { return: 'int32', arguments: ['pointer'] },
		X509_STORE_CTX_set_verify_cb: { return: 'void', arguments: ['pointer', 'pointer'] },
		X509_STORE_CTX_get_error: { return: 'int32', arguments: ['pointer'] },
		X509_STORE_CTX_set_error: { return: 'void', arguments: ['pointer', 'int32'] },
		X509_STORE_CTX_get0_cert: { return: 'pointer', arguments: ['pointer'] },
		X509_get0_notBefore: { return: 'pointer', arguments: ['pointer'] },
		X509_get0_notAfter: { return: 'pointer', arguments: ['pointer'] },
		X509_cmp_current_time: { return: 'int32', arguments: ['pointer'] },
		X509_digest: { return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'pointer'] },
		EVP_sha256: { return: 'pointer', arguments: [] },
	});
	const sha256 = functions.EVP_sha256();
	const digest = Buffer.allocUnsafeSlow(SHA256_BYTES);
	const digestAddress = ffi.getRawPointer(digest);
	/**
	 * All criteria that were ever used. OpenSSL's callback receives an index of this array, so nothing is removed: a handshake in
	 * progress may refer to it. There are only a few criteria.
	 */
	const criteriaByNumber: PreparedCriteria[] = [];
	const numberByKey = new Map<string, number>();
	const preparedByCriteria = new WeakMap<ClientCertificateCriteria, PreparedCriteria>();
	let wasExpired = false;

	// OpenSSL calls this function for each certificate of a chain. Node's own callback, which it replaces, ignores every problem.
	const stopAtFirstProblem = lib.registerCallback(
		{ return: 'int32', arguments: ['int32', 'pointer'] },
		isValid => isValid,
	);
	const verifyLeaf = (certificate: bigint, leaves: ReadonlySet<string>): number => {
		if (functions.X509_digest(certificate, sha256, digestAddress, 0n) !== 1) return VERIFICATION_FAILED;
		if (!leaves.has(digest.toString('hex'))) return CERTIFICATE_REJECTED;
		if (functions.X509_cmp_current_time(functions.X509_get0_notBefore(certificate)) > 0) return NOT_YET_VALID;
		return functions.X509_cmp_current_time(functions.X509_get0_notAfter(certificate)) > 0
			? VERIFY_OK
			: CERTIFICATE_EXPIRED;
	};
	const verify = (storeContext: bigint, preparedCriteria: PreparedCriteria | undefined): number => {
		if (preparedCriteria === undefined) return VERIFICATION_FAILED;
		if (preparedCriteria.chain) {
			functions.X509_STORE_CTX_set_verify_cb(storeContext, stopAtFirstProblem);
			if (functions.X509_verify_cert(storeContext) !== 1)
				return functions.X509_STORE_CTX_get_error(storeContext) || VERIFICATION_FAILED;
		}
		if (preparedCriteria.leaves === undefined) return VERIFY_OK;
		const certificate = functions.X509_STORE_CTX_get0_cert(storeContext);
		return certificate === 0n ? VERIFICATION_FAILED : verifyLeaf(certificate, preparedCriteria.leaves);
	};
	const acceptsPrepared = (storeContext: bigint, preparedCriteria: PreparedCriteria | undefined): boolean => {
		let error = VERIFICATION_FAILED;
		try {
			error = verify(storeContext, preparedCriteria);
			functions.X509_STORE_CTX_set_error(storeContext, error);
		} catch {
			error = VERIFICATION_FAILED;
		}
		wasExpired = error === CERTIFICATE_EXPIRED;
		return error === VERIFY_OK;
	};
	const verifyCallback = lib.registerCallback(
		{ return: 'int32', arguments: ['pointer', 'pointer'] },
		(store, number): number => (acceptsPrepared(store as bigint, criteriaByNumber[Number(number)]) ? 1 : 0),
	);
	const hasExpired = (certificate: bigint): boolean =>
		certificate !== 0n && functions.X509_cmp_current_time(functions.X509_get0_notAfter(certificate)) <= 0;
	const ticketCallback = lib.registerCallback(
		{ return: 'int32', arguments: ['pointer', 'pointer', 'pointer', 'uint64', 'int32', 'pointer'] },
		(_ssl, session, _keyName, _keyNameBytes, status): number => {
			// OpenSSL asks about tickets that it could not decrypt, too.
			if (status !== TICKET_VALID && status !== TICKET_VALID_RENEW) return IGNORE_AND_RENEW;
			try {
				if (hasExpired(functions.SSL_SESSION_get0_peer(session as bigint))) return IGNORE_AND_RENEW;
				return status === TICKET_VALID ? USE_TICKET : USE_AND_RENEW;
			} catch {
				return IGNORE_AND_RENEW;
			}
		},
	);
	const rejectExpiredSessions = (contextPointer: bigint): void => {
		functions.SSL_CTX_set_session_ticket_cb(contextPointer, 0n, ticketCallback, 0n);
	};
	return {
		rejectExpiredSessions,
		accepts(store, criteria) {
			const preparedCriteria = preparedByCriteria.get(criteria) ?? prepareCriteria(criteria);
			preparedByCriteria.set(criteria, preparedCriteria);
			return acceptsPrepared(store, preparedCriteria);
		},
		enableFor(context, criteria) {
			const key = JSON.stringify([criteria.chain, criteria.leaves]);
			let criteriaNumber = numberByKey.get(key);
			if (criteriaNumber === undefined) {
				criteriaNumber = criteriaByNumber.length;
				criteriaByNumber.push(prepareCriteria(criteria));
				numberByKey.set(key, criteriaNumber);
			}
			const contextPointer = contextAddress(context);
			functions.SSL_CTX_set_cert_verify_callback(contextPointer, verifyCallback, BigInt(criteriaNumber));
			if (checksCertificates(criteria)) rejectExpiredSessions(contextPointer);
		},
		get refusedAsExpired() {
			return wasExpired;
		},
	};
}
