/** Parses certificate signing requests (PKCS #10, RFC 2986): the key, the names, and the proof of possession of the key. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Extensions, id_ce_subjectAltName, Name, SubjectAlternativeName } from '@peculiar/asn1-x509';
import { formatIp, parseIp } from '../../../compiler/exchange/ip-address.ts';
import { AcmeRefusal } from './acme-refusal.ts';

/** The contents of a certificate signing request. */
export interface RequestContents {
	readonly key: KeyObject;
	/** The requested names: alternative names and common name, in lower case, sorted, without duplicates. */
	readonly names: readonly string[];
}

/** DER of the object identifier `extensionRequest` (RFC 2985 §5.4.2), in hexadecimal. */
const EXTENSION_REQUEST_OID = '06092a864886f70d01090e';
/**
 * Digests of the supported signature algorithms, by the DER of the algorithm's object identifier in hexadecimal; null for
 * Ed25519, which includes its own hash.
 */
const DIGESTS_BY_OID: { readonly [oid: string]: string | null } = {
	'06082a8648ce3d040302': 'sha256',
	'06082a8648ce3d040303': 'sha384',
	'06082a8648ce3d040304': 'sha512',
	'06092a864886f70d01010b': 'sha256',
	'06092a864886f70d01010c': 'sha384',
	'06092a864886f70d01010d': 'sha512',
	'06032b6570': null,
};

/** Parses and verifies a request. Throws {@link AcmeRefusal} with type `badCSR`. */
export function readRequest(der: Buffer): RequestContents {
	try {
		const [requestInfo, algorithm, signature] = splitElements(contentOf(der));
		const [, subject, spki, attributes] = splitElements(contentOf(requestInfo!));
		const key = createPublicKey({ key: spki!, format: 'der', type: 'spki' });
		checkKey(key);
		const oid = splitElements(contentOf(algorithm!))[0]!.toString('hex');
		const digest = Object.hasOwn(DIGESTS_BY_OID, oid) ? DIGESTS_BY_OID[oid] : undefined;
		if (digest === undefined || !verify(digest, requestInfo!, key, contentOf(signature!).subarray(1))) {
			throw new AcmeRefusal('badCSR', 400, 'The request is not signed with its key.');
		}
		const names = new Set([...alternativeNames(attributes), ...commonNames(subject!)]);
		return { key, names: [...names].sort() };
	} catch (error) {
		if (error instanceof AcmeRefusal) throw error;
		throw new AcmeRefusal('badCSR', 400, 'The certificate signing request cannot be parsed.');
	}
}

function checkKey(key: KeyObject): void {
	const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
	const isSupported =
		type === 'ed25519' ||
		(type === 'ec' && ['prime256v1', 'secp384r1', 'secp521r1'].includes(details?.namedCurve ?? '')) ||
		(type === 'rsa' && (details?.modulusLength ?? 0) >= 2048 && (details?.modulusLength ?? 0) <= 8192);
	if (!isSupported)
		throw new AcmeRefusal('badCSR', 400, 'The key of the request is too weak or of an unsupported type.');
}

function alternativeNames(attributes: Buffer | undefined): string[] {
	if (!attributes) return [];
	const extensionRequest = splitElements(contentOf(attributes))
		.map(attribute => splitElements(contentOf(attribute)))
		.find(([oid]) => oid?.toString('hex') === EXTENSION_REQUEST_OID);
	const extensions = extensionRequest?.[1] && splitElements(contentOf(extensionRequest[1]))[0];
	if (!extensions) return [];
	const extension = AsnConvert.parse(extensions, Extensions).find(({ extnID }) => extnID === id_ce_subjectAltName);
	if (!extension) return [];
	return AsnConvert.parse(extension.extnValue, SubjectAlternativeName).map(({ dNSName, iPAddress }) => {
		const name = dNSName ?? iPAddress;
		if (name === undefined)
			throw new AcmeRefusal('badCSR', 400, 'The request contains subjects other than names and addresses.');
		const address = iPAddress === undefined ? undefined : parseIp(iPAddress);
		return address ? formatIp(address) : name.toLowerCase();
	});
}

function commonNames(subject: Buffer): string[] {
	return AsnConvert.parse(subject, Name).flatMap(part =>
		[...part].flatMap(({ type, value }) => (type === '2.5.4.3' ? [value.toString().toLowerCase()] : [])),
	);
}

function contentOf(der: Buffer): Buffer {
	const { start, end } = contentBounds(der);
	return der.subarray(start, end);
}

/** Splits the content of a DER sequence or set into its elements. */
function splitElements(content: Buffer): Buffer[] {
	const elements: Buffer[] = [];
	for (let at = 0; at < content.length; ) {
		const { end } = contentBounds(content.subarray(at));
		elements.push(content.subarray(at, at + end));
		at += end;
	}
	return elements;
}

/** Returns where the content of the DER element at the beginning of `der` starts and ends. */
function contentBounds(der: Buffer): { readonly start: number; readonly end: number } {
	const lengthByte = der.readUInt8(1);
	const lengthSize = lengthByte < 128 ? 0 : lengthByte - 128;
	const length = lengthSize === 0 ? lengthByte : der.readUIntBE(2, lengthSize);
	const end = 2 + lengthSize + length;
	if (lengthByte === 128 || lengthSize > 4 || end > der.length) throw new RangeError('DER that ends too early');
	return { start: 2 + lengthSize, end };
}
