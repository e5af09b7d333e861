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
import type { ManagerLog } from '../manager-log.ts';
import { type Account, Accounts } from './accounts.ts';
import { AcmeRefusal } from './acme-refusal.ts';
import { FairQueue } from './fair-queue.ts';
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
	readonly findAuthority: (id: string) => Promise<Authority | undefined>;
	readonly ports: ValidationPorts;
}

/** Maximum number of names per order. */
const MAX_ORDER_NAMES = 100;
/** Maximum number of validations that run at the same time. */
const MAX_CONCURRENT_VALIDATIONS = 16;
/** Maximum number of waiting validations per account. */
const MAX_WAITING_VALIDATIONS = 200;

/** A request that has been parsed. Its signature may not have been checked yet. */
interface ReceivedRequest {
	readonly signedRequest: SignedRequest;
	/** The URL of the ACME server, to which the names of resources are appended. */
	readonly baseUrl: string;
	readonly settings: AcmeServerSettings;
}

interface Reply {
	readonly status: number;
	readonly body: object | string;
	readonly headers?: readonly (readonly [string, string])[];
}

/** The ACME server of one authority. Sites that serve it with different rules share its accounts and orders. */
export class AcmeResponder {
	readonly #authorityId: string;
	readonly #deps: ResponderDeps;
	readonly #accounts: Accounts;
	readonly #orders = new OrderRegistry();
	readonly #nonces = new Nonces();
	readonly #validationQueue = new FairQueue(MAX_CONCURRENT_VALIDATIONS, MAX_WAITING_VALIDATIONS);

	constructor(id: string, deps: ResponderDeps) {
		this.#authorityId = id;
		this.#deps = deps;
		this.#accounts = new Accounts(deps.store, id);
	}

