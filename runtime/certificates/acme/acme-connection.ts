/** Sends ACME requests (RFC 8555 §6), which are signed and contain nonces. Reports problem documents as errors. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates } from 'node:tls';
import { Agent, request } from 'undici';
import { redactUrlSecrets } from '../../../compiler/document/secret-parts.ts';
import { IssueError } from '../issuer.ts';

/** Timeout of a request in milliseconds. Some servers issue the certificate during the request. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Maximum size of a response in bytes. */
const MAX_ANSWER_BYTES: number = 1024 * 1024;
/**
 * Maximum number of attempts of a request whose nonces are rejected. It is high, because test servers reject most nonces at random.
 */
const MAX_NONCE_TRIES = 60;
/** A request whose nonce is rejected is repeated without a pause this many times. */
const TRIES_BEFORE_PAUSES = 10;
/** Milliseconds by which the pause grows with each further rejected nonce. */
const NONCE_PAUSE_MS = 20;
/** Maximum number of attempts of an idempotent request. */
const MAX_REQUEST_TRIES = 3;
/** Maximum number of unused nonces that are kept. It is small, because servers forget old nonces. */
const MAX_KEPT_NONCES = 16;
/** Milliseconds for which a directory is cached. */
const DIRECTORY_TTL_MS = 3_600_000;

/** The directory of an ACME server: the URLs of its operations (§7.1.1). */
export interface AcmeDirectory {
	readonly newNonce: string;
	readonly newAccount: string;
	readonly newOrder: string;
	/** URL for renewal information (RFC 9773); undefined if the server offers none. */
	readonly renewalInfo?: string;
	readonly meta?: {
		readonly externalAccountRequired?: boolean;
		readonly profiles?: { readonly [name: string]: string };
	};
}

export interface AcmeAnswer {
	readonly status: number;
	/** The response's `Location`. */
	readonly location: string | undefined;
	/** The time in the response's `Retry-After`, in milliseconds since the epoch. */
	readonly retryAt: number | undefined;
	/** The URLs in `Link` fields with the relation `alternate`. */
	readonly alternates: readonly string[];
	readonly text: string;
	/** The parsed body; undefined if it is not a JSON object. */
	readonly body: { readonly [member: string]: unknown } | undefined;
}

/** The signer of requests: the account's key, and the account's URL once the account is registered. */
export interface AcmeSigner {
	readonly key: KeyObject;
	readonly accountUrl?: string | undefined;
}

/** The error for a request that the server has refused (§6.7). */
export class AcmeProblem extends IssueError {
	/** The problem's type without the namespace prefix, such as `rateLimited` or `badNonce`. */
	readonly type: string;
	readonly status: number;

	constructor(type: string, status: number, detail: string, retryAt: number | undefined) {
		const code =
			type === 'rateLimited' || status === 429
				? 'issuer/rate-limited'
				: status >= 500
					? 'issuer/unavailable'
					: 'issuer/refused';
		super(
			code,
			detail === '' ? `The server answered with status ${status}.` : `The server refused (${type}): ${detail}`,
			{
				retryAt,
			},
		);
		this.name = 'AcmeProblem';
		this.type = type;
		this.status = status;
	}
}

/** A connection to one ACME server. */
export class AcmeConnection {
	readonly #directoryUrl: string;
	readonly #agent: Agent;
	readonly #userAgent: string;
	readonly #nonces: string[] = [];
	#cachedDirectory: { readonly value: AcmeDirectory; readonly readAt: number } | undefined;

