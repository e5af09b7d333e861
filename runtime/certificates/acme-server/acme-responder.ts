/** The ACME server of one CA (RFC 8555). Answers requests that a site forwards to it. */
import { isIP } from 'node:net';
import { formatIp, parseIp } from '../../../compiler/exchange/ip-address.ts';
import {
	type AcmeServerAnswer,
	type AcmeServerRequest,
	type AcmeServerSettings,
	CHALLENGE_TYPES,
	DEFAULT_CERTIFICATE_LIFETIME_MS,
} from '../../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { Store } from '../../storage/store.ts';
import { type Authority, AuthorityError } from '../authority.ts';
import { FairQueue } from '../fair-queue.ts';
import type { ManagerLog } from '../manager-log.ts';

import { type Account, Accounts } from './accounts.ts';
import { AcmeRefusal } from './acme-refusal.ts';
import { nameRefusal } from './name-policy.ts';
import { type ValidationPorts, validateName } from './name-validation.ts';
import { Nonces } from './nonces.ts';
import {
	type Authorization,
	type Challenge,
	type Identifier,
	type Order,
	OrderRegistry,
	orderStatus,
} from './order-registry.ts';
import { readRequest } from './request-contents.ts';
import {
	checkSignature,
	jwkThumbprint,
	type PublicJwk,
	parseJsonObject,
	parseSignedRequest,
	type SignedRequest,
} from './signed-request.ts';

/** Dependencies of {@link AcmeResponder}. */
export interface ResponderDeps {
	readonly log: ManagerLog;
	readonly store: Store;
	readonly authority: (id: string) => Promise<Authority | undefined>;
	readonly ports: ValidationPorts;
}

/** Maximum number of names per order. */
const MAX_NAMES = 100;
/** Maximum number of validations that run at the same time. */
const MAX_VALIDATIONS = 16;
/** Maximum number of waiting validations per account. */
const MAX_WAITING_VALIDATIONS = 200;

/** A request whose signature has not necessarily been checked yet. */
interface ReceivedRequest {
	readonly signed: SignedRequest;
	/** The URL of the ACME server, to which the names of resources are appended. */
	readonly base: string;
	readonly settings: AcmeServerSettings;
}

interface Reply {
	readonly status: number;
	readonly body: object | string;
	readonly headers?: readonly (readonly [string, string])[];
}

/** The server of one authority. Sites that serve it with different rules share its accounts and orders. */
export class AcmeResponder {
	readonly #id: string;
	readonly #deps: ResponderDeps;
	readonly #accounts: Accounts;
	readonly #orders = new OrderRegistry();
	readonly #nonces = new Nonces();
	readonly #validations = new FairQueue(MAX_VALIDATIONS, MAX_WAITING_VALIDATIONS);

	constructor(id: string, deps: ResponderDeps) {
		this.#id = id;
		this.#deps = deps;
		this.#accounts = new Accounts(deps.store, id);
	}

