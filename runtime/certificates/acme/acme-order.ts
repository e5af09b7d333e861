/**
 * One order (RFC 8555 §7.4), either new or resumed after another process has died. Before each request that cannot be repeated,
 * its data is written to the store.
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
	toAcmeProblem,
	waitUnlessAborted,
} from './acme-connection.ts';
import { chooseChain } from './chain-choice.ts';
import { type ChallengeSolver, type ChallengeType, ValidationFailed } from './challenge-solver.ts';
import { certificateId } from './renewal-information.ts';

/** The first wait between two polls, in milliseconds. */
const FIRST_POLL = 100;
/** Maximum wait between two polls, in milliseconds. */
const SLOWEST_POLL = 5000;
/** Maximum number of an account's orders that are searched for an earlier order for the same name. */
const MAX_LISTED = 50;

/** Dependencies of an order. */
export interface OrderEnvironment {
	readonly connection: AcmeConnection;
	readonly account: AcmeAccount;
	readonly store: Store;
	/** The segment that stands for the server in store keys. */
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
	/** URL of the order; undefined until the server has answered. */
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
	wanted: IssueOrder,
	type: ChallengeType,
): Promise<IssuedCertificate> {
	const key = `acme/${env.server}/orders/${toKeySegment(wanted.name)}.json`;
	const { record, order } = await begin(env, wanted, key);
	try {
		const ready = await authorize(env, order, wanted, type);
		const chain = await finish(env, ready, record, wanted);
		return {
			chain,
			privateKey: record.private_key,
			details: { issuer_data: { url: order.url, ca: env.server, challenge: type } },
			kept: () => env.store.remove(key),
		};
	} catch (error) {
		// The record of an order that has failed on the server is deleted, because it cannot be resumed. The record of an interrupted
		// order is kept.
		if (error instanceof ValidationFailed || (error instanceof AcmeProblem && error.status < 500)) {
			if (error.code !== 'issuer/rate-limited') await env.store.remove(key).catch(() => {});
		}
		throw error;
	}
}

/** Returns the order to continue with: the one in the store, or a new one. */
async function begin(
	env: OrderEnvironment,
	wanted: IssueOrder,
	key: string,
): Promise<{ readonly record: OrderRecord; readonly order: AcmeOrder }> {
	const { signal } = wanted;
	const earlier = await readRecord(env, wanted, key);
	if (earlier) {
		const order =
			earlier.order === undefined ? await findOrder(env, wanted) : await readOrder(env, earlier.order, signal);
		if (order && order.status !== 'invalid') {
			env.log('info', 'tls.obtain', 'resuming an order', {
				name: wanted.name,
				order: order.url,
				status: order.status,
			});
			const record = { ...earlier, order: order.url };
			await env.store.write(key, JSON.stringify(record));
			return { record, order };
		}
	}
	const reused = wanted.privateKey;
	const record: OrderRecord = {
		name: wanted.name,
		key_type: wanted.keyType,
		// A key that has not been certified yet can be reused.
		private_key: reused ?? earlier?.private_key ?? privateKeyPem(await makePrivateKey(wanted.keyType)),
		account: env.account.account,
	};
	await env.store.write(key, JSON.stringify(record));
	const order = await createOrder(env, wanted);
	const known = { ...record, order: order.url };
	await env.store.write(key, JSON.stringify(known));
	return { record: known, order };
}

async function readRecord(env: OrderEnvironment, wanted: IssueOrder, key: string): Promise<OrderRecord | undefined> {
	const text = await env.store.read(key);
	if (!text) return undefined;
	try {
		const record = JSON.parse(text.toString('utf8')) as Partial<OrderRecord>;
		const usable =
			record.name === wanted.name &&
			record.key_type === wanted.keyType &&
			record.account === env.account.account &&
			typeof record.private_key === 'string' &&
			parsePrivateKey(record.private_key) !== undefined;
		return usable ? (record as OrderRecord) : undefined;
	} catch {
		return undefined;
	}
}

async function createOrder(env: OrderEnvironment, wanted: IssueOrder): Promise<AcmeOrder> {
	const { connection, account } = env;
	const directory = await connection.directory(wanted.signal);
	const { newOrder } = directory;
	const identifiers = [identifierOf(wanted.name)];
	const payload = {
		identifiers,
		...(env.profile === undefined ? {} : { profile: env.profile }),
		...(env.lifetime ? { notAfter: new Date(Date.now() + env.lifetime).toISOString() } : {}),
	};
	const replaces =
		wanted.replaces !== undefined && directory.renewalInfo !== undefined ? certificateId(wanted.replaces) : undefined;
	const send = (more: object): Promise<AcmeAnswer> =>
		connection.post(newOrder, { ...payload, ...more }, account, wanted.signal);
	if (replaces === undefined) return orderOf(await send({}), undefined);
	try {
		return orderOf(await send({ replaces }), undefined);
	} catch (error) {
		// The server does not accept that the order replaces the certificate: another server may have issued it, or it may have been
		// replaced already (RFC 9773 §5). The order is created without that information.
		if (!(error instanceof AcmeProblem) || error.code !== 'issuer/refused') throw error;
		return orderOf(await send({}), undefined);
	}
}

