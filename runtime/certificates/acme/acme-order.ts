/**
 * Runs one order (RFC 8555 §7.4), either a new one or one that a process left unfinished when it died. Before sending a request
 * that cannot be repeated, writes the data of the request to the store.
 */
import { isIP } from 'node:net';
import type { PreferredChains } from '../../../compiler/modules/providers/issuers/preferred-chains.ts';
import { type Store, toKeySegment } from '../../storage/store.ts';
import { makePrivateKey, parsePrivateKey, privateKeyPem } from '../certificate-keys.ts';
import { certificateRequest } from '../certificate-request.ts';
import { type IssuedCertificate, IssueError, type IssueOrder } from '../issuer.ts';
import type { ManagerLog } from '../manager-log.ts';
import type { AcmeAccount } from './acme-account.ts';
import {
	type AcmeAnswer,
	type AcmeConnection,
	AcmeProblem,
	pollDelay,
	toAcmeProblem,
	waitUnlessAborted,
} from './acme-connection.ts';
import { chooseChain } from './chain-choice.ts';
import { type ChallengeSolver, type ChallengeType, ValidationFailed } from './challenge-solver.ts';
import { certificateId } from './renewal-information.ts';

/** The first wait between two polls, in milliseconds. */
const FIRST_POLL_DELAY_MS = 100;
/** Maximum wait between two polls, in milliseconds. */
const MAX_POLL_DELAY_MS = 5000;
/** Maximum number of an account's orders that are searched for an earlier order for the same name. */
const MAX_SEARCHED_ORDERS = 50;

export interface OrderEnvironment {
	readonly connection: AcmeConnection;
	readonly account: AcmeAccount;
	readonly store: Store;
	/** The path segment that identifies the server in store keys. */
	readonly server: string;
	readonly solver: ChallengeSolver;
	readonly log: ManagerLog;
	readonly profile: string | undefined;
	/** Requested lifetime of the certificate, in milliseconds. */
	readonly lifetime: number | undefined;
	readonly preferredChains: PreferredChains | undefined;
}

/** An order in progress, as kept in the store. */
interface OrderRecord {
	readonly name: string;
	readonly key_type: string;
	readonly private_key: string;
	readonly account: string;
	/** URL of the order; undefined until the server has created the order. */
	readonly order?: string;
}

/** An order as returned by the server, with its URL. */
interface AcmeOrder {
	readonly url: string;
	readonly status: string;
	readonly authorizations: readonly string[];
	readonly finalize: string;
	readonly certificate?: string | undefined;
	readonly error?: { readonly [member: string]: unknown } | undefined;
	readonly retryAt: number | undefined;
}

/** Orders a certificate, using one type of challenge. Rejects with IssueError, StoreError or the signal's reason. */
export async function runOrder(
	env: OrderEnvironment,
	request: IssueOrder,
	type: ChallengeType,
): Promise<IssuedCertificate> {
	const recordKey = `acme/${env.server}/orders/${toKeySegment(request.name)}.json`;
	const { record, order } = await beginOrder(env, request, recordKey);
	try {
		const readyOrder = await authorize(env, order, request, type);
		const chain = await completeOrder(env, readyOrder, record, request);
		return {
			chain,
			privateKey: record.private_key,
			details: { issuer_data: { url: order.url, ca: env.server, challenge: type } },
			onStored: () => env.store.remove(recordKey),
		};
	} catch (error) {
		// The record of an order that has failed on the server is deleted, because it cannot be resumed. The record of an interrupted
		// order is kept.
		if (error instanceof ValidationFailed || (error instanceof AcmeProblem && error.status < 500)) {
			if (error.code !== 'issuer/rate-limited') await env.store.remove(recordKey).catch(() => {});
		}
		throw error;
	}
}