	/** @param roots PEM of root certificates to trust for the server, in addition to the system's. */
	constructor(directoryUrl: string, roots: readonly string[], userAgent: string) {
		this.#directoryUrl = directoryUrl;
		this.#userAgent = userAgent;
		this.#agent = new Agent({
			connect: { timeout: 15_000, ...(roots.length > 0 ? { ca: [...getCACertificates('default'), ...roots] } : {}) },
			connections: 8,
			keepAliveTimeout: 10_000,
			headersTimeout: REQUEST_TIMEOUT_MS,
			bodyTimeout: REQUEST_TIMEOUT_MS,
		});
	}

	/** Returns the server's directory. Rejects with IssueError. */
	async readDirectory(signal?: AbortSignal): Promise<AcmeDirectory> {
		const cachedDirectory = this.#cachedDirectory;
		if (cachedDirectory && Date.now() - cachedDirectory.readAt < DIRECTORY_TTL_MS) return cachedDirectory.value;
		const { body } = await this.get(this.#directoryUrl, signal);
		const directory = body as Partial<AcmeDirectory> | undefined;
		const hasUrls = [directory?.newNonce, directory?.newAccount, directory?.newOrder].every(
			url => typeof url === 'string',
		);
		if (!hasUrls) {
			const url = redactUrlSecrets(this.#directoryUrl);
			throw new IssueError('issuer/refused', `\`${url}\` is not the directory of an ACME server.`);
		}
		this.#cachedDirectory = { value: directory as AcmeDirectory, readAt: Date.now() };
		return this.#cachedDirectory.value;
	}

	/** Sends an unsigned GET. Rejects with IssueError. */
	async get(url: string, signal?: AbortSignal): Promise<AcmeAnswer> {
		return this.#withRetries(async () => checkAnswer(await this.#sendRequest('GET', url, undefined, signal)), signal);
	}

	/** Sends a POST-as-GET (§6.3), for resources that only the account may read. Rejects with IssueError. */
	postAsGet(url: string, signer: AcmeSigner, signal?: AbortSignal): Promise<AcmeAnswer> {
		return this.#withRetries(() => this.post(url, undefined, signer, signal), signal);
	}

	/** Sends a signed POST, repeated only if the nonce is rejected. Rejects with IssueError. */
	async post(url: string, payload: unknown, signer: AcmeSigner, signal?: AbortSignal): Promise<AcmeAnswer> {
		for (let attempt = 1; ; attempt++) {
			const nonce = this.#nonces.pop() ?? (await this.#newNonce(signal));
			try {
				return checkAnswer(
					await this.#sendRequest('POST', url, this.#signRequest(url, payload, signer, nonce), signal),
				);
			} catch (error) {
				if (!(error instanceof AcmeProblem) || error.type !== 'badNonce' || attempt === MAX_NONCE_TRIES) throw error;
				// The server has forgotten this nonce, so it has probably forgotten the other nonces of the same age. Only the newest
				// nonce is kept.
				this.#nonces.splice(0, this.#nonces.length - 1);
				if (attempt > TRIES_BEFORE_PAUSES)
					await waitUnlessAborted((attempt - TRIES_BEFORE_PAUSES) * NONCE_PAUSE_MS, signal);
			}
		}
	}

	close(): void {
		void this.#agent.destroy();
	}

	async #newNonce(signal: AbortSignal | undefined): Promise<string> {
		const { newNonce } = await this.readDirectory(signal);
		return this.#withRetries(async () => {
			checkAnswer(await this.#sendRequest('HEAD', newNonce, undefined, signal));
			const nonce = this.#nonces.pop();
			if (nonce === undefined) throw new IssueError('issuer/refused', 'The server did not return a nonce.');
			return nonce;
		}, signal);
	}

	#signRequest(url: string, payload: unknown, { key, accountUrl }: AcmeSigner, nonce: string): string {
		const header = {
			alg: 'ES256',
			...(accountUrl === undefined ? { jwk: publicJwk(key) } : { kid: accountUrl }),
			nonce,
			url,
		};
		return createJws(header, payload, data => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }));
	}

	async #sendRequest(
		method: 'GET' | 'HEAD' | 'POST',
		url: string,
		body: string | undefined,
		signal: AbortSignal | undefined,
	): Promise<AcmeAnswer> {
		signal?.throwIfAborted();
		try {
			const answer = await request(url, {
				method,
				dispatcher: this.#agent,
				headers: {
					'user-agent': this.#userAgent,
					...(body === undefined ? {} : { 'content-type': 'application/jose+json' }),
				},
				...(body === undefined ? {} : { body }),
				...(signal ? { signal } : {}),
			});
			const chunks: Buffer[] = [];
			let receivedBytes = 0;
			for await (const chunk of answer.body) {
				receivedBytes += chunk.length;
				if (receivedBytes > MAX_ANSWER_BYTES)
					throw new IssueError('issuer/refused', "The server's response is too large.");
				chunks.push(chunk);
			}
			const nonce = answer.headers['replay-nonce'];
			if (typeof nonce === 'string' && /^[A-Za-z0-9_-]+$/.test(nonce)) {
				this.#nonces.push(nonce);
				if (this.#nonces.length > MAX_KEPT_NONCES) this.#nonces.shift();
			}
			return toAnswer(answer.statusCode, answer.headers, Buffer.concat(chunks).toString('utf8'));
		} catch (error) {
			if (error instanceof IssueError) throw error;
			if (signal?.aborted) throw signal.reason;
			const { code, message } = error as NodeJS.ErrnoException;
			throw new IssueError(
				'issuer/unreachable',
				`The server \`${new URL(url).host}\` cannot be reached: ${code ?? message}.`,
			);
		}
	}

	/** Repeats an idempotent operation if the network or the server failed. */
	async #withRetries<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
		for (let attempt = 1; ; attempt++) {
			try {
				return await send();
			} catch (error) {
				const isTransient =
					error instanceof IssueError && (error.code === 'issuer/unreachable' || error.code === 'issuer/unavailable');
				if (!isTransient || attempt === MAX_REQUEST_TRIES || error.retryAt !== undefined) throw error;
				await waitUnlessAborted(500 * 3 ** (attempt - 1), signal);
			}
		}
	}
}

