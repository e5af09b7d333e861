/** Accounts with ACME servers (RFC 8555 §7.3), registered once and kept in the store. */
import { createHash, createHmac } from 'node:crypto';
import { type Store, toKeySegment } from '../../storage/store.ts';
import { makePrivateKey, parsePrivateKey, privateKeyPem } from '../certificate-keys.ts';
import { IssueError } from '../issuer.ts';
import { type AcmeConnection, AcmeProblem, type AcmeSigner, createJws, publicJwk } from './acme-connection.ts';

/** The registration data of an account. */
export interface AccountSettings {
	readonly email?: string | undefined;
	/** External account binding (§7.3.4); `mac_key` is base64url. */
	readonly eab?: { readonly key_id: string; readonly mac_key: string } | undefined;
}

/** An account with its key for signing. */
export interface AcmeAccount extends AcmeSigner {
	readonly accountUrl: string;
	/** The thumbprint of the account's key, which is part of each key authorization (§8.1). */
	readonly thumbprint: string;
}

/** Opens the account for an email address, and registers it if the store has none. Rejects with IssueError or StoreError. */
export async function openAccount(
	connection: AcmeConnection,
	store: Store,
	/** The path segment that identifies the server in store keys. */
	serverSegment: string,
	settings: AccountSettings,
	signal: AbortSignal,
): Promise<AcmeAccount> {
	const folder = accountFolder(serverSegment, settings);
	const storedAccount = await readStoredAccount(store, folder);
	if (storedAccount) return storedAccount;
	const lock = await store.lock(`acme_account_${serverSegment}_${settings.email ?? 'default'}`, signal);
	try {
		// Another process may have registered the account while this one waited for the lock.
		return (
			(await readStoredAccount(store, folder)) ??
			(await registerAccount(connection, store.fenced(lock), folder, settings, signal))
		);
	} finally {
		await lock.release();
	}
}

/** Deletes the account and its key from the store, for use when the server no longer knows the account. */
export async function forgetAccount(store: Store, serverSegment: string, settings: AccountSettings): Promise<void> {
	await store.remove(accountFolder(serverSegment, settings));
}

/** Returns the folder of the account in the store. Different external account bindings have different folders. */
function accountFolder(serverSegment: string, { email, eab }: AccountSettings): string {
	const bindingSuffix = eab ? `-${createHash('sha256').update(eab.key_id).digest('hex').slice(0, 12)}` : '';
	return `acme/${serverSegment}/accounts/${toKeySegment(email ?? 'default')}${bindingSuffix}`;
}

async function readStoredAccount(store: Store, folder: string): Promise<AcmeAccount | undefined> {
	const [text, pem] = await Promise.all([store.read(`${folder}/account.json`), store.read(`${folder}/account.key`)]);
	const key = pem && parsePrivateKey(pem);
	if (!text || !key || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return undefined;
	try {
		const { location } = JSON.parse(text.toString('utf8')) as { location?: unknown };
		return typeof location === 'string' ? accountOf(key, location) : undefined;
	} catch {
		return undefined;
	}
}

/**
 * Registers an account. Its key is stored first: if the process dies before the account is stored, the next process finds the
 * account on the server by its key.
 */
async function registerAccount(
	connection: AcmeConnection,
	store: Store,
	folder: string,
	settings: AccountSettings,
	signal: AbortSignal,
): Promise<AcmeAccount> {
	const storedKey = await store.read(`${folder}/account.key`);
	const key = (storedKey && parsePrivateKey(storedKey)) || (await makePrivateKey('p256'));
	await store.write(`${folder}/account.key`, privateKeyPem(key));
	const { newAccount, meta } = await connection.readDirectory(signal);
	if (meta?.externalAccountRequired && !settings.eab) {
		throw new IssueError(
			'issuer/account-required',
			'The server requires an external account binding; set `eab <key-id> <mac-key>`.',
		);
	}
	const payload = {
		termsOfServiceAgreed: true,
		...(settings.email ? { contact: [`mailto:${settings.email}`] } : {}),
		...(settings.eab ? { externalAccountBinding: createBinding(key, settings.eab, newAccount) } : {}),
	};
	const answer = await connection.post(newAccount, payload, { key }, signal);
	if (answer.location === undefined)
		throw new IssueError('issuer/refused', 'The server did not return an account URL.');
	const account = { location: answer.location, contact: payload.contact ?? [], status: answer.body?.status ?? 'valid' };
	await store.write(`${folder}/account.json`, `${JSON.stringify(account, undefined, '\t')}\n`);
	return accountOf(key, answer.location);
}

function accountOf(key: AcmeSigner['key'], accountUrl: string): AcmeAccount {
	return {
		key,
		accountUrl,
		thumbprint: createHash('sha256')
			.update(JSON.stringify(publicJwk(key)))
			.digest('base64url'),
	};
}

function createBinding(key: AcmeSigner['key'], eab: NonNullable<AccountSettings['eab']>, url: string): object {
	const secret = Buffer.from(eab.mac_key, 'base64url');
	const header = { alg: 'HS256', kid: eab.key_id, url };
	return JSON.parse(createJws(header, publicJwk(key), data => createHmac('sha256', secret).update(data).digest()));
}

/** Reports whether an error means that the server does not know the account. */
export function isUnknownAccount(error: unknown): boolean {
	return error instanceof AcmeProblem && error.type === 'accountDoesNotExist';
}