	/** Answers a request. Never rejects. */
	async answer(request: AcmeServerRequest, settings: AcmeServerSettings): Promise<AcmeServerAnswer> {
		try {
			return this.#answerOf(request, await this.#reply(request, settings));
		} catch (error) {
			if (error instanceof AcmeRefusal) {
				return this.#answerOf(request, { status: error.status, body: error.document, headers: PROBLEM_HEADERS });
			}
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('error', 'pki.acme', 'a request could not be answered', { ca: this.#id, cause });
			const refusal = new AcmeRefusal('serverInternal', 500, 'The server cannot process the request at the moment.');
			return this.#answerOf(request, { status: 500, body: refusal.document, headers: PROBLEM_HEADERS });
		}
	}

	#answerOf({ base }: AcmeServerRequest, { status, body, headers = [] }: Reply): AcmeServerAnswer {
		return {
			status,
			headers: [
				['Content-Type', 'application/json'],
				['Replay-Nonce', this.#nonces.issue()],
				['Cache-Control', 'no-store'],
				['Link', `<${base}/directory>;rel="index"`],
				...headers,
			],
			body: typeof body === 'string' ? body : `${JSON.stringify(body)}\n`,
		};
	}

	async #reply(request: AcmeServerRequest, settings: AcmeServerSettings): Promise<Reply> {
		const { method, base } = request;
		const [resource = '', id = '', subresource = ''] = request.resource.split('/');
		if (resource === 'directory' && (method === 'GET' || method === 'HEAD')) {
			const url = (name: string): string => `${base}/${name}`;
			return {
				status: 200,
				body: {
					newNonce: url('new-nonce'),
					newAccount: url('new-account'),
					newOrder: url('new-order'),
					revokeCert: url('revoke-cert'),
					keyChange: url('key-change'),
				},
			};
		}
		if (resource === 'new-nonce' && (method === 'GET' || method === 'HEAD')) {
			return { status: method === 'HEAD' ? 200 : 204, body: '' };
		}
		if (!POST_RESOURCES.has(resource)) throw new AcmeRefusal('malformed', 404, 'No such resource.');
		if (method !== 'POST') throw new AcmeRefusal('malformed', 405, 'Resources must be requested with POST.');
		if (!/^application\/jose\+json\s*(;|$)/i.test(request.contentType)) {
			throw new AcmeRefusal('malformed', 415, 'Requests must have the type application/jose+json.');
		}
		const signed = parseSignedRequest(request.body);
		if (signed.header.nonce === undefined || !this.#nonces.isValid(signed.header.nonce)) throw badNonce();
		if (signed.header.url !== `${base}/${request.resource}`) {
			throw new AcmeRefusal('unauthorized', 403, 'The request was signed for another URL.');
		}
		const received: ReceivedRequest = { signed, base, settings };
		if (resource === 'new-account') return this.#newAccount(received);
		if (resource === 'revoke-cert') return this.#revoke();
		const account = await this.#accountOf(received);
		switch (resource) {
			case 'account':
				return this.#account(account, id, subresource, received);
			case 'key-change':
				return this.#changeKey(account, received);
			case 'new-order':
				return this.#newOrder(account, received);
			case 'order':
				return this.#order(this.#orderOf(id, account), subresource, received);
			case 'certificate':
				return this.#certificate(this.#orderOf(id, account));
			default:
				return this.#authorization(account, id, subresource, received);
		}
	}

	/** Checks the signature of a request, then consumes its nonce. A request with a wrong signature must not consume a nonce. */
	#verify(signed: SignedRequest, jwk: PublicJwk): void {
		checkSignature(signed, jwk);
		if (!this.#nonces.use(signed.header.nonce!)) throw badNonce();
	}

	async #newAccount({ signed, base }: ReceivedRequest): Promise<Reply> {
		const { jwk } = signed.header;
		if (!jwk) throw new AcmeRefusal('malformed', 400, 'A request for a new account must contain its key.');
		this.#verify(signed, jwk);
		const { contact, onlyReturnExisting } = parseJsonObject(signed.payload);
		const existing = await this.#accounts.byKey(jwk);
		if (existing?.status === 'deactivated') throw new AcmeRefusal('unauthorized', 403, 'The account is deactivated.');
		if (existing) return accountReply(existing, base, 200);
		if (onlyReturnExisting === true) {
			throw new AcmeRefusal('accountDoesNotExist', 400, 'No account has this key.');
		}
		return accountReply(await this.#accounts.create(jwk, contactsOf(contact)), base, 201);
	}

	async #accountOf({ signed, base }: ReceivedRequest): Promise<Account> {
		const { kid } = signed.header;
		const prefix = `${base}/account/`;
		const account = kid?.startsWith(prefix) ? await this.#accounts.byId(kid.slice(prefix.length)) : undefined;
		if (!account) throw new AcmeRefusal('accountDoesNotExist', 400, 'No such account.');
		this.#verify(signed, account.jwk);
		if (account.status !== 'valid') throw new AcmeRefusal('unauthorized', 403, 'The account is deactivated.');
		return account;
	}

	async #account(account: Account, id: string, subresource: string, { signed, base }: ReceivedRequest): Promise<Reply> {
		if (id !== account.id) throw new AcmeRefusal('unauthorized', 403, 'The request was signed by another account.');
		if (subresource === 'orders') {
			return { status: 200, body: { orders: this.#orders.ofAccount(id).map(order => `${base}/order/${order.id}`) } };
		}
		if (signed.payload === '') return accountReply(account, base, 200);
		const { contact, status } = parseJsonObject(signed.payload);
		return accountReply(
			await this.#accounts.write({
				...account,
				...(contact === undefined ? {} : { contact: contactsOf(contact) }),
				...(status === 'deactivated' ? { status } : {}),
			}),
			base,
			200,
		);
	}