	/** Answers a request. Never rejects. */
	async answer(request: AcmeServerRequest, settings: AcmeServerSettings): Promise<AcmeServerAnswer> {
		try {
			return this.#toAnswer(request, await this.#dispatchRequest(request, settings));
		} catch (error) {
			if (error instanceof AcmeRefusal) {
				return this.#toAnswer(request, { status: error.status, body: error.document, headers: PROBLEM_HEADERS });
			}
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('error', 'pki.acme', 'a request could not be answered', { ca: this.#authorityId, cause });
			const refusal = new AcmeRefusal('serverInternal', 500, 'The server cannot process the request at the moment.');
			return this.#toAnswer(request, { status: 500, body: refusal.document, headers: PROBLEM_HEADERS });
		}
	}

	#toAnswer({ base: baseUrl }: AcmeServerRequest, { status, body, headers = [] }: Reply): AcmeServerAnswer {
		return {
			status,
			headers: [
				['Content-Type', 'application/json'],
				['Replay-Nonce', this.#nonces.issue()],
				['Cache-Control', 'no-store'],
				['Link', `<${baseUrl}/directory>;rel="index"`],
				...headers,
			],
			body: typeof body === 'string' ? body : `${JSON.stringify(body)}\n`,
		};
	}

	async #dispatchRequest(request: AcmeServerRequest, settings: AcmeServerSettings): Promise<Reply> {
		const { method, base: baseUrl } = request;
		const [resource = '', id = '', subresource = ''] = request.resource.split('/');
		if (resource === 'directory' && (method === 'GET' || method === 'HEAD')) {
			const url = (name: string): string => `${baseUrl}/${name}`;
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
		const signedRequest = parseSignedRequest(request.body);
		if (signedRequest.header.nonce === undefined || !this.#nonces.isValid(signedRequest.header.nonce))
			throw badNonceRefusal();
		if (signedRequest.header.url !== `${baseUrl}/${request.resource}`) {
			throw new AcmeRefusal('unauthorized', 403, 'The request was signed for another URL.');
		}
		const receivedRequest: ReceivedRequest = { signedRequest, baseUrl, settings };
		if (resource === 'new-account') return this.#createAccount(receivedRequest);
		if (resource === 'revoke-cert') return this.#refuseRevocation();
		const account = await this.#accountOf(receivedRequest);
		switch (resource) {
			case 'account':
				return this.#answerAccount(account, id, subresource, receivedRequest);
			case 'key-change':
				return this.#changeKey(account, receivedRequest);
			case 'new-order':
				return this.#createOrder(account, receivedRequest);
			case 'order':
				return this.#answerOrder(this.#orderOf(id, account), subresource, receivedRequest);
			case 'certificate':
				return this.#answerCertificate(this.#orderOf(id, account));
			default:
				return this.#answerAuthorization(account, id, subresource, receivedRequest);
		}
	}

	/** Checks the signature of a request, then consumes its nonce. A request with a wrong signature must not consume a nonce. */
	#verifyRequest(signedRequest: SignedRequest, jwk: PublicJwk): void {
		checkSignature(signedRequest, jwk);
		if (!this.#nonces.markUsed(signedRequest.header.nonce!)) throw badNonceRefusal();
	}

	async #createAccount({ signedRequest, baseUrl }: ReceivedRequest): Promise<Reply> {
		const { jwk } = signedRequest.header;
		if (!jwk) throw new AcmeRefusal('malformed', 400, 'A request for a new account must contain its key.');
		this.#verifyRequest(signedRequest, jwk);
		const { contact, onlyReturnExisting } = parseJsonObject(signedRequest.payload);
		const existingAccount = await this.#accounts.findByKey(jwk);
		if (existingAccount?.status === 'deactivated')
			throw new AcmeRefusal('unauthorized', 403, 'The account is deactivated.');
		if (existingAccount) return accountReply(existingAccount, baseUrl, 200);
		if (onlyReturnExisting === true) {
			throw new AcmeRefusal('accountDoesNotExist', 400, 'No account has this key.');
		}
		return accountReply(await this.#accounts.createAccount(jwk, contactsOf(contact)), baseUrl, 201);
	}

	async #accountOf({ signedRequest, baseUrl }: ReceivedRequest): Promise<Account> {
		const { kid } = signedRequest.header;
		const prefix = `${baseUrl}/account/`;
		const account = kid?.startsWith(prefix) ? await this.#accounts.findById(kid.slice(prefix.length)) : undefined;
		if (!account) throw new AcmeRefusal('accountDoesNotExist', 400, 'No such account.');
		this.#verifyRequest(signedRequest, account.jwk);
		if (account.status !== 'valid') throw new AcmeRefusal('unauthorized', 403, 'The account is deactivated.');
		return account;
	}

	async #answerAccount(
		account: Account,
		id: string,
		subresource: string,
		{ signedRequest, baseUrl }: ReceivedRequest,
	): Promise<Reply> {
		if (id !== account.id) throw new AcmeRefusal('unauthorized', 403, 'The request was signed by another account.');
		if (subresource === 'orders') {
			return { status: 200, body: { orders: this.#orders.ofAccount(id).map(order => `${baseUrl}/order/${order.id}`) } };
		}
		if (signedRequest.payload === '') return accountReply(account, baseUrl, 200);
		const { contact, status } = parseJsonObject(signedRequest.payload);
		return accountReply(
			await this.#accounts.write({
				...account,
				...(contact === undefined ? {} : { contact: contactsOf(contact) }),
				...(status === 'deactivated' ? { status } : {}),
			}),
			baseUrl,
			200,
		);
	}

	/** Changes an account's key (RFC 8555 §7.3.5). The inner request is signed with the new key and contains the old one. */
	async #changeKey(account: Account, { signedRequest, baseUrl }: ReceivedRequest): Promise<Reply> {
		const innerRequest = parseSignedRequest(signedRequest.payload);
		const { jwk, url } = innerRequest.header;
		if (!jwk || url !== signedRequest.header.url)
			throw new AcmeRefusal('malformed', 400, 'The inner request is invalid.');
		checkSignature(innerRequest, jwk);
		const { account: accountUrl, oldKey } = parseJsonObject(innerRequest.payload);
		const isForAccount = accountUrl === `${baseUrl}/account/${account.id}` && isSameKey(oldKey, account.jwk);
		if (!isForAccount) throw new AcmeRefusal('malformed', 400, 'The inner request is for another account or key.');
		if (await this.#accounts.findByKey(jwk))
			throw new AcmeRefusal('malformed', 409, 'The key belongs to another account.');
		return accountReply(await this.#accounts.replaceKey(account, jwk), baseUrl, 200);
	}

	#createOrder(account: Account, { signedRequest, baseUrl, settings }: ReceivedRequest): Reply {
		const { identifiers } = parseJsonObject(signedRequest.payload);
		const requestedIdentifiers = identifiersOf(identifiers);
		for (const { value } of requestedIdentifiers) {
			const refusal = nameRefusal(value, settings);
			if (refusal !== undefined) throw new AcmeRefusal('rejectedIdentifier', 400, refusal);
		}
		const offeredTypes = settings.challenges ?? CHALLENGE_TYPES;
		const order = this.#orders.createOrder(account.id, requestedIdentifiers, wildcard =>
			wildcard ? offeredTypes.filter(type => type === 'dns-01') : offeredTypes,
		);
		return { status: 201, body: orderBody(order, baseUrl), headers: [['Location', `${baseUrl}/order/${order.id}`]] };
	}

