/** Creates X.509 certificates (RFC 5280): roots, intermediates, server certificates, and answers to TLS-ALPN-01. */
import { createHash, createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
	AlgorithmIdentifier,
	AttributeTypeAndValue,
	AttributeValue,
	AuthorityKeyIdentifier,
	BasicConstraints,
	Certificate,
	ExtendedKeyUsage,
	Extension,
	Extensions,
	GeneralName,
	id_ce_authorityKeyIdentifier,
	id_ce_basicConstraints,
	id_ce_extKeyUsage,
	id_ce_keyUsage,
	id_ce_subjectAltName,
	id_ce_subjectKeyIdentifier,
	id_kp_clientAuth,
	id_kp_serverAuth,
	KeyIdentifier,
	KeyUsage,
	KeyUsageFlags,
	Name,
	RelativeDistinguishedName,
	SubjectAlternativeName,
	SubjectKeyIdentifier,
	SubjectPublicKeyInfo,
	TBSCertificate,
	Validity,
} from '@peculiar/asn1-x509';
import { parseIp } from '../../compiler/exchange/ip-address.ts';
import { signatureAlgorithm, signDer } from './certificate-keys.ts';

/** A signing certificate in DER, and its private key. */
export interface CertificateSigner {
	readonly certificate: Uint8Array;
	readonly key: KeyObject;
}

/** The contents of a certificate. */
export interface CertificateRequest {
	/** The common name. Server certificates have none, because clients check only the alternative names. */
	readonly commonName?: string | undefined;
	/** The DNS names and IP addresses for which the certificate is valid. */
	readonly names?: readonly string[] | undefined;
	/** Makes the certificate a CA. `pathLength` is the number of intermediates allowed below it. */
	readonly authority?: { readonly pathLength: number } | undefined;
	/** The key to certify, private or public. */
	readonly key: KeyObject;
	/** The signer; undefined for a self-signed certificate. */
	readonly signer?: CertificateSigner | undefined;
	/** Object identifiers of the extended key usage; server and client authentication by default. */
	readonly purposes?: readonly string[] | undefined;
	readonly notBefore: Date;
	readonly notAfter: Date;
	/** Additional extensions, with values in DER. */
	readonly extensions?: readonly { readonly oid: string; readonly critical: boolean; readonly value: Uint8Array }[];
}

/** Creates and signs a certificate. Returns it in DER. */
export function issueCertificate(request: CertificateRequest): Buffer {
	const { key, signer, names = [], authority, commonName, purposes = [id_kp_serverAuth, id_kp_clientAuth] } = request;
	const spki = subjectPublicKey(key);
	const issuer = signer && AsnConvert.parse(signer.certificate, Certificate).tbsCertificate;
	const signingKey = signer?.key ?? key;
	const algorithm = algorithmIdentifier(signingKey);
	const keyId = computeKeyIdentifier(spki);
	const subject = commonName === undefined ? new Name([]) : distinguishedName(commonName);
	const extensions = [
		createExtension(id_ce_keyUsage, true, createKeyUsage(key, authority !== undefined)),
		...(authority
			? [
					createExtension(
						id_ce_basicConstraints,
						true,
						new BasicConstraints({ cA: true, pathLenConstraint: authority.pathLength }),
					),
				]
			: [createExtension(id_ce_extKeyUsage, false, new ExtendedKeyUsage([...purposes]))]),
		createExtension(id_ce_subjectKeyIdentifier, false, new SubjectKeyIdentifier(keyId)),
		createExtension(
			id_ce_authorityKeyIdentifier,
			false,
			new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(issuer ? subjectKeyIdentifierOf(issuer) : keyId) }),
		),
		// RFC 5280 §4.2.1.6: with an empty subject, the alternative names must be critical.
		...(names.length > 0
			? [createExtension(id_ce_subjectAltName, commonName === undefined, alternativeNames(names))]
			: []),
		...(request.extensions ?? []).map(
			({ oid, critical, value }) => new Extension({ extnID: oid, critical, extnValue: new OctetString(value) }),
		),
	];
	const tbsCertificate = new TBSCertificate({
		version: 2,
		serialNumber: createSerialNumber(),
		signature: algorithm,
		issuer: issuer?.subject ?? subject,
		validity: new Validity({ notBefore: floorToSecond(request.notBefore), notAfter: floorToSecond(request.notAfter) }),
		subject,
		subjectPublicKeyInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
		extensions: new Extensions(extensions),
	});
	const signedBytes = Buffer.from(AsnConvert.serialize(tbsCertificate));
	const signature = signDer(signingKey, signedBytes);
	return Buffer.from(
		AsnConvert.serialize(
			new Certificate({
				tbsCertificate,
				tbsCertificateRaw: toArrayBuffer(signedBytes),
				signatureAlgorithm: algorithm,
				signatureValue: toArrayBuffer(signature),
			}),
		),
	);
}