/**
 * Finds an order that a process may have created before it died, in the account's list of orders (§7.1.2.1). Not every server
 * provides that list.
 */
async function findOrder(env: OrderEnvironment, { name, signal }: IssueOrder): Promise<AcmeOrder | undefined> {
	const { connection, account } = env;
	try {
		const { body } = await connection.read(account.account, account, signal);
		if (typeof body?.orders !== 'string') return undefined;
		const { value } = identifierOf(name);
		const list = await connection.read(body.orders, account, signal);
		const urls = Array.isArray(list.body?.orders) ? (list.body.orders as unknown[]) : [];
		for (const url of urls.reverse().slice(0, MAX_LISTED)) {
			if (typeof url !== 'string') continue;
			const answer = await connection.read(url, account, signal);
			const identifiers = answer.body?.identifiers as readonly { readonly value?: unknown }[] | undefined;
			const open = ['pending', 'ready'].includes(String(answer.body?.status));
			if (open && identifiers?.length === 1 && identifiers[0]?.value === value) return orderOf(answer, url);
		}
	} catch (error) {
		if (!(error instanceof AcmeProblem)) throw error;
	}
	return undefined;
}

/** Reads an order by its URL; undefined if the server no longer has it. */
async function readOrder(env: OrderEnvironment, url: string, signal: AbortSignal): Promise<AcmeOrder | undefined> {
	try {
		return orderOf(await env.connection.read(url, env.account, signal), url);
	} catch (error) {
		if (error instanceof AcmeProblem && error.status < 500 && error.code !== 'issuer/rate-limited') return undefined;
		throw error;
	}
}

/** Completes all authorizations of an order. Resolves to the order once its names have been validated. */
async function authorize(
	env: OrderEnvironment,
	order: AcmeOrder,
	wanted: IssueOrder,
	type: ChallengeType,
): Promise<AcmeOrder> {
	if (order.status !== 'pending') return order;
	for (const url of order.authorizations) await env.solver.authorize(url, wanted.name, type, wanted.signal);
	return awaitOrder(env, order, ['ready', 'processing', 'valid'], wanted.signal);
}

/** Requests the certificate, waits for it, and downloads it. */
async function finish(
	env: OrderEnvironment,
	order: AcmeOrder,
	record: OrderRecord,
	{ name, signal }: IssueOrder,
): Promise<string> {
	let current = order;
	if (current.status === 'ready') {
		const csr = certificateRequest([name], parsePrivateKey(record.private_key)!).toString('base64url');
		current = orderOf(await env.connection.post(order.finalize, { csr }, env.account, signal), order.url);
	}
	if (current.status !== 'valid') current = await awaitOrder(env, current, ['valid'], signal);
	if (current.certificate === undefined)
		throw new IssueError('issuer/refused', 'The server did not return a certificate URL.');
	const answer = await env.connection.read(current.certificate, env.account, signal);
	if (!env.preferredChains || answer.alternates.length === 0) return answer.text;
	const chains = [answer.text];
	for (const url of answer.alternates.slice(0, 10)) {
		chains.push((await env.connection.read(new URL(url, current.certificate).href, env.account, signal)).text);
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
	let current = order;
	for (let wait = FIRST_POLL; ; wait = Math.min(wait * 2, SLOWEST_POLL)) {
		const answer = await env.connection.read(order.url, env.account, signal);
		current = orderOf(answer, order.url);
		if (states.includes(current.status)) return current;
		if (current.status === 'invalid') {
			throw current.error
				? toAcmeProblem(current.error, 400, current.retryAt)
				: new ValidationFailed('The order became invalid.');
		}
		await waitUnlessAborted(pollDelay(current.retryAt, wait), signal);
	}
}

/**
 * Returns the milliseconds to wait: until the time for which the server asks, within limits, or `otherwise` if it asks for none.
 */
export function pollDelay(retryAt: number | undefined, otherwise: number): number {
	if (retryAt === undefined) return otherwise;
	return Math.min(Math.max(retryAt - Date.now(), 100), 60_000);
}

function identifierOf(name: string): { readonly type: string; readonly value: string } {
	return { type: isIP(name) ? 'ip' : 'dns', value: name };
}

function orderOf({ body, location, retryAt }: AcmeAnswer, known: string | undefined): AcmeOrder {
	const url = known ?? location;
	const { status, authorizations, finalize, certificate, error } = (body ?? {}) as Partial<AcmeOrder>;
	if (url === undefined || typeof status !== 'string' || typeof finalize !== 'string') {
		throw new IssueError('issuer/refused', "The server's response is not an order.");
	}
	const urls = Array.isArray(authorizations) ? authorizations.filter(one => typeof one === 'string') : [];
	return { url, status, authorizations: urls, finalize, certificate, error, retryAt };
}
