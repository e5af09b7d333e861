/** OCSP requests and responses (RFC 6960): encoding, parsing and verification. */
import { createHash, verify, X509Certificate } from 'node:crypto';
import {
	BasicOCSPResponse,
	CertID,
	id_kp_OCSPSigning,
	id_pkix_ocsp_basic,
	OCSPRequest,
	OCSPResponse,
	OCSPResponseStatus,
	Request,
	type SingleResponse,
	TBSRequest,
} from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate } from '@peculiar/asn1-x509';
import { toArrayBuffer } from './issue-certificate.ts';

/** The status of a certificate according to its responder. */
export interface CertificateStatus {
	readonly status: 'good' | 'revoked' | 'unknown';
	/** The start (`thisUpdate`) and the end (`nextUpdate`) of the response's validity, in milliseconds since the epoch. */
	readonly thisUpdate: number;
	readonly nextUpdate: number;
}

/** The error for an OCSP response that is invalid or unavailable. The message is a full sentence. */
export class StatusError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'StatusError';
	}
}

/** Milliseconds for which a response without `nextUpdate` is valid. */
const DEFAULT_VALIDITY_MS = 86_400_000;
/** Maximum milliseconds by which the clock of a responder may be ahead of this machine's clock. */
const MAX_CLOCK_SKEW_MS = 300_000;
const SHA1_OID = '1.3.14.3.2.26';

/** Digests of the supported signature algorithms; null for Ed25519, which includes its own hash. */
const DIGESTS_BY_OID: { readonly [oid: string]: string | null } = {
	'1.2.840.113549.1.1.11': 'sha256',
	'1.2.840.113549.1.1.12': 'sha384',
	'1.2.840.113549.1.1.13': 'sha512',
	'1.2.840.10045.4.3.2': 'sha256',
	'1.2.840.10045.4.3.3': 'sha384',
	'1.2.840.10045.4.3.4': 'sha512',
	'1.3.101.112': null,
};

/** Returns the URL of a certificate's OCSP responder; undefined if the certificate does not name a responder with an HTTP URL. */
export function responderOf(certificate: X509Certificate): string | undefined {
	return /^OCSP - URI:(https?:\/\/\S+)$/m.exec(certificate.infoAccess ?? '')?.[1];
}

/** Encodes a request for the status of a certificate, in DER. */
export function encodeStatusRequest(certificate: X509Certificate, issuer: X509Certificate): Buffer {
	const reqCert = certificateId(certificate, issuer);
	const tbsRequest = new TBSRequest({ requestList: [new Request({ reqCert })] });
	return Buffer.from(AsnConvert.serialize(new OCSPRequest({ tbsRequest })));
}

/**
 * Parses and verifies a response. Throws {@link StatusError} unless the response is for the certificate, is signed by its issuer
 * or an authorized responder (§4.2.2.2), and is valid at `now`, in milliseconds since the epoch.
 */
export function parseStatus(
	response: Uint8Array,
	certificate: X509Certificate,
	issuer: X509Certificate,
	now: number,
): CertificateStatus {
	const basicResponse = parseBasicResponse(response);
	verifySignature(basicResponse, issuer, now);
	const expectedId = certificateId(certificate, issuer);
	const singleResponse = basicResponse.tbsResponseData.responses.find(({ certID }) => isSameId(certID, expectedId));
	if (!singleResponse) throw new StatusError('The response is for other certificates.');
	const thisUpdate = singleResponse.thisUpdate.getTime();
	const nextUpdate = singleResponse.nextUpdate?.getTime() ?? thisUpdate + DEFAULT_VALIDITY_MS;
	if (thisUpdate > now + MAX_CLOCK_SKEW_MS) throw new StatusError('The response is not valid yet.');
	if (nextUpdate <= now) throw new StatusError('The response has expired.');
	return { status: statusOf(singleResponse), thisUpdate, nextUpdate };
}

