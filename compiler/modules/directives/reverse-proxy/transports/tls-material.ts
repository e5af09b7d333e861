/** Reads and checks the certificates and keys for TLS to upstreams, through an injected reader. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { keyWeakness } from '../../../../codegen/context/key-strength.ts';
import type { TrustPool } from '../../../../document/tls-settings.ts';
import type { ClientTlsSettings } from './transport-settings.ts';

/** The contents of certificate and key files, in the form that a TLS connection needs. */
export interface TlsMaterial {
	/** Certificates of trusted authorities, in PEM form. */
	readonly authorities: readonly string[];
	/** True if the system's authorities are trusted in addition to `authorities`. */
	readonly trustsSystem: boolean;
	readonly certificate: string | undefined;
	readonly key: string | undefined;
}

/** Thrown if a certificate or key file cannot be used. The message does not quote the contents of the file. */
export class MaterialError extends Error {
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'MaterialError';
		this.code = code;
	}
}

/** Returns the paths that {@link readTlsMaterial} reads. */
export function tlsFilePaths(settings: ClientTlsSettings): string[] {
	const { client_certificate: clientCertificate } = settings;
	return [
		...trustFilePaths(settings.trust),
		...(clientCertificate && 'key' in clientCertificate ? [clientCertificate.certificate, clientCertificate.key] : []),
	];
}

/**
 * Reads the files that the settings name.
 * @param readBytes Returns the bytes of a file; throws an error with the system's `code`.
 * @throws MaterialError
 */
export function readTlsMaterial(settings: ClientTlsSettings, readBytes: (path: string) => Uint8Array): TlsMaterial {
	const authorities: string[] = [];
	const trustsSystem = settings.trust === undefined || addTrustedCertificates(settings.trust, readBytes, authorities);
	const clientCertificate = settings.client_certificate;
	if (!clientCertificate || 'managed' in clientCertificate)
		return { authorities, trustsSystem, certificate: undefined, key: undefined };
	const certificate = readFile(clientCertificate.certificate, readBytes);
	const key = readFile(clientCertificate.key, readBytes);
	const [leaf] = parseCertificates(certificate, clientCertificate.certificate);
	try {
		const privateKey = createPrivateKey(key);
		if (!leaf!.checkPrivateKey(privateKey)) {
			throw new MaterialError(
				'tls/key-of-another',
				`The key ${clientCertificate.key} does not belong to ${clientCertificate.certificate}.`,
			);
		}
		const weakness = keyWeakness(privateKey);
		if (weakness !== undefined)
			throw new MaterialError('tls/weak-key', `The key ${clientCertificate.key} ${weakness}.`);
	} catch (error) {
		if (error instanceof MaterialError) throw error;
		throw new MaterialError(
			'tls/invalid-key',
			`${clientCertificate.key} does not contain a readable private key in PEM form.`,
		);
	}
	const refusalReason = findCertificateRefusal(certificate, key);
	if (refusalReason !== undefined) {
		throw new MaterialError(
			'tls/unusable-certificate',
			`${clientCertificate.certificate} cannot be used: ${refusalReason}.`,
		);
	}
	return { authorities, trustsSystem, certificate, key };
}

/**
 * Returns why the TLS library rejects a certificate, for example because of an unsupported type; undefined if it accepts the
 * certificate. Without this check, the mistake would be found only when a connection is made.
 */
function findCertificateRefusal(cert: string, key: string): string | undefined {
	try {
		// `node:tls` is loaded on demand, because most configurations compile without it.
		process.getBuiltinModule('node:tls').createSecureContext({ ca: [], cert, key });
		return undefined;
	} catch (error) {
		const { reason, message } = error as Error & { readonly reason?: string };
		return reason ?? message;
	}
}

/**
 * Adds the certificates of a trust source to `authorities`. Returns true if the source is, or includes, the system's authorities.
 */
function addTrustedCertificates(
	trust: TrustPool,
	readBytes: (path: string) => Uint8Array,
	authorities: string[],
): boolean {
	switch (trust.source) {
		case 'system':
			return true;
		case 'file':
			for (const file of trust.files) {
				for (const certificate of parseCertificates(readFile(file, readBytes), file))
					authorities.push(certificate.toString());
			}
			return false;
		case 'inline':
			for (const text of trust.certificates) authorities.push(parseInlineCertificate(text).toString());
			return false;
		case 'combined': {
			let trustsSystem = false;
			for (const source of trust.of)
				trustsSystem = addTrustedCertificates(source, readBytes, authorities) || trustsSystem;
			return trustsSystem;
		}
		default:
			// The certificates of all other sources are fetched when connections are made.
			return false;
	}
}

function trustFilePaths(trust: TrustPool | undefined): readonly string[] {
	if (trust?.source === 'file') return trust.files;
	return trust?.source === 'combined' ? trust.of.flatMap(trustFilePaths) : [];
}

function readFile(path: string, readBytes: (path: string) => Uint8Array): string {
	try {
		return Buffer.from(readBytes(path)).toString('latin1');
	} catch (error) {
		const code = (error as { code?: string }).code ?? 'unreadable';
		throw new MaterialError('tls/unreadable-file', `The file ${path} cannot be read (${code}).`);
	}
}

function parseCertificates(pem: string, path: string): X509Certificate[] {
	const pemBlocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	try {
		if (pemBlocks.length > 0) return pemBlocks.map(block => new X509Certificate(block));
	} catch {
		// The error below says what was expected.
	}
	throw new MaterialError('tls/invalid-certificate', `${path} does not contain a readable certificate in PEM form.`);
}

function parseInlineCertificate(text: string): X509Certificate {
	try {
		return new X509Certificate(text.includes('-----BEGIN') ? text : Buffer.from(text, 'base64'));
	} catch {
		throw new MaterialError('tls/invalid-inline-certificate', 'An inline certificate is not DER in base64.');
	}
}