/** Returns the order to continue with: the one in the store, or a new one. */
async function beginOrder(
	env: OrderEnvironment,
	request: IssueOrder,
	recordKey: string,
): Promise<{ readonly record: OrderRecord; readonly order: AcmeOrder }> {
	const { signal } = request;
	const earlierRecord = await readRecord(env, request, recordKey);
	if (earlierRecord) {
		const order =
			earlierRecord.order === undefined
				? await findOrder(env, request)
				: await readOrder(env, earlierRecord.order, signal);
		if (order && order.status !== 'invalid') {
			env.log('info', 'tls.obtain', 'resuming an order', {
				name: request.name,
				order: order.url,
				status: order.status,
			});
			const record = { ...earlierRecord, order: order.url };
			await env.store.write(recordKey, JSON.stringify(record));
			return { record, order };
		}
	}
	const reusedKey = request.privateKey;
	const record: OrderRecord = {
		name: request.name,
		key_type: request.keyType,
		// A key that has not been certified yet can be reused.
		private_key: reusedKey ?? earlierRecord?.private_key ?? privateKeyPem(await makePrivateKey(request.keyType)),
		account: env.account.accountUrl,
	};
	await env.store.write(recordKey, JSON.stringify(record));
	const order = await createOrder(env, request);
	const recordWithUrl = { ...record, order: order.url };
	await env.store.write(recordKey, JSON.stringify(recordWithUrl));
	return { record: recordWithUrl, order };
}

async function readRecord(
	env: OrderEnvironment,
	request: IssueOrder,
	recordKey: string,
): Promise<OrderRecord | undefined> {
	const recordJson = await env.store.read(recordKey);
	if (!recordJson) return undefined;
	try {
		const record = JSON.parse(recordJson.toString('utf8')) as Partial<OrderRecord>;
		const isUsable =
			record.name === request.name &&
			record.key_type === request.keyType &&
			record.account === env.account.accountUrl &&
			typeof record.private_key === 'string' &&
			parsePrivateKey(record.private_key) !== undefined;
		return isUsable ? (record as OrderRecord) : undefined;
	} catch {
		return undefined;
	}
}

async function createOrder(env: OrderEnvironment, request: IssueOrder): Promise<AcmeOrder> {
	const { connection, account } = env;
	const directory = await connection.readDirectory(request.signal);
	const { newOrder } = directory;
	const identifiers = [identifierOf(request.name)];
	const payload = {
		identifiers,
		...(env.profile === undefined ? {} : { profile: env.profile }),
		...(env.lifetime ? { notAfter: new Date(Date.now() + env.lifetime).toISOString() } : {}),
	};
	const replaces =
		request.replaces !== undefined && directory.renewalInfo !== undefined ? certificateId(request.replaces) : undefined;
	const send = (extraFields: object): Promise<AcmeAnswer> =>
		connection.post(newOrder, { ...payload, ...extraFields }, account, request.signal);
	if (replaces === undefined) return orderOf(await send({}), undefined);
	try {
		return orderOf(await send({ replaces }), undefined);
	} catch (error) {
		// The server refuses an order that replaces the certificate: another server may have issued the certificate, or it may have
		// been replaced already (RFC 9773 §5). So the order is created without `replaces`.
		if (!(error instanceof AcmeProblem) || error.code !== 'issuer/refused') throw error;
		return orderOf(await send({}), undefined);
	}
}

/**
 * Searches the account's list of orders (§7.1.2.1) for an order that a process created before it died. Returns undefined if
 * there is none, or if the server does not provide the list.
 */
async function findOrder(env: OrderEnvironment, { name, signal }: IssueOrder): Promise<AcmeOrder | undefined> {
	const { connection, account } = env;
	try {
		const { body } = await connection.postAsGet(account.accountUrl, account, signal);
		if (typeof body?.orders !== 'string') return undefined;
		const { value } = identifierOf(name);
		const orderList = await connection.postAsGet(body.orders, account, signal);
		const urls = Array.isArray(orderList.body?.orders) ? (orderList.body.orders as unknown[]) : [];
		for (const url of urls.reverse().slice(0, MAX_SEARCHED_ORDERS)) {
			if (typeof url !== 'string') continue;
			const answer = await connection.postAsGet(url, account, signal);
			const identifiers = answer.body?.identifiers as readonly { readonly value?: unknown }[] | undefined;
			const isOpen = ['pending', 'ready'].includes(String(answer.body?.status));
			if (isOpen && identifiers?.length === 1 && identifiers[0]?.value === value) return orderOf(answer, url);
		}
	} catch (error) {
		if (!(error instanceof AcmeProblem)) throw error;
	}
	return undefined;
}

