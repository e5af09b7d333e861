/** Certificates in the store: `certificates/<issuer>/<name>/<name>.crt`, `.key` and `.json`. */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { type Store, toKeySegment } from '../storage/store.ts';
import { parsePrivateKey } from './certificate-keys.ts';
import type { IssuedCertificate } from './issuer.ts';

/** The folder of all certificates in the store. */
export const CERTIFICATES_FOLDER = 'certificates';

/** A certificate with its key, as kept in the store. */
export interface CertificateRecord {
	/** The path segment that identifies the issuer in store keys. */
	readonly issuer: string;
	readonly name: string;
	/** The certificate, followed by its chain, in PEM. */
	readonly chain: string;
	/** The private key in PKCS#8 PEM. */
	readonly privateKey: string;
	/** Start of the certificate's validity, in milliseconds since the epoch. */
	readonly notBefore: number;
	readonly notAfter: number;
	/** SHA-256 of the certificate, in lower-case hexadecimal. */
	readonly fingerprint: string;
	/** True if the certificate names an OCSP responder. */
	readonly hasResponder: boolean;
}

/** Returns the folder of a certificate in the store. */
function recordFolder(issuer: string, name: string): string {
	return `${CERTIFICATES_FOLDER}/${issuer}/${toKeySegment(name)}`;
}

/**
 * Reads a certificate. Returns undefined if there is none, if the key does not match, or if the certificate is for another name.
 */
export async function readCertificateRecord(
	store: Store,
	issuer: string,
	name: string,
): Promise<CertificateRecord | undefined> {
	const pathPrefix = `${recordFolder(issuer, name)}/${toKeySegment(name)}`;
	const [chain, key] = await Promise.all([store.read(`${pathPrefix}.crt`), store.read(`${pathPrefix}.key`)]);
	if (!chain || !key) return undefined;
	const record = createCertificateRecord(issuer, name, chain.toString('latin1'), key.toString('latin1'));
	return record ?? (await readUnfinishedPair(store, pathPrefix, issuer, name));
}

/** Reads a key and certificate from the `.next` file that a process left when it died before writing both separate files. */
async function readUnfinishedPair(
	store: Store,
	pathPrefix: string,
	issuer: string,
	name: string,
): Promise<CertificateRecord | undefined> {
	const pairJson = await store.read(`${pathPrefix}.next`);
	if (!pairJson) return undefined;
	try {
		const { chain, key } = JSON.parse(pairJson.toString('utf8')) as { chain: string; key: string };
		return createCertificateRecord(issuer, name, chain, key);
	} catch {
		return undefined;
	}
}

/**
 * Writes an issued certificate. Key and certificate are separate files, and a process may die between the two writes. On a
 * renewal, that would destroy the previous pair, so the new pair is written to a single `.next` file first.
 */
export async function writeCertificateRecord(
	store: Store,
	{ issuer, name, chain, privateKey }: CertificateRecord,
	details: IssuedCertificate['details'],
): Promise<void> {
	const pathPrefix = `${recordFolder(issuer, name)}/${toKeySegment(name)}`;
	const isRenewal = (await store.stat(`${pathPrefix}.crt`)) !== undefined;
	if (isRenewal) await store.write(`${pathPrefix}.next`, JSON.stringify({ chain, key: privateKey }));
	await store.write(`${pathPrefix}.key`, privateKey);
	await store.write(`${pathPrefix}.crt`, chain);
	if (isRenewal) await store.remove(`${pathPrefix}.next`);
	await store.write(`${pathPrefix}.json`, `${JSON.stringify({ sans: [name], issuer, ...details }, undefined, '\t')}\n`);
}

/** Creates a record. Returns undefined unless `chain` is valid PEM, and its certificate is for this name and private key. */
export function createCertificateRecord(
	issuer: string,
	name: string,
	chain: string,
	privateKey: string,
): CertificateRecord | undefined {
	try {
		const certificate = new X509Certificate(chain);
		const key: KeyObject | undefined = parsePrivateKey(privateKey);
		if (!key || !certificate.checkPrivateKey(key) || !coversName(certificate, name)) return undefined;
		return {
			issuer,
			name,
			chain,
			privateKey,
			notBefore: certificate.validFromDate.getTime(),
			notAfter: certificate.validToDate.getTime(),
			fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
			hasResponder: certificate.infoAccess?.includes('OCSP - URI:') === true,
		};
	} catch {
		return undefined;
	}
}

/**
 * Reports whether a certificate is valid for a name. Compares alternative names literally, because X509Certificate.checkHost
 * rejects `*.localhost` and `*.tld`.
 */
function coversName(certificate: X509Certificate, name: string): boolean {
	if (isIP(name)) return certificate.checkIP(name) !== undefined;
	const alternativeNames = (certificate.subjectAltName ?? '').toLowerCase().split(', ');
	if (alternativeNames.includes(`dns:${name}`)) return true;
	const firstDot = name.indexOf('.');
	return firstDot > 0 && !name.startsWith('*') && alternativeNames.includes(`dns:*${name.slice(firstDot)}`);
}
