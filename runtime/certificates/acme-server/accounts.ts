/** The accounts of an ACME server. They are identified by their keys and kept in the store. */
import { randomBytes } from 'node:crypto';
import type { Store } from '../../storage/store.ts';
import { AcmeRefusal } from './acme-refusal.ts';
import { jwkThumbprint, type PublicJwk, publicJwk } from './signed-request.ts';

/** An ACME account (RFC 8555 §7.1.2). */
export interface Account {
	/** The last segment of the account's URL. */
	readonly id: string;
	readonly jwk: PublicJwk;
	readonly contact: readonly string[];
	readonly status: 'valid' | 'deactivated';
}

/** Maximum number of accounts that can be created within {@link NEW_ACCOUNT_WINDOW_MS} milliseconds. */
const MAX_NEW_ACCOUNTS = 100;
const NEW_ACCOUNT_WINDOW_MS = 60_000;

/** The accounts of one authority. Each call reads the store again, because other processes may have changed an account. */
export class Accounts {
	readonly #store: Store;
	readonly #folder: string;
	#windowStart = 0;
	#newAccountCount = 0;

	constructor(store: Store, authority: string) {
		this.#store = store;
		this.#folder = `acme_server/${authority}`;
	}

	async findById(id: string): Promise<Account | undefined> {
		if (!/^[A-Za-z0-9_-]{8,64}$/.test(id)) return undefined;
		const accountJson = await this.#store.read(`${this.#folder}/accounts/${id}.json`);
		return accountJson && parseAccount(id, accountJson.toString('utf8'));
	}

	/** Returns the account that currently has this key, or undefined. */
	async findByKey(jwk: PublicJwk): Promise<Account | undefined> {
		const id = await this.#store.read(`${this.#folder}/keys/${jwkThumbprint(jwk)}`);
		const account = id && (await this.findById(id.toString('utf8')));
		return account && jwkThumbprint(account.jwk) === jwkThumbprint(jwk) ? account : undefined;
	}

	/** Creates an account. Throws {@link AcmeRefusal} if too many accounts have been created within the last minute. */
	async createAccount(jwk: PublicJwk, contact: readonly string[]): Promise<Account> {
		const now = Date.now();
		if (now - this.#windowStart > NEW_ACCOUNT_WINDOW_MS) {
			this.#windowStart = now;
			this.#newAccountCount = 0;
		}
		if (++this.#newAccountCount > MAX_NEW_ACCOUNTS)
			throw new AcmeRefusal('rateLimited', 429, 'Too many accounts are being created.');
		const thumbprint = jwkThumbprint(jwk);
		const id = thumbprint.slice(0, 22);
		const idHolder = await this.findById(id);
		// An account's ID is derived from its first key. If that key has been replaced, the ID is taken, and the new account gets a
		// random one.
		const isIdTaken = idHolder !== undefined && jwkThumbprint(idHolder.jwk) !== thumbprint;
		return this.write({ id: isIdTaken ? randomBytes(16).toString('base64url') : id, jwk, contact, status: 'valid' });
	}

	/** Writes a new or changed account to the store, and returns it. */
	async write(account: Account): Promise<Account> {
		const { id, jwk } = account;
		await this.#store.write(`${this.#folder}/accounts/${id}.json`, JSON.stringify(account));
		await this.#store.write(`${this.#folder}/keys/${jwkThumbprint(jwk)}`, id);
		return account;
	}

	async replaceKey(account: Account, jwk: PublicJwk): Promise<Account> {
		const changedAccount = await this.write({ ...account, jwk });
		await this.#store.remove(`${this.#folder}/keys/${jwkThumbprint(account.jwk)}`);
		return changedAccount;
	}
}

function parseAccount(id: string, text: string): Account {
	const { jwk, contact, status } = JSON.parse(text) as Account;
	return { id, jwk: publicJwk(jwk), contact, status };
}
