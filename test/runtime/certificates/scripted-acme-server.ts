/**
 * An ACME server (RFC 8555) for tests. It is strict about signatures and nonces, injects faults when a test asks for them, and
 * counts requests, orders and certificates.
 */
import { createHash, createHmac, createPublicKey, type KeyObject, randomBytes, verify } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { certificateId } from '../../../runtime/certificates/acme/renewal-information.ts';
import { makePrivateKey, privateKeyPem } from '../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../runtime/certificates/issue-certificate.ts';
import { responderExtension } from './ocsp-responder.ts';

const DAY_MS = 86_400_000;

export interface ChallengeValidation {
	readonly type: string;
	readonly name: string;
	readonly token: string;
	readonly keyAuthorization: string;
}

/** Behavior that a test may change while the server runs. */
export interface AcmeFaults {
	/** Reports whether a challenge is answered correctly. */
	validate: (validation: ChallengeValidation) => boolean | Promise<boolean>;
	/**
	 * Called before every request is answered. If it returns a string, the server answers with that problem type, or never
	 * answers if the string is `hang`.
	 */
	before: (resource: string) => string | undefined;
	/** Fraction of valid nonces to reject. */
	nonceRejection: number;
	/** Lifetime of certificates, in milliseconds. */
	lifetime: number;
	/** Number of milliseconds by which the start of certificates is backdated. */
	backdate: number;
	/** The challenge types that the server offers. */
	challenges: readonly string[];
	/** The renewal window that the server suggests; undefined for none. */
	window: { start: Date; end: Date } | undefined;
	/** Number of seconds in the field `Retry-After` of problem responses. */
	retryAfter: number | undefined;
	/** Keys of external account bindings, by id. */
	bindings: { readonly [id: string]: string } | undefined;
	/** URL of the OCSP responder named in certificates. */
	ocsp: string | undefined;
	/**
	 * True if the server shall answer the next request of an account as if it did not know the account. The server then sets it to
	 * false.
	 */
	forgetful: boolean;
}

interface Order {
	readonly id: number;
	readonly account: string;
	readonly name: string;
	status: string;
	readonly token: string;
	authorization: string;
	replaces: string | undefined;
	profile: string | undefined;
	error: object | undefined;
	chain: string | undefined;
}

export interface ScriptedAcmeServer {
	readonly directory: string;
	/** Path of the root certificate (PEM) that signs both the server's own certificate and those it issues. */
	readonly rootFile: string;
	readonly rootPem: string;
	readonly faults: AcmeFaults;
	readonly orders: readonly Order[];
	/** Certificates issued so far, as PEM. */
	readonly issued: readonly string[];
	readonly accounts: number;
	/** The root's certificate and key, for signing OCSP responses. */
	readonly signer: { readonly certificate: Buffer; readonly key: KeyObject };
	close(): Promise<void>;
}

