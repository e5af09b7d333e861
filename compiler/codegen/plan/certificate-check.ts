/** Reads certificate and key files and checks that they match; results are cached by content. */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { canonicalHost } from '../../exchange/authority.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { keyWeakness } from '../context/key-strength.ts';

/** A mistake in a certificate or key file. The message is one sentence. */
export interface FileMistake {
	readonly code: string;
	readonly message: string;
	readonly hint?: string;
}

/** A certificate and the private key that matches it. */
export interface CheckedCertificatePair {
	/** Lower-case names and addresses of the certificate. */
	readonly names: readonly string[];
	/** Milliseconds since the epoch. */
	readonly notAfter: number;
	readonly digest: string;
}

interface Known {
	readonly certificate: Uint8Array;
	readonly key: Uint8Array;
	readonly outcome: CheckedCertificatePair | FileMistake;
}

/** Maximum number of cached pairs. */
const MAX_KNOWN = 50_000;

/** Checks certificate and key pairs. Each distinct content is checked once. */
export class CertificateCheck {
	readonly #known = new Map<string, Known>();

	/** Reads two files and checks that they match. If both paths are the same, the file is a bundle. */
	pair(certificate: string, key: string, reader: Reader): CheckedCertificatePair | FileMistake {
		const certificateBytes = readOrSay(certificate, 'certificate', reader);
		if ('code' in certificateBytes) return certificateBytes;
		const keyBytes = key === certificate ? certificateBytes : readOrSay(key, 'key', reader);
		if ('code' in keyBytes) return keyBytes;
		const place = `${certificate}\0${key}`;
		const known = this.#known.get(place);
		if (known && same(known.certificate, certificateBytes) && same(known.key, keyBytes)) return known.outcome;
		const outcome = checkCertificatePair(certificateBytes, keyBytes, certificate, key);
		if (this.#known.size >= MAX_KNOWN) this.#known.clear();
		this.#known.set(place, { certificate: certificateBytes, key: keyBytes, outcome });
		return outcome;
	}
}

/** Reports whether a result is a mistake. */
export function isFileMistake(outcome: object): outcome is FileMistake {
	return 'code' in outcome;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
	return a === b || Buffer.compare(a, b) === 0;
}

function readOrSay(path: string, what: string, reader: Reader): Uint8Array | FileMistake {
	try {
		return reader.readBytes(path);
	} catch (error) {
		if (!(error instanceof ReadError)) throw error;
		const why = error.code === 'ENOENT' ? 'it does not exist' : `the system says ${error.code}`;
		return { code: 'tls/unreadable-file', message: `The ${what} file \`${path}\` cannot be read: ${why}.` };
	}
}

/** Parses the certificate in PEM text. Throws if there is none. */
function parseCertificate(pem: Uint8Array): X509Certificate {
	return new X509Certificate(pem);
}

/** Returns the names and addresses of a certificate: its subject alternative names, otherwise its common name. */
function namesOf(certificate: X509Certificate): string[] {
	const names: string[] = [];
	for (const { kind, value } of alternativeNames(certificate)) {
		if (kind === 'DNS') names.push(value.toLowerCase());
		else if (kind === 'IP Address') names.push(canonicalHost(value) ?? value.toLowerCase());
	}
	if (names.length === 0) {
		const common = /(?:^|\n)CN=(.+)/.exec(certificate.subject)?.[1];
		if (common) names.push(common.toLowerCase());
	}
	return [...new Set(names)];
}

/**
 * Returns subject alternative names by kind: `DNS`, `IP Address`, `email`, `URI`. Entries are separated by `, `; one with
 * special characters is a JSON string (Node, CVE-2021-44532).
 */
export function alternativeNames(certificate: X509Certificate): { readonly kind: string; readonly value: string }[] {
	const entries = (certificate.subjectAltName ?? '').match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? [];
	return entries.map(entry => {
		const trimmed = entry.trim();
		const colon = trimmed.indexOf(':');
		const kind = trimmed.slice(0, colon);
		const value = trimmed.slice(colon + 1);
		return { kind, value: value.startsWith('"') ? unquoted(value) : value };
	});
}

function unquoted(text: string): string {
	try {
		return String(JSON.parse(text));
	} catch {
		return text;
	}
}

/** Returns a digest that identifies the bytes of a checked pair. */
export function certificatePairDigest(certificate: Uint8Array, key: Uint8Array): string {
	return createHash('sha256').update(certificate).update(key).digest('base64');
}

/** Checks the bytes of a certificate file and a key file. */
export function checkCertificatePair(
	certificateBytes: Uint8Array,
	keyBytes: Uint8Array,
	certificatePath: string,
	keyPath: string,
): CheckedCertificatePair | FileMistake {
	let certificate: X509Certificate;
	try {
		certificate = parseCertificate(certificateBytes);
	} catch {
		return {
			code: 'tls/malformed-certificate',
			message: `\`${certificatePath}\` contains no certificate in PEM form.`,
			hint: 'It must begin with `-----BEGIN CERTIFICATE-----`: the server certificate first, then its chain.',
		};
	}
	let key: KeyObject;
	try {
		key = createPrivateKey(Buffer.from(keyBytes));
	} catch {
		const encrypted = /ENCRYPTED/.test(Buffer.from(keyBytes).toString('latin1'));
		return {
			code: 'tls/malformed-key',
			message: encrypted
				? `The key in \`${keyPath}\` is encrypted.`
				: `\`${keyPath}\` contains no private key in PEM form.`,
			...(encrypted ? { hint: 'Store it without a passphrase, readable by the server only.' } : {}),
		};
	}
	if (!certificate.checkPrivateKey(key)) {
		return {
			code: 'tls/key-mismatch',
			message: `The key in \`${keyPath}\` does not belong to the certificate in \`${certificatePath}\`.`,
		};
	}
	const weakness = keyWeakness(key);
	if (weakness !== undefined) {
		return {
			code: 'tls/weak-key',
			message: `The key in \`${keyPath}\` ${weakness}.`,
			hint: 'Have the certificate reissued for a new key, preferably on the curve P-256.',
		};
	}
	return {
		names: namesOf(certificate),
		notAfter: Date.parse(certificate.validTo),
		digest: certificatePairDigest(certificateBytes, keyBytes),
	};
}