	#orderOf(id: string, account: Account): Order {
		const order = this.#orders.findOrder(id, account.id);
		if (order) return order;
		throw new AcmeRefusal('malformed', 404, 'No such order.');
	}

	async #answerOrder(
		order: Order,
		subresource: string,
		{ signedRequest, baseUrl, settings }: ReceivedRequest,
	): Promise<Reply> {
		const location = [['Location', `${baseUrl}/order/${order.id}`]] as const;
		if (subresource !== 'finalize') return { status: 200, body: orderBody(order, baseUrl), headers: location };
		if (orderStatus(order) !== 'ready') throw new AcmeRefusal('orderNotReady', 403, 'The order is not ready.');
		const { csr } = parseJsonObject(signedRequest.payload);
		const { key, names } = readRequest(Buffer.from(typeof csr === 'string' ? csr : '', 'base64url'));
		const orderedNames = order.identifiers.map(({ value }) => value).sort();
		if (names.join() !== orderedNames.join())
			throw new AcmeRefusal('badCSR', 400, 'The request is for names other than those of the order.');
		const authority = await this.#deps.findAuthority(this.#authorityId);
		if (!authority) throw new AuthorityError(`The authority \`${this.#authorityId}\` cannot sign at the moment.`);
		const lifetimeMs = settings.lifetime ?? DEFAULT_CERTIFICATE_LIFETIME_MS;
		order.certificate = authority.sign({ names: orderedNames, key, lifetimeMs, withRoot: settings.sign_with_root });
		this.#deps.log('info', 'pki.acme', 'a certificate was signed', {
			ca: this.#authorityId,
			names: orderedNames,
			account: order.account,
		});
		return { status: 200, body: orderBody(order, baseUrl), headers: location };
	}

	#answerCertificate({ certificate }: Order): Reply {
		if (certificate === undefined) throw new AcmeRefusal('malformed', 404, 'The certificate has not been issued yet.');
		return { status: 200, body: certificate, headers: [['Content-Type', 'application/pem-certificate-chain']] };
	}

	#answerAuthorization(
		account: Account,
		id: string,
		type: string,
		{ signedRequest, baseUrl, settings }: ReceivedRequest,
	): Reply {
		const authorization = this.#orders.findAuthorization(id, account.id);
		if (!authorization) throw new AcmeRefusal('malformed', 404, 'No such authorization.');
		const url = `${baseUrl}/authz/${id}`;
		if (type === '') {
			if (signedRequest.payload !== '' && parseJsonObject(signedRequest.payload).status === 'deactivated')
				authorization.status = 'deactivated';
			return { status: 200, body: authorizationBody(authorization, baseUrl) };
		}
		const challenge = authorization.challenges.find(candidate => candidate.type === type);
		if (!challenge) throw new AcmeRefusal('malformed', 404, 'No such challenge.');
		if (signedRequest.payload !== '' && challenge.status === 'pending' && authorization.status === 'pending') {
			const validate = (): Promise<void> => this.#validateChallenge(authorization, challenge, account.jwk, settings);
			challenge.status = 'processing';
			if (!this.#validationQueue.add(account.id, validate)) {
				challenge.status = 'pending';
				throw new AcmeRefusal('rateLimited', 429, 'Too many validations of the account are waiting.');
			}
		}
		return {
			status: 200,
			body: challengeBody(authorization, challenge, baseUrl),
			headers: [['Link', `<${url}>;rel="up"`]],
		};
	}

	async #validateChallenge(
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
				ca: this.#authorityId,
				name,
				challenge: type,
				cause: message,
			});
		}
	}

	/**
	 * Refuses revocation, which is not supported: certificates of internal CAs are short-lived and name no CRL or OCSP responder.
	 */
	#refuseRevocation(): Reply {
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

