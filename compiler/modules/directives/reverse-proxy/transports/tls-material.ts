/** Certificates and keys of TLS to upstreams: read, checked and explained, by whoever can read. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { weaknessOf } from '../../../../codegen/tls/key-strength.ts';
import type { TrustPool } from '../../../providers/trust-pools/trust-pool.ts';
import type { ClientTlsSettings } from './transport-settings.ts';

/** What is needed for a connection. */
export interface TlsMaterial {
	/** PEM of authorities that are believed. */
	readonly authorities: readonly string[];
	/** True: those of the system are believed too. */
	readonly system: boolean;
	readonly certificate: string | undefined;
	readonly key: string | undefined;
}

/** What is wrong with a file; no content of it is quoted. */
export class MaterialError extends Error {
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'MaterialError';
		this.code = code;
	}
}

/** Paths that {@link readTlsMaterial} reads. */
export function tlsFiles(settings: ClientTlsSettings): string[] {
	const { client_certificate: own } = settings;
	return [...trustFiles(settings.trust), ...(own && 'key' in own ? [own.certificate, own.key] : [])];
}

/**
 * Reads what the settings name.
 * @param read Bytes of a file; throws an error with the system's `code`.
 * @throws MaterialError
 */
export function readTlsMaterial(settings: ClientTlsSettings, read: (path: string) => Uint8Array): TlsMaterial {
	const authorities: string[] = [];
	const system = settings.trust === undefined || addTrust(settings.trust, read, authorities);
	const own = settings.client_certificate;
	if (!own || 'managed' in own) return { authorities, system, certificate: undefined, key: undefined };
	const certificate = readFile(own.certificate, read);
	const key = readFile(own.key, read);
	const [leaf] = certificatesOf(certificate, own.certificate);
	try {
		const privateKey = createPrivateKey(key);
		if (!leaf!.checkPrivateKey(privateKey)) {
			throw new MaterialError('tls/key-of-another', `The key ${own.key} is not that of ${own.certificate}.`);
		}
		const weakness = weaknessOf(privateKey);
		if (weakness !== undefined) throw new MaterialError('tls/weak-key', `The key ${own.key} ${weakness}.`);
	} catch (error) {
		if (error instanceof MaterialError) throw error;
		throw new MaterialError('tls/invalid-key', `${own.key} holds no private key in PEM that can be read.`);
	}
	const reason = refusalOf(certificate, key);
	if (reason !== undefined) {
		throw new MaterialError('tls/unusable-certificate', `${own.certificate} cannot be used: ${reason}.`);
	}
	return { authorities, system, certificate, key };
}

/** What the library says against a certificate, such as one of a kind that TLS does not know: it is not left to the first connection. */
function refusalOf(cert: string, key: string): string | undefined {
	try {
		// Not imported: most configurations need none of it to be compiled.
		process.getBuiltinModule('node:tls').createSecureContext({ ca: [], cert, key });
		return undefined;
	} catch (error) {
		const { reason, message } = error as Error & { readonly reason?: string };
		return reason ?? message;
	}
}

/** Adds what a source names; true when it is, or holds, the system. */
function addTrust(trust: TrustPool, read: (path: string) => Uint8Array, authorities: string[]): boolean {
	switch (trust.source) {
		case 'system':
			return true;
		case 'file':
			for (const file of trust.files) {
				for (const one of certificatesOf(readFile(file, read), file)) authorities.push(one.toString());
			}
			return false;
		case 'inline':
			for (const text of trust.certificates) authorities.push(inlineCertificate(text).toString());
			return false;
		case 'combined': {
			let system = false;
			for (const one of trust.of) system = addTrust(one, read, authorities) || system;
			return system;
		}
		default:
			// Not in files: whoever makes connections asks for them.
			return false;
	}
}

function trustFiles(trust: TrustPool | undefined): readonly string[] {
	if (trust?.source === 'file') return trust.files;
	return trust?.source === 'combined' ? trust.of.flatMap(trustFiles) : [];
}

function readFile(path: string, read: (path: string) => Uint8Array): string {
	try {
		return Buffer.from(read(path)).toString('latin1');
	} catch (error) {
		const code = (error as { code?: string }).code ?? 'unreadable';
		throw new MaterialError('tls/unreadable-file', `The file ${path} cannot be read (${code}).`);
	}
}

function certificatesOf(pem: string, path: string): X509Certificate[] {
	const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	try {
		if (blocks.length > 0) return blocks.map(block => new X509Certificate(block));
	} catch {
		// The message below says what was expected.
	}
	throw new MaterialError('tls/invalid-certificate', `${path} holds no certificate in PEM that can be read.`);
}

function inlineCertificate(text: string): X509Certificate {
	try {
		return new X509Certificate(text.includes('-----BEGIN') ? text : Buffer.from(text, 'base64'));
	} catch {
		throw new MaterialError('tls/invalid-certificate', 'A certificate given inline is not base64 of DER.');
	}
}