/** Starts the server and writes its root certificate into the folder. */
export async function scriptedAcmeServer(folder: string): Promise<ScriptedAcmeServer> {
	const rootKey = await makePrivateKey('p256');
	const now = Date.now();
	const life = { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 365 * DAY_MS) };
	const root = issueCertificate({ commonName: 'Scripted Root', authority: { pathLength: 0 }, key: rootKey, ...life });
	const signer = { certificate: root, key: rootKey };
	const key = await makePrivateKey('p256');
	const own = issueCertificate({ names: ['127.0.0.1', 'localhost'], key, signer, ...life });
	const rootFile = path.join(folder, `acme-root-${randomBytes(4).toString('hex')}.pem`);
	const rootPem = certificatePem(root);
	writeFileSync(rootFile, rootPem);
	const state = new AcmeState(signer, rootPem);
	const server: Server = createServer({ key: privateKeyPem(key), cert: certificatePem(own) }, (request, response) => {
		void state.answer(request, response).catch(error => {
			response.writeHead(500).end(String(error));
		});
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	state.base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
	return {
		directory: `${state.base}/directory`,
		rootFile,
		rootPem,
		faults: state.faults,
		orders: state.orders,
		issued: state.issued,
		get accounts() {
			return state.accounts.size;
		},
		signer,
		async close() {
			server.closeAllConnections();
			await new Promise(resolve => server.close(resolve));
		},
	};
}

class AcmeState {
	base = '';
	readonly orders: Order[] = [];
	readonly issued: string[] = [];
	readonly accounts = new Map<string, { readonly key: KeyObject; readonly thumbprint: string }>();
	readonly faults: AcmeFaults = {
		validate: () => true,
		before: () => undefined,
		nonceRejection: 0,
		lifetime: 90 * DAY_MS,
		backdate: 60_000,
		challenges: ['http-01', 'tls-alpn-01', 'dns-01'],
		window: undefined,
		retryAfter: undefined,
		bindings: undefined,
		ocsp: undefined,
		forgetful: false,
	};
	readonly #nonces = new Set<string>();
	readonly #signer: { readonly certificate: Buffer; readonly key: KeyObject };
	readonly #rootPem: string;

	constructor(signer: { readonly certificate: Buffer; readonly key: KeyObject }, rootPem: string) {
		this.#signer = signer;
		this.#rootPem = rootPem;
	}

	async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const nonce = randomBytes(16).toString('base64url');
		this.#nonces.add(nonce);
		response.setHeader('replay-nonce', nonce);
		const url = this.base + request.url!;
		const [, resource = '', id = ''] = request.url!.split('/');
		const fault = this.faults.before(resource);
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		if (fault === 'hang') return;
		if (fault !== undefined) return this.#problem(response, fault, fault === 'rateLimited' ? 429 : 400);
		if (resource === 'directory') return json(response, 200, this.#directory());
		if (resource === 'new-nonce') return void response.writeHead(200).end();
		if (resource === 'renewal-info') {
			if (!this.faults.window) return this.#problem(response, 'malformed', 404);
			if (!this.issued.some(chain => certificateId(chain) === id)) return this.#problem(response, 'malformed', 404);
			response.setHeader('retry-after', '3600');
			return json(response, 200, { suggestedWindow: this.faults.window });
		}
		const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
		const header = JSON.parse(Buffer.from(body.protected, 'base64url').toString('utf8'));
		if (!this.#nonces.delete(header.nonce) || Math.random() < this.faults.nonceRejection) {
			return this.#problem(response, 'badNonce', 400);
		}
		const known = this.accounts.get(header.kid);
		if (resource !== 'new-account' && (!known || this.faults.forgetful)) {
			this.faults.forgetful = false;
			this.accounts.delete(header.kid);
			return this.#problem(response, 'accountDoesNotExist', 400);
		}
		const accountKey = known?.key ?? createPublicKey({ key: header.jwk, format: 'jwk' });
		const signed = Buffer.from(`${body.protected}.${body.payload}`);
		const signature = Buffer.from(body.signature, 'base64url');
		const right = verify('sha256', signed, { key: accountKey, dsaEncoding: 'ieee-p1363' }, signature);
		if (!right || header.url !== url) return this.#problem(response, 'unauthorized', 401);
		const payload = body.payload === '' ? undefined : JSON.parse(Buffer.from(body.payload, 'base64url').toString());
		const account = header.kid as string;
		switch (resource) {
			case 'new-account':
				return this.#newAccount(response, header.jwk, accountKey, payload);
			case 'account':
				return json(response, 200, { status: 'valid', orders: `${this.base}/orders/${id}` });
			case 'orders':
				return json(response, 200, {
					orders: this.orders.filter(order => order.account === account).map(order => this.#orderUrl(order)),
				});
			case 'new-order':
				return this.#newOrder(response, account, payload);
		}
		const order = this.orders[Number(id)];
		if (!order || order.account !== account) return this.#problem(response, 'malformed', 404);
		switch (resource) {
			case 'order':
				return json(response, 200, this.#orderBody(order));
			case 'authz':
				return json(response, 200, this.#authorizationBody(order));
			case 'challenge':
				json(response, 200, { type: header.url.split('/').at(-1), url, status: 'processing', token: order.token });
				return this.#validate(order, url.split('/').at(-1)!, this.accounts.get(account)!.thumbprint);
			case 'finalize':
				return this.#finalize(response, order, payload);
			case 'certificate':
				response.setHeader('content-type', 'application/pem-certificate-chain');
				return void response.writeHead(200).end(order.chain);
		}
		this.#problem(response, 'malformed', 404);
	}

	#directory(): object {
		return {
			newNonce: `${this.base}/new-nonce`,
			newAccount: `${this.base}/new-account`,
			newOrder: `${this.base}/new-order`,
			...(this.faults.window ? { renewalInfo: `${this.base}/renewal-info` } : {}),
			meta: this.faults.bindings ? { externalAccountRequired: true } : {},
		};
	}

	#newAccount(
		response: ServerResponse,
		jwk: { [member: string]: string },
		key: KeyObject,
		payload: { externalAccountBinding?: { protected: string; payload: string; signature: string } },
	) {
		const { crv, kty, x, y } = jwk;
		const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
		if (this.faults.bindings) {
			const bound = payload.externalAccountBinding;
			const header = bound && JSON.parse(Buffer.from(bound.protected, 'base64url').toString());
			const secret = header && this.faults.bindings[header.kid];
			const expected =
				secret &&
				createHmac('sha256', Buffer.from(secret, 'base64url'))
					.update(`${bound.protected}.${bound.payload}`)
					.digest('base64url');
			if (!expected || expected !== bound.signature) return this.#problem(response, 'unauthorized', 403);
		}
		const url = `${this.base}/account/${thumbprint.slice(0, 8)}`;
		const existed = this.accounts.has(url);
		this.accounts.set(url, { key, thumbprint });
		response.setHeader('location', url);
		json(response, existed ? 200 : 201, { status: 'valid' });
	}

	#newOrder(
		response: ServerResponse,
		account: string,
		payload: { identifiers: { type: string; value: string }[]; replaces?: string; profile?: string },
	): void {
		const order: Order = {
			id: this.orders.length,
			account,
			name: payload.identifiers[0]!.value,
			status: 'pending',
			token: randomBytes(12).toString('base64url'),
			authorization: 'pending',
			replaces: payload.replaces,
			profile: payload.profile,
			error: undefined,
			chain: undefined,
		};
		this.orders.push(order);
		response.setHeader('location', this.#orderUrl(order));
		json(response, 201, this.#orderBody(order));
	}

	async #validate(order: Order, type: string, thumbprint: string): Promise<void> {
		const { name, token } = order;
		const keyAuthorization = `${token}.${thumbprint}`;
		const valid = await this.faults.validate({ type, name, token, keyAuthorization });
		order.authorization = valid ? 'valid' : 'invalid';
		order.status = valid ? 'ready' : 'invalid';
		order.error = valid ? undefined : { type: 'urn:ietf:params:acme:error:unauthorized', detail: `${type} is wrong` };
	}

	#finalize(response: ServerResponse, order: Order, payload: { csr: string }) {
		if (order.status !== 'ready') return this.#problem(response, 'orderNotReady', 403);
		const publicKey = readRequest(Buffer.from(payload.csr, 'base64url'), order.name);
		if (!publicKey) return this.#problem(response, 'badCSR', 400);
		const begin = Date.now() - this.faults.backdate;
		const certificate = issueCertificate({
			names: [order.name],
			key: publicKey,
			signer: this.#signer,
			notBefore: new Date(begin),
			notAfter: new Date(begin + this.faults.lifetime),
			extensions: this.faults.ocsp === undefined ? [] : [responderExtension(this.faults.ocsp)],
		});
		order.chain = certificatePem(certificate) + this.#rootPem;
		this.issued.push(order.chain);
		order.status = 'valid';
		json(response, 200, { ...this.#orderBody(order), status: 'processing' });
	}

	#orderUrl({ id }: Order): string {
		return `${this.base}/order/${id}`;
	}

	#orderBody({ id, name, status, error }: Order): object {
		return {
			status,
			identifiers: [{ type: 'dns', value: name }],
			authorizations: [`${this.base}/authz/${id}`],
			finalize: `${this.base}/finalize/${id}`,
			...(status === 'valid' ? { certificate: `${this.base}/certificate/${id}` } : {}),
			...(error ? { error } : {}),
		};
	}

	#authorizationBody({ id, name, authorization, token, error }: Order): object {
		const wildcard = name.startsWith('*.');
		const types = wildcard ? ['dns-01'] : this.faults.challenges;
		return {
			status: authorization,
			identifier: { type: 'dns', value: name.replace(/^\*\./, '') },
			...(wildcard ? { wildcard } : {}),
			challenges: types.map(type => ({
				type,
				url: `${this.base}/challenge/${id}/${type}`,
				token,
				status: authorization,
				...(error ? { error } : {}),
			})),
		};
	}

	#problem(response: ServerResponse, type: string, status: number): void {
		if (this.faults.retryAfter !== undefined) response.setHeader('retry-after', String(this.faults.retryAfter));
		json(response, status, { type: `urn:ietf:params:acme:error:${type}`, detail: `scripted ${type}` });
	}
}