	/** Changes an account's key (RFC 8555 §7.3.5). The inner request is signed with the new key and contains the old one. */
	async #changeKey(account: Account, { signed, base }: ReceivedRequest): Promise<Reply> {
		const inner = parseSignedRequest(signed.payload);
		const { jwk, url } = inner.header;
		if (!jwk || url !== signed.header.url) throw new AcmeRefusal('malformed', 400, 'The inner request is invalid.');
		checkSignature(inner, jwk);
		const { account: accountUrl, oldKey } = parseJsonObject(inner.payload);
		const isForAccount = accountUrl === `${base}/account/${account.id}` && isSameKey(oldKey, account.jwk);
		if (!isForAccount) throw new AcmeRefusal('malformed', 400, 'The inner request is for another account or key.');
		if (await this.#accounts.byKey(jwk)) throw new AcmeRefusal('malformed', 409, 'The key belongs to another account.');
		return accountReply(await this.#accounts.replaceKey(account, jwk), base, 200);
	}

	#newOrder(account: Account, { signed, base, settings }: ReceivedRequest): Reply {
		const { identifiers } = parseJsonObject(signed.payload);
		const requestedIdentifiers = identifiersOf(identifiers);
		for (const { value } of requestedIdentifiers) {
			const refusal = nameRefusal(value, settings);
			if (refusal !== undefined) throw new AcmeRefusal('rejectedIdentifier', 400, refusal);
		}
		const offeredTypes = settings.challenges ?? CHALLENGE_TYPES;
		const order = this.#orders.create(account.id, requestedIdentifiers, wildcard =>
			wildcard ? offeredTypes.filter(type => type === 'dns-01') : offeredTypes,
		);
		return { status: 201, body: orderBody(order, base), headers: [['Location', `${base}/order/${order.id}`]] };
	}

	#orderOf(id: string, account: Account): Order {
		const order = this.#orders.order(id, account.id);
		if (order) return order;
		throw new AcmeRefusal('malformed', 404, 'No such order.');
	}

	async #order(order: Order, subresource: string, { signed, base, settings }: ReceivedRequest): Promise<Reply> {
		const location = [['Location', `${base}/order/${order.id}`]] as const;
		if (subresource !== 'finalize') return { status: 200, body: orderBody(order, base), headers: location };
		if (orderStatus(order) !== 'ready') throw new AcmeRefusal('orderNotReady', 403, 'The order is not ready.');
		const { csr } = parseJsonObject(signed.payload);
		const { key, names } = readRequest(Buffer.from(typeof csr === 'string' ? csr : '', 'base64url'));
		const orderedNames = order.identifiers.map(({ value }) => value).sort();
		if (names.join() !== orderedNames.join())
			throw new AcmeRefusal('badCSR', 400, 'The request is for names other than those of the order.');
		const authority = await this.#deps.authority(this.#id);
		if (!authority) throw new AuthorityError(`The authority \`${this.#id}\` cannot sign at the moment.`);
		const lifetime = settings.lifetime ?? DEFAULT_CERTIFICATE_LIFETIME_MS;
		order.certificate = authority.sign({ names: orderedNames, key, lifetime, withRoot: settings.sign_with_root });
		this.#deps.log('info', 'pki.acme', 'a certificate was signed', {
			ca: this.#id,
			names: orderedNames,
			account: order.account,
		});
		return { status: 200, body: orderBody(order, base), headers: location };
	}

	#certificate({ certificate }: Order): Reply {
		if (certificate === undefined) throw new AcmeRefusal('malformed', 404, 'The certificate has not been issued yet.');
		return { status: 200, body: certificate, headers: [['Content-Type', 'application/pem-certificate-chain']] };
	}

	#authorization(account: Account, id: string, type: string, { signed, base, settings }: ReceivedRequest): Reply {
		const authorization = this.#orders.authorization(id, account.id);
		if (!authorization) throw new AcmeRefusal('malformed', 404, 'No such authorization.');
		const url = `${base}/authz/${id}`;
		if (type === '') {
			if (signed.payload !== '' && parseJsonObject(signed.payload).status === 'deactivated')
				authorization.status = 'deactivated';
			return { status: 200, body: authorizationBody(authorization, base) };
		}
		const challenge = authorization.challenges.find(one => one.type === type);
		if (!challenge) throw new AcmeRefusal('malformed', 404, 'No such challenge.');
		if (signed.payload !== '' && challenge.status === 'pending' && authorization.status === 'pending') {
			const validate = (): Promise<void> => this.#validate(authorization, challenge, account.jwk, settings);
			challenge.status = 'processing';
			if (!this.#validations.add(account.id, validate)) {
				challenge.status = 'pending';
				throw new AcmeRefusal('rateLimited', 429, 'Too many validations of the account are waiting.');
			}
		}
		return {
			status: 200,
			body: challengeBody(authorization, challenge, base),
			headers: [['Link', `<${url}>;rel="up"`]],
		};
	}

	async #validate(
		authorization: Authorization,
		challenge: Challenge,
		jwk: PublicJwk,
		settings: AcmeServerSettings,
	): Promise<void> {
		const { type, token } = challenge;
		const name = authorization.identifier.value;
		const keyAuthorization = `${token}.${jwkThumbprint(jwk)}`;
		const { ports } = this.#deps;
		try {
			await validateName({ type, name, token, keyAuthorization, resolvers: settings.resolvers ?? [], ports });
			challenge.status = 'valid';
			challenge.validated = new Date().toISOString();
			if (authorization.status === 'pending') authorization.status = 'valid';
		} catch (error) {
			const message = error instanceof Error ? error.message : String(error);
			const refusal = error instanceof AcmeRefusal ? error : new AcmeRefusal('serverInternal', 500, message);
			challenge.status = 'invalid';
			challenge.error = refusal.document;
			if (authorization.status === 'pending') authorization.status = 'invalid';
			this.#deps.log('info', 'pki.acme', 'a name was not validated', {
				ca: this.#id,
				name,
				challenge: type,
				cause: message,
			});
		}
	}

	/** Refuses revocation, which is not supported: certificates of internal CAs are short-lived and name no CRL or responder. */
	#revoke(): Reply {
		throw new AcmeRefusal(
			'unauthorized',
			403,
			'This authority does not support revocation; its certificates expire within hours.',
		);
	}
}

