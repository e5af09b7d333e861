/** Reads certificate and key files, and checks that they match. Results are cached by content. */
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
	/** End of the certificate's validity, in milliseconds since 1970. */
	readonly notAfter: number;
	readonly digest: string;
}

interface CachedPair {
	readonly certificate: Uint8Array;
	readonly key: Uint8Array;
	readonly outcome: CheckedCertificatePair | FileMistake;
}

const MAX_CACHED_PAIRS = 50_000;

/** Checks pairs of a certificate and a key. Pairs with the same bytes are checked only once. */
export class CertificateCheck {
	readonly #pairsByPaths = new Map<string, CachedPair>();

	/** Reads a certificate file and a key file, and checks that they match. If both paths are the same, the file is a bundle. */
	checkPair(certificatePath: string, keyPath: string, reader: Reader): CheckedCertificatePair | FileMistake {
		const certificateBytes = readOrMistake(certificatePath, 'certificate', reader);
		if ('code' in certificateBytes) return certificateBytes;
		const keyBytes = keyPath === certificatePath ? certificateBytes : readOrMistake(keyPath, 'key', reader);
		if ('code' in keyBytes) return keyBytes;
		const pathsKey = `${certificatePath}\0${keyPath}`;
		const cachedPair = this.#pairsByPaths.get(pathsKey);
		if (cachedPair && sameBytes(cachedPair.certificate, certificateBytes) && sameBytes(cachedPair.key, keyBytes))
			return cachedPair.outcome;
		const outcome = checkCertificatePair(certificateBytes, keyBytes, certificatePath, keyPath);
		if (this.#pairsByPaths.size >= MAX_CACHED_PAIRS) this.#pairsByPaths.clear();
		this.#pairsByPaths.set(pathsKey, { certificate: certificateBytes, key: keyBytes, outcome });
		return outcome;
	}
}

export function isFileMistake(outcome: object): outcome is FileMistake {
	return 'code' in outcome;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
	return a === b || Buffer.compare(a, b) === 0;
}

function readOrMistake(path: string, fileKind: string, reader: Reader): Uint8Array | FileMistake {
	try {
		return reader.readBytes(path);
	} catch (error) {
		if (!(error instanceof ReadError)) throw error;
		const reason = error.code === 'ENOENT' ? 'it does not exist' : `the system says ${error.code}`;
		return { code: 'tls/unreadable-file', message: `The ${fileKind} file \`${path}\` cannot be read: ${reason}.` };
	}
}

/** Parses the first certificate in PEM text. Throws if there is none. */
function parseCertificate(pem: Uint8Array): X509Certificate {
	return new X509Certificate(pem);
}

/** Returns the names and addresses that a certificate covers: its subject alternative names, or its common name if it has none. */
function certificateNames(certificate: X509Certificate): string[] {
	const names: string[] = [];
	for (const { kind, value } of alternativeNames(certificate)) {
		if (kind === 'DNS') names.push(value.toLowerCase());
		else if (kind === 'IP Address') names.push(canonicalHost(value) ?? value.toLowerCase());
	}
	if (names.length === 0) {
		const commonName = /(?:^|\n)CN=(.+)/.exec(certificate.subject)?.[1];
		if (commonName) names.push(commonName.toLowerCase());
	}
	return [...new Set(names)];
}

/**
 * Returns the subject alternative names of a certificate with their kinds: `DNS`, `IP Address`, `email` or `URI`. Node separates
 * the entries by `, ` and writes an entry with special characters as a JSON string (CVE-2021-44532).
 */
export function alternativeNames(certificate: X509Certificate): { readonly kind: string; readonly value: string }[] {
	const entries = (certificate.subjectAltName ?? '').match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? [];
	return entries.map(entry => {
		const entryText = entry.trim();
		const colon = entryText.indexOf(':');
		const kind = entryText.slice(0, colon);
		const value = entryText.slice(colon + 1);
		return { kind, value: value.startsWith('"') ? unquote(value) : value };
	});
}

function unquote(text: string): string {
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
		const isEncrypted = /ENCRYPTED/.test(Buffer.from(keyBytes).toString('latin1'));
		return {
			code: 'tls/malformed-key',
			message: isEncrypted
				? `The key in \`${keyPath}\` is encrypted.`
				: `\`${keyPath}\` contains no private key in PEM form.`,
			...(isEncrypted ? { hint: 'Store it without a passphrase, readable by the server only.' } : {}),
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
		names: certificateNames(certificate),
		notAfter: Date.parse(certificate.validTo),
		digest: certificatePairDigest(certificateBytes, keyBytes),
	};
}