/**
 * Returns the milliseconds until `retryAt`, limited to the range from 100 to 60,000, or `defaultMs` if `retryAt` is undefined.
 */
export function pollDelay(retryAt: number | undefined, defaultMs: number): number {
	if (retryAt === undefined) return defaultMs;
	return Math.min(Math.max(retryAt - Date.now(), 100), 60_000);
}

/** Waits for `milliseconds`. Rejects with the signal's reason if the signal aborts first. */
export async function waitUnlessAborted(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
	await sleep(milliseconds, undefined, signal ? { signal } : {}).catch(error => {
		throw signal?.aborted ? signal.reason : error;
	});
}

/** Returns a flattened JSON Web Signature (RFC 7515 §7.2.2). `payload` is undefined for POST-as-GET. */
export function createJws(header: object, payload: unknown, createSignature: (data: Buffer) => Buffer): string {
	const toBase64Url = (value: string): string => Buffer.from(value).toString('base64url');
	const protectedHeader = toBase64Url(JSON.stringify(header));
	const encodedPayload = payload === undefined ? '' : toBase64Url(JSON.stringify(payload));
	return JSON.stringify({
		protected: protectedHeader,
		payload: encodedPayload,
		signature: createSignature(Buffer.from(`${protectedHeader}.${encodedPayload}`)).toString('base64url'),
	});
}

/** Returns the public half of a P-256 key as a JSON Web Key, with members in the order of RFC 7638 §3. */
export function publicJwk(key: KeyObject): { crv: string; kty: string; x: string; y: string } {
	const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' });
	return { crv: crv!, kty: kty!, x: x!, y: y! };
}

function toAnswer(
	status: number,
	headers: { readonly [name: string]: string | readonly string[] | undefined },
	text: string,
): AcmeAnswer {
	const firstValue = (name: string): string | undefined => {
		const value = headers[name];
		return typeof value === 'string' ? value : value?.[0];
	};
	const links = [headers.link ?? []].flat().flatMap(link => link.split(/,(?=\s*<)/));
	const alternates = links.flatMap(link => {
		const match = /^\s*<([^>]+)>.*;\s*rel="?alternate"?/i.exec(link);
		return match ? [match[1]!] : [];
	});
	let body: AcmeAnswer['body'];
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value === 'object' && value !== null && !Array.isArray(value)) body = value as AcmeAnswer['body'];
	} catch {
		body = undefined;
	}
	return {
		status,
		location: firstValue('location'),
		retryAt: retryTime(firstValue('retry-after')),
		alternates,
		text,
		body,
	};
}

/** Returns the response, or throws the problem that it reports. */
function checkAnswer(answer: AcmeAnswer): AcmeAnswer {
	if (answer.status < 400) return answer;
	throw toAcmeProblem(answer.body, answer.status, answer.retryAt);
}

/** Converts a problem document (§6.7) to an error. */
export function toAcmeProblem(
	document: { readonly [member: string]: unknown } | undefined,
	status: number,
	retryAt: number | undefined,
): AcmeProblem {
	const cleanText = (value: unknown): string =>
		typeof value === 'string'
			? value
					.replace(/\p{C}+/gu, ' ')
					.trim()
					.slice(0, 500)
			: '';
	const type = cleanText(document?.type).replace(/^urn:ietf:params:acme:error:/, '');
	const messageParts = [cleanText(document?.detail)];
	const subproblems = Array.isArray(document?.subproblems) ? document.subproblems.slice(0, 10) : [];
	for (const subproblem of subproblems) {
		const { identifier, detail } = (subproblem ?? {}) as { identifier?: { value?: unknown }; detail?: unknown };
		messageParts.push(`${cleanText(identifier?.value)}: ${cleanText(detail)}`);
	}
	return new AcmeProblem(
		type === '' ? 'unknown' : type,
		status,
		messageParts.filter(part => part !== '').join('; '),
		retryAt,
	);
}

/** Parses `Retry-After` (RFC 9110 §10.2.3) to milliseconds since the epoch, at most a day ahead. */
function retryTime(value: string | undefined): number | undefined {
	if (value === undefined) return undefined;
	const time = /^\d{1,9}$/.test(value) ? Date.now() + Number(value) * 1000 : Date.parse(value);
	return Number.isNaN(time) ? undefined : Math.min(time, Date.now() + 86_400_000);
}
