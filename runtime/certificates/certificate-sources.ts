/** `get_certificate`: other programs that have certificates, asked when a client wants one. */
import { X509Certificate } from 'node:crypto';
import type { CertificateSource } from '../../compiler/tls/certificate-plan.ts';
import type { CertificateQuestion } from '../tls/certificate-feed.ts';
import { readKey } from './certificate-keys.ts';

/** The source could not be asked, or what it gave is no certificate. The message is a sentence. */
export class ManagerFailure extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'ManagerFailure';
	}
}

/** Milliseconds that a source may take. */
const SOURCE_LIMIT = 10_000;
/** Bytes of an answer at most. */
const LARGEST_ANSWER: number = 1024 * 1024;

/** Asks a source: the PEM of a chain and its key, or undefined when it has none. Rejects with {@link ManagerFailure}. */
export async function askManager(
	source: CertificateSource,
	question: CertificateQuestion,
): Promise<{ readonly chain: string; readonly key: string } | undefined> {
	if (source.manager !== 'http') throw new ManagerFailure(`\`${source.manager}\` is not a source of this build.`);
	const text = await askHttp(String(source.url), question);
	return text === undefined ? undefined : splitPem(text);
}

async function askHttp(address: string, question: CertificateQuestion): Promise<string | undefined> {
	const url = new URL(address);
	url.searchParams.set('server_name', question.name);
	url.searchParams.set('signature_schemes', question.signatureSchemes.join(','));
	url.searchParams.set('cipher_suites', question.cipherSuites.join(','));
	url.searchParams.set('local_ip', question.localIp);
	try {
		const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(SOURCE_LIMIT) });
		if (response.status === 204) {
			await response.body?.cancel();
			return undefined;
		}
		if (response.status !== 200) {
			await response.body?.cancel();
			throw new ManagerFailure(`The source answered ${response.status}.`);
		}
		return await limitedText(response);
	} catch (error) {
		if (error instanceof ManagerFailure) throw error;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		const why = cause?.code ?? (name === 'TimeoutError' ? 'it took too long' : name);
		throw new ManagerFailure(`The source cannot be asked: ${why}.`);
	}
}

async function limitedText(response: Response): Promise<string> {
	const chunks: Uint8Array[] = [];
	let size = 0;
	for await (const chunk of response.body ?? []) {
		size += chunk.length;
		if (size > LARGEST_ANSWER) throw new ManagerFailure('The source answered with more than a megabyte.');
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString('latin1');
}

/** A chain and its key out of one text, in any order. */
function splitPem(text: string): { readonly chain: string; readonly key: string } {
	const blocks = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g) ?? [];
	const chain = blocks.filter(block => block.startsWith('-----BEGIN CERTIFICATE-----')).join('\n');
	const key = blocks.find(block => /^-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(block));
	const privateKey = key === undefined ? undefined : readKey(key);
	try {
		if (key !== undefined && privateKey && new X509Certificate(chain).checkPrivateKey(privateKey)) {
			return { chain: `${chain}\n`, key: `${key}\n` };
		}
	} catch {
		// Told below.
	}
	throw new ManagerFailure('The source did not answer with a certificate and its key.');
}