function badNonceRefusal(): AcmeRefusal {
	return new AcmeRefusal('badNonce', 400, 'The nonce is unknown or was used before.');
}
const PROBLEM_HEADERS = [['Content-Type', 'application/problem+json']] as const;

function accountReply({ id, contact, status }: Account, baseUrl: string, httpStatus: number): Reply {
	const url = `${baseUrl}/account/${id}`;
	return { status: httpStatus, body: { status, contact, orders: `${url}/orders` }, headers: [['Location', url]] };
}

function contactsOf(value: unknown): string[] {
	const contacts = Array.isArray(value) ? value : [];
	const isValid =
		contacts.every(contact => typeof contact === 'string' && /^mailto:[^\s?,]{3,254}$/.test(contact)) &&
		contacts.length <= 10;
	if (!isValid) throw new AcmeRefusal('invalidContact', 400, 'Contacts must be `mailto:` addresses, at most ten.');
	return contacts as string[];
}

function identifiersOf(value: unknown): Identifier[] {
	const rawIdentifiers = Array.isArray(value) ? (value as { readonly type?: unknown; readonly value?: unknown }[]) : [];
	const parsedIdentifiers = rawIdentifiers.map(identifier => {
		if (typeof identifier?.value !== 'string' || (identifier.type !== 'dns' && identifier.type !== 'ip')) {
			throw new AcmeRefusal('unsupportedIdentifier', 400, 'Identifiers must be of type dns or ip.');
		}
		const lowerCase = identifier.value.toLowerCase();
		const address = parseIp(lowerCase);
		const name = address ? formatIp(address) : lowerCase;
		if ((identifier.type === 'ip') !== (isIP(name) !== 0)) {
			throw new AcmeRefusal('malformed', 400, 'The value of an identifier does not match its type.');
		}
		return { type: identifier.type, value: name } as Identifier;
	});
	const areDistinct = new Set(parsedIdentifiers.map(identifier => identifier.value)).size === parsedIdentifiers.length;
	if (parsedIdentifiers.length === 0 || parsedIdentifiers.length > MAX_ORDER_NAMES || !areDistinct) {
		throw new AcmeRefusal('malformed', 400, `An order must have from 1 to ${MAX_ORDER_NAMES} different identifiers.`);
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

function orderBody(order: Order, baseUrl: string): object {
	const { id, identifiers, authorizations, expires, certificate, error } = order;
	return {
		status: orderStatus(order),
		expires: new Date(expires).toISOString(),
		identifiers,
		authorizations: authorizations.map(authorization => `${baseUrl}/authz/${authorization.id}`),
		finalize: `${baseUrl}/order/${id}/finalize`,
		...(certificate === undefined ? {} : { certificate: `${baseUrl}/certificate/${id}` }),
		...(error ? { error } : {}),
	};
}

function authorizationBody(authorization: Authorization, baseUrl: string): object {
	const { status, identifier, wildcard, expires, challenges } = authorization;
	return {
		status,
		expires: new Date(expires).toISOString(),
		identifier,
		challenges: challenges.map(challenge => challengeBody(authorization, challenge, baseUrl)),
		...(wildcard ? { wildcard } : {}),
	};
}

function challengeBody(
	{ id }: Authorization,
	{ type, token, status, validated, error }: Challenge,
	baseUrl: string,
): object {
	return {
		type,
		url: `${baseUrl}/authz/${id}/${type}`,
		token,
		status,
		...(validated ? { validated } : {}),
		...(error ? { error } : {}),
	};
}