const POST_RESOURCES: ReadonlySet<string> = new Set([
	...['new-account', 'account', 'key-change', 'new-order', 'order', 'certificate', 'authz', 'revoke-cert'],
]);

function badNonce(): AcmeRefusal {
	return new AcmeRefusal('badNonce', 400, 'The nonce is unknown or was used before.');
}
const PROBLEM_HEADERS = [['Content-Type', 'application/problem+json']] as const;

function accountReply({ id, contact, status }: Account, base: string, httpStatus: number): Reply {
	const url = `${base}/account/${id}`;
	return { status: httpStatus, body: { status, contact, orders: `${url}/orders` }, headers: [['Location', url]] };
}

function contactsOf(value: unknown): string[] {
	const list = Array.isArray(value) ? value : [];
	const isValid =
		list.every(one => typeof one === 'string' && /^mailto:[^\s?,]{3,254}$/.test(one)) && list.length <= 10;
	if (!isValid) throw new AcmeRefusal('invalidContact', 400, 'Contacts must be `mailto:` addresses, at most ten.');
	return list as string[];
}

function identifiersOf(value: unknown): Identifier[] {
	const list = Array.isArray(value) ? (value as { readonly type?: unknown; readonly value?: unknown }[]) : [];
	const parsedIdentifiers = list.map(one => {
		if (typeof one?.value !== 'string' || (one.type !== 'dns' && one.type !== 'ip')) {
			throw new AcmeRefusal('unsupportedIdentifier', 400, 'Identifiers must be of type dns or ip.');
		}
		const lowerCase = one.value.toLowerCase();
		const address = parseIp(lowerCase);
		const name = address ? formatIp(address) : lowerCase;
		if ((one.type === 'ip') !== (isIP(name) !== 0)) {
			throw new AcmeRefusal('malformed', 400, 'The value of an identifier does not match its type.');
		}
		return { type: one.type, value: name } as Identifier;
	});
	const areDistinct = new Set(parsedIdentifiers.map(one => one.value)).size === parsedIdentifiers.length;
	if (parsedIdentifiers.length === 0 || parsedIdentifiers.length > MAX_NAMES || !areDistinct) {
		throw new AcmeRefusal('malformed', 400, `An order must have from 1 to ${MAX_NAMES} different identifiers.`);
	}
	return parsedIdentifiers;
}

function isSameKey(value: unknown, jwk: PublicJwk): boolean {
	const candidate = value as { readonly [member: string]: unknown } | null;
	return (
		typeof candidate === 'object' &&
		candidate !== null &&
		Object.entries(jwk).every(([name, part]) => candidate[name] === part)
	);
}

function orderBody(order: Order, base: string): object {
	const { id, identifiers, authorizations, expires, certificate, error } = order;
	return {
		status: orderStatus(order),
		expires: new Date(expires).toISOString(),
		identifiers,
		authorizations: authorizations.map(one => `${base}/authz/${one.id}`),
		finalize: `${base}/order/${id}/finalize`,
		...(certificate === undefined ? {} : { certificate: `${base}/certificate/${id}` }),
		...(error ? { error } : {}),
	};
}

function authorizationBody(authorization: Authorization, base: string): object {
	const { status, identifier, wildcard, expires, challenges } = authorization;
	return {
		status,
		expires: new Date(expires).toISOString(),
		identifier,
		challenges: challenges.map(challenge => challengeBody(authorization, challenge, base)),
		...(wildcard ? { wildcard } : {}),
	};
}

function challengeBody(
	{ id }: Authorization,
	{ type, token, status, validated, error }: Challenge,
	base: string,
): object {
	return {
		type,
		url: `${base}/authz/${id}/${type}`,
		token,
		status,
		...(validated ? { validated } : {}),
		...(error ? { error } : {}),
	};
}