function parseBasicResponse(der: Uint8Array): BasicOCSPResponse {
	try {
		const { responseStatus, responseBytes } = AsnConvert.parse(der, OCSPResponse);
		if (responseStatus !== OCSPResponseStatus.successful) {
			throw new StatusError(`The responder answered with status ${responseStatus}.`);
		}
		if (responseBytes?.responseType !== id_pkix_ocsp_basic) {
			throw new StatusError('The response type is not supported.');
		}
		return AsnConvert.parse(responseBytes.response.buffer, BasicOCSPResponse);
	} catch (error) {
		if (error instanceof StatusError) throw error;
		throw new StatusError('The answer of the responder is not an OCSP response.');
	}
}

function verifySignature(basicResponse: BasicOCSPResponse, issuer: X509Certificate, now: number): void {
	const digest = DIGESTS_BY_OID[basicResponse.signatureAlgorithm.algorithm];
	if (digest === undefined) throw new StatusError('The signature algorithm of the response is not supported.');
	const signedData = Buffer.from(basicResponse.tbsResponseDataRaw ?? new ArrayBuffer(0));
	const signature = Buffer.from(basicResponse.signature);
	for (const signer of [issuer, ...authorizedSigners(basicResponse, issuer, now)]) {
		try {
			if (verify(digest, signedData, signer.publicKey, signature)) return;
		} catch {
			// `verify` throws if the key's type does not fit the signature. In that case, the signature is invalid.
		}
	}
	throw new StatusError('The response is not signed by the issuer of the certificate.');
}

/** Returns the certificates in the response that the issuer has authorized to sign responses. */
function authorizedSigners(basicResponse: BasicOCSPResponse, issuer: X509Certificate, now: number): X509Certificate[] {
	return (basicResponse.certs ?? []).slice(0, 4).flatMap(element => {
		const certificate = new X509Certificate(Buffer.from(AsnConvert.serialize(element)));
		const isAuthorized = certificate.keyUsage?.includes(id_kp_OCSPSigning) === true;
		const isValid =
			certificate.validFromDate.getTime() <= now + MAX_CLOCK_SKEW_MS && certificate.validToDate.getTime() > now;
		const isSigned = certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
		return isAuthorized && isValid && isSigned ? [certificate] : [];
	});
}

function certificateId(certificate: X509Certificate, issuer: X509Certificate): CertID {
	const { tbsCertificate } = AsnConvert.parse(certificate.raw, Certificate);
	const issuerKey = AsnConvert.parse(issuer.raw, Certificate).tbsCertificate.subjectPublicKeyInfo.subjectPublicKey;
	const sha1 = (bytes: ArrayBuffer): OctetString =>
		new OctetString(toArrayBuffer(createHash('sha1').update(Buffer.from(bytes)).digest()));
	return new CertID({
		hashAlgorithm: new AlgorithmIdentifier({ algorithm: SHA1_OID, parameters: null }),
		issuerNameHash: sha1(AsnConvert.serialize(tbsCertificate.issuer)),
		issuerKeyHash: sha1(issuerKey),
		serialNumber: tbsCertificate.serialNumber,
	});
}

function isSameId(a: CertID, b: CertID): boolean {
	const equalBytes = (x: ArrayBuffer, y: ArrayBuffer): boolean => Buffer.from(x).equals(Buffer.from(y));
	return (
		a.hashAlgorithm.algorithm === b.hashAlgorithm.algorithm &&
		equalBytes(a.issuerNameHash.buffer, b.issuerNameHash.buffer) &&
		equalBytes(a.issuerKeyHash.buffer, b.issuerKeyHash.buffer) &&
		equalBytes(a.serialNumber, b.serialNumber)
	);
}

function statusOf({ certStatus }: SingleResponse): CertificateStatus['status'] {
	if (certStatus.revoked !== undefined) return 'revoked';
	return certStatus.good === null ? 'good' : 'unknown';
}