/** Reads an order by its URL; undefined if the server no longer has it. */
async function readOrder(env: OrderEnvironment, url: string, signal: AbortSignal): Promise<AcmeOrder | undefined> {
	try {
		return orderOf(await env.connection.postAsGet(url, env.account, signal), url);
	} catch (error) {
		if (error instanceof AcmeProblem && error.status < 500 && error.code !== 'issuer/rate-limited') return undefined;
		throw error;
	}
}

/** Completes all authorizations of an order. Resolves to the order once its names have been validated. */
async function authorize(
	env: OrderEnvironment,
	order: AcmeOrder,
	request: IssueOrder,
	type: ChallengeType,
): Promise<AcmeOrder> {
	if (order.status !== 'pending') return order;
	for (const url of order.authorizations) await env.solver.authorize(url, request.name, type, request.signal);
	return awaitOrder(env, order, ['ready', 'processing', 'valid'], request.signal);
}

/** Requests the certificate, waits for it, and downloads it. */
async function completeOrder(
	env: OrderEnvironment,
	order: AcmeOrder,
	record: OrderRecord,
	{ name, signal }: IssueOrder,
): Promise<string> {
	let currentOrder = order;
	if (currentOrder.status === 'ready') {
		const csr = certificateRequest([name], parsePrivateKey(record.private_key)!).toString('base64url');
		currentOrder = orderOf(await env.connection.post(order.finalize, { csr }, env.account, signal), order.url);
	}
	if (currentOrder.status !== 'valid') currentOrder = await awaitOrder(env, currentOrder, ['valid'], signal);
	if (currentOrder.certificate === undefined)
		throw new IssueError('issuer/refused', 'The server did not return a certificate URL.');
	const answer = await env.connection.postAsGet(currentOrder.certificate, env.account, signal);
	if (!env.preferredChains || answer.alternates.length === 0) return answer.text;
	const chains = [answer.text];
	for (const url of answer.alternates.slice(0, 10)) {
		chains.push(
			(await env.connection.postAsGet(new URL(url, currentOrder.certificate).href, env.account, signal)).text,
		);
	}
	return chooseChain(chains, env.preferredChains);
}

/** Polls an order until it is in one of the given states. */
async function awaitOrder(
	env: OrderEnvironment,
	order: AcmeOrder,
	states: readonly string[],
	signal: AbortSignal,
): Promise<AcmeOrder> {
	let currentOrder = order;
	for (let waitMs = FIRST_POLL_DELAY_MS; ; waitMs = Math.min(waitMs * 2, MAX_POLL_DELAY_MS)) {
		const answer = await env.connection.postAsGet(order.url, env.account, signal);
		currentOrder = orderOf(answer, order.url);
		if (states.includes(currentOrder.status)) return currentOrder;
		if (currentOrder.status === 'invalid') {
			throw currentOrder.error
				? toAcmeProblem(currentOrder.error, 400, currentOrder.retryAt)
				: new ValidationFailed('The order became invalid.');
		}
		await waitUnlessAborted(pollDelay(currentOrder.retryAt, waitMs), signal);
	}
}

function identifierOf(name: string): { readonly type: string; readonly value: string } {
	return { type: isIP(name) ? 'ip' : 'dns', value: name };
}

function orderOf({ body, location, retryAt }: AcmeAnswer, knownUrl: string | undefined): AcmeOrder {
	const url = knownUrl ?? location;
	const { status, authorizations, finalize, certificate, error } = (body ?? {}) as Partial<AcmeOrder>;
	if (url === undefined || typeof status !== 'string' || typeof finalize !== 'string') {
		throw new IssueError('issuer/refused', "The server's response is not an order.");
	}
	const urls = Array.isArray(authorizations) ? authorizations.filter(item => typeof item === 'string') : [];
	return { url, status, authorizations: urls, finalize, certificate, error, retryAt };
}
