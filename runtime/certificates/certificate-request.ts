/** Certificate signing requests (PKCS #10, RFC 2986), and certificates for TLS-ALPN-01 challenges (RFC 8737). */
import { createHash, type KeyObject } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { id_ce_subjectAltName } from '@peculiar/asn1-x509';
import { makePrivateKey, privateKeyPem, signDer } from './certificate-keys.ts';
import {
	algorithmIdentifier,
	alternativeNames,
	certificatePem,
	issueCertificate,
	subjectPublicKey,
} from './issue-certificate.ts';

const SEQUENCE_TAG = 0x30;
const SET_TAG = 0x31;
const INTEGER_TAG = 0x02;
const BIT_STRING_TAG = 0x03;
const OCTET_STRING_TAG = 0x04;
const OID_TAG = 0x06;
const ATTRIBUTES_TAG = 0xa0;

/** Returns the DER of a certificate signing request for these names. */
export function certificateRequest(names: readonly string[], key: KeyObject): Buffer {
	const extension = encodeDer(
		SEQUENCE_TAG,
		encodeOid(id_ce_subjectAltName),
		encodeDer(OCTET_STRING_TAG, Buffer.from(AsnConvert.serialize(alternativeNames(names)))),
	);
	const attribute = encodeDer(
		SEQUENCE_TAG,
		encodeOid('1.2.840.113549.1.9.14'),
		encodeDer(SET_TAG, encodeDer(SEQUENCE_TAG, extension)),
	);
	const requestInfo = encodeDer(
		SEQUENCE_TAG,
		encodeDer(INTEGER_TAG, Buffer.of(0)),
		encodeDer(SEQUENCE_TAG),
		subjectPublicKey(key),
		encodeDer(ATTRIBUTES_TAG, attribute),
	);
	const signature = Buffer.concat([Buffer.of(0), signDer(key, requestInfo)]);
	return encodeDer(
		SEQUENCE_TAG,
		requestInfo,
		Buffer.from(AsnConvert.serialize(algorithmIdentifier(key))),
		encodeDer(BIT_STRING_TAG, signature),
	);
}

/** Creates a certificate that answers a TLS-ALPN-01 challenge (RFC 8737 §3) for one name. It contains the digest of the key authorization. */
export async function challengeCertificate(
	name: string,
	keyAuthorization: string,
): Promise<{ readonly chain: string; readonly key: string }> {
	const key = await makePrivateKey('p256');
	const digest = createHash('sha256').update(keyAuthorization).digest();
	const now = Date.now();
	const certificate = issueCertificate({
		names: [name],
		key,
		commonName: 'ACME challenge',
		notBefore: new Date(now - 3_600_000),
		notAfter: new Date(now + 7 * 86_400_000),
		extensions: [{ oid: '1.3.6.1.5.5.7.1.31', critical: true, value: encodeDer(OCTET_STRING_TAG, digest) }],
	});
	return { chain: certificatePem(certificate), key: privateKeyPem(key) };
}

function encodeDer(tag: number, ...parts: readonly Buffer[]): Buffer {
	const content = Buffer.concat(parts);
	const { length } = content;
	if (length < 128) return Buffer.concat([Buffer.of(tag, length), content]);
	const lengthBytes = length < 256 ? [length] : [length >> 8, length & 255];
	return Buffer.concat([Buffer.of(tag, 0x80 | lengthBytes.length, ...lengthBytes), content]);
}

function encodeOid(text: string): Buffer {
	const [first, second, ...otherArcs] = text.split('.').map(Number);
	const bytes = [first! * 40 + second!];
	for (const part of otherArcs) {
		const groups = [part & 127];
		for (let remaining = part >> 7; remaining > 0; remaining >>= 7) groups.unshift((remaining & 127) | 128);
		bytes.push(...groups);
	}
	return encodeDer(OID_TAG, Buffer.from(bytes));
}
