/** Certificates in the store: `certificates/<issuer>/<name>/<name>.crt`, `.key` and `.json`. */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { keySegment, type Store } from '../storage/store.ts';
import { readKey } from './certificate-keys.ts';
import type { Issued } from './issuer.ts';

/** Folder of all certificates in the store. */
export const CERTIFICATES = 'certificates';

/** A certificate with its key, as it lies in the store. */
export interface CertificateRecord {
	/** Segment of its issuer. */
	readonly issuer: string;
	readonly name: string;
	/** PEM: the certificate, then its chain. */
	readonly chain: string;
	/** PKCS#8 PEM. */
	readonly privateKey: string;
	/** Milliseconds since the epoch. */
	readonly notBefore: number;
	readonly notAfter: number;
	/** SHA-256 of the certificate in hexadecimal digits. */
	readonly fingerprint: string;
	/** Whether the certificate names a responder for its status. */
	readonly hasResponder: boolean;
}

/** Folder of one certificate in the store. */
function recordFolder(issuer: string, name: string): string {
	return `${CERTIFICATES}/${issuer}/${keySegment(name)}`;
}

/** Reads a certificate; undefined when there is none, or when what is there does not fit together or is for another name. */
export async function readRecord(store: Store, issuer: string, name: string): Promise<CertificateRecord | undefined> {
	const file = `${recordFolder(issuer, name)}/${keySegment(name)}`;
	const [chain, key] = await Promise.all([store.read(`${file}.crt`), store.read(`${file}.key`)]);
	if (!chain || !key) return undefined;
	const record = recordOf(issuer, name, chain.toString('latin1'), key.toString('latin1'));
	return record ?? (await readNext(store, file, issuer, name));
}

/** What a process was writing when it died between the two halves of a pair. */
async function readNext(
	store: Store,
	file: string,
	issuer: string,
	name: string,
): Promise<CertificateRecord | undefined> {
	const text = await store.read(`${file}.next`);
	if (!text) return undefined;
	try {
		const { chain, key } = JSON.parse(text.toString('utf8')) as { chain: string; key: string };
		return recordOf(issuer, name, chain, key);
	} catch {
		return undefined;
	}
}

/**
 * Writes what an issuer gave. Key and certificate are two files, and a process may die between them: where that would take
 * the pair of before with it, the new one first stands in one file as a whole.
 */
export async function writeRecord(
	store: Store,
	{ issuer, name, chain, privateKey }: CertificateRecord,
	details: Issued['details'],
): Promise<void> {
	const file = `${recordFolder(issuer, name)}/${keySegment(name)}`;
	const renewal = (await store.stat(`${file}.crt`)) !== undefined;
	if (renewal) await store.write(`${file}.next`, JSON.stringify({ chain, key: privateKey }));
	await store.write(`${file}.key`, privateKey);
	await store.write(`${file}.crt`, chain);
	if (renewal) await store.remove(`${file}.next`);
	await store.write(`${file}.json`, `${JSON.stringify({ sans: [name], issuer, ...details }, undefined, '\t')}\n`);
}

/** Checks a chain and its key; undefined unless the certificate can be read, is for the name and has that key. */
export function recordOf(
	issuer: string,
	name: string,
	chain: string,
	privateKey: string,
): CertificateRecord | undefined {
	try {
		const certificate = new X509Certificate(chain);
		const key: KeyObject | undefined = readKey(privateKey);
		if (!key || !certificate.checkPrivateKey(key) || !covers(certificate, name)) return undefined;
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

/** By the alternative names themselves: what clients make of `*.localhost` or of `*.tld` is another matter. */
function covers(certificate: X509Certificate, name: string): boolean {
	if (isIP(name)) return certificate.checkIP(name) !== undefined;
	const listed = (certificate.subjectAltName ?? '').toLowerCase().split(', ');
	if (listed.includes(`dns:${name}`)) return true;
	const dot = name.indexOf('.');
	return dot > 0 && !name.startsWith('*') && listed.includes(`dns:*${name.slice(dot)}`);
}