function json(response: ServerResponse, status: number, body: object): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/**
 * Returns the public key of a PKCS #10 request. Returns undefined if the request is not signed with this key or does not contain
 * the name.
 */
function readRequest(der: Buffer, name: string): KeyObject | undefined {
	const [info, , signature] = elements(contentOf(der));
	const [, subject, spki] = elements(contentOf(info!));
	if (contentOf(subject!).length !== 0) return undefined;
	const key = createPublicKey({ key: spki!, format: 'der', type: 'spki' });
	const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
	const right = verify(digest, info!, key, contentOf(signature!).subarray(1));
	return right && info!.includes(Buffer.from(name)) ? key : undefined;
}

function contentOf(der: Buffer): Buffer {
	const first = der[1]!;
	const size = first < 128 ? 0 : first - 128;
	return der.subarray(2 + size, 2 + size + (size === 0 ? first : der.readUIntBE(2, size)));
}

function elements(content: Buffer): Buffer[] {
	const found: Buffer[] = [];
	for (let at = 0; at < content.length; ) {
		const rest = content.subarray(at);
		const size = rest[1]! < 128 ? 0 : rest[1]! - 128;
		const whole = rest.subarray(0, 2 + size + (size === 0 ? rest[1]! : rest.readUIntBE(2, size)));
		found.push(whole);
		at += whole.length;
	}
	return found;
}