/** Encodes the alternative names of a certificate or a certificate request. */
export function alternativeNames(names: readonly string[]): SubjectAlternativeName {
	return new SubjectAlternativeName(
		names.map(name => new GeneralName(parseIp(name) ? { iPAddress: name } : { dNSName: name })),
	);
}

/** Returns a distinguished name that consists only of a common name. */
export function distinguishedName(commonName: string): Name {
	const type = '2.5.4.3';
	const value = new AttributeValue({ utf8String: commonName });
	return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value })])]);
}

/** Returns the identifier of the algorithm with which a key signs. */
export function algorithmIdentifier(key: KeyObject): AlgorithmIdentifier {
	const { oid, hasNullParameters } = signatureAlgorithm(key);
	return new AlgorithmIdentifier({ algorithm: oid, ...(hasNullParameters ? { parameters: null } : {}) });
}

/** Returns the public key of a private or public key, as SPKI in DER. */
export function subjectPublicKey(key: KeyObject): Buffer {
	const publicKey = key.type === 'private' ? createPublicKey(key) : key;
	return publicKey.export({ type: 'spki', format: 'der' });
}

/** Converts a certificate from DER to PEM. */
export function certificatePem(der: Uint8Array): string {
	const lines = Buffer.from(der)
		.toString('base64')
		.replace(/.{64}(?=.)/g, '$&\n');
	return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/** Copies bytes into an ArrayBuffer of their exact size, which the ASN.1 library requires. */
export function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
	return Uint8Array.from(bytes).buffer;
}

function createExtension(extnID: string, critical: boolean, value: unknown): Extension {
	return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function createKeyUsage(key: KeyObject, isAuthority: boolean): KeyUsage {
	if (isAuthority) return new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign);
	// The RSA key exchange of TLS 1.2 needs key encipherment.
	const encipherFlag = key.asymmetricKeyType === 'rsa' ? KeyUsageFlags.keyEncipherment : 0;
	return new KeyUsage(KeyUsageFlags.digitalSignature | encipherFlag);
}

/** Returns the leftmost 160 bits of the SHA-256 of the key (RFC 7093 §2). */
function computeKeyIdentifier(spki: Buffer): ArrayBuffer {
	const { subjectPublicKey: bits } = AsnConvert.parse(spki, SubjectPublicKeyInfo);
	return toArrayBuffer(createHash('sha256').update(Buffer.from(bits)).digest().subarray(0, 20));
}

/** Returns the subject key identifier of the signer's certificate. */
function subjectKeyIdentifierOf(issuer: TBSCertificate): ArrayBuffer {
	const keyIdExtension = issuer.extensions?.find(({ extnID }) => extnID === id_ce_subjectKeyIdentifier);
	if (keyIdExtension) return AsnConvert.parse(keyIdExtension.extnValue, SubjectKeyIdentifier).buffer;
	return computeKeyIdentifier(Buffer.from(AsnConvert.serialize(issuer.subjectPublicKeyInfo)));
}

/** Returns a random positive serial number of 16 bytes (RFC 5280 §4.1.2.2). */
function createSerialNumber(): ArrayBuffer {
	const bytes = randomBytes(16);
	bytes[0] = (bytes[0]! & 0x3f) | 0x40;
	return toArrayBuffer(bytes);
}

/** Rounds down to a whole second, because certificates contain no fractions of seconds. */
function floorToSecond(time: Date): Date {
	return new Date(Math.floor(time.getTime() / 1000) * 1000);
}
