/** `get_certificate` managers: external programs that provide certificates during handshakes. */
import { X509Certificate } from 'node:crypto';
import type { CertificateSource } from '../../compiler/document/tls-settings.ts';
import type { CertificateRequestedByClient } from './certificate-feed.ts';
import { parsePrivateKey } from './certificate-keys.ts';

/**
 * The error for a `get_certificate` manager that is unreachable, or whose response is no certificate. The message is a full
 * sentence.
 */
export class ManagerFailure extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'ManagerFailure';
	}
}

/** Timeout of a request in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Maximum size of a response in bytes. */
const MAX_ANSWER_BYTES: number = 1024 * 1024;

/** A certificate from a manager. */
export interface SourcedCertificate {
	/** The certificate, followed by its chain, in PEM. */
	readonly chain: string;
	/** The private key in PEM. */
	readonly key: string;
	/** Expiry, in milliseconds since the epoch. */
	readonly notAfter: number;
}

/** Asks a manager for a certificate. Resolves to undefined if the manager has none. Rejects with {@link ManagerFailure}. */
export async function fetchFromManager(
	source: CertificateSource,
	question: CertificateRequestedByClient,
): Promise<SourcedCertificate | undefined> {
	if (source.manager !== 'http')
		throw new ManagerFailure(`The certificate manager \`${source.manager}\` is not supported.`);
	const pem = await askHttp(String(source.url), question);
	return pem === undefined ? undefined : splitPem(pem);
}

async function askHttp(address: string, question: CertificateRequestedByClient): Promise<string | undefined> {
	const url = new URL(address);
	url.searchParams.set('server_name', question.name);
	url.searchParams.set('signature_schemes', question.signatureSchemes.join(','));
	url.searchParams.set('cipher_suites', question.cipherSuites.join(','));
	url.searchParams.set('local_ip', question.localIp);
	try {
		const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
		if (response.status === 204) {
			await response.body?.cancel();
			return undefined;
		}
		if (response.status !== 200) {
			await response.body?.cancel();
			throw new ManagerFailure(`The manager answered with status ${response.status}.`);
		}
		return await readLimitedText(response);
	} catch (error) {
		if (error instanceof ManagerFailure) throw error;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		const reason = cause?.code ?? (name === 'TimeoutError' ? 'the request timed out' : name);
		throw new ManagerFailure(`The manager cannot be reached: ${reason}.`);
	}
}

async function readLimitedText(response: Response): Promise<string> {
	const chunks: Uint8Array[] = [];
	let receivedBytes = 0;
	for await (const chunk of response.body ?? []) {
		receivedBytes += chunk.length;
		if (receivedBytes > MAX_ANSWER_BYTES) throw new ManagerFailure('The response of the manager exceeds one megabyte.');
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString('latin1');
}

/** Extracts a chain and its key, in any order, from a PEM text. */
function splitPem(text: string): SourcedCertificate {
	const blocks = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g) ?? [];
	const chain = blocks.filter(block => block.startsWith('-----BEGIN CERTIFICATE-----')).join('\n');
	const key = blocks.find(block => /^-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(block));
	const privateKey = key === undefined ? undefined : parsePrivateKey(key);
	try {
		const certificate = new X509Certificate(chain);
		if (key !== undefined && privateKey && certificate.checkPrivateKey(privateKey)) {
			return { chain: `${chain}\n`, key: `${key}\n`, notAfter: certificate.validToDate.getTime() };
		}
	} catch {
		// An invalid certificate is reported by the `throw` below.
	}
	throw new ManagerFailure('The response of the manager is not a certificate with its key.');
}
