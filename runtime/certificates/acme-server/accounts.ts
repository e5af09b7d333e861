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

/** Maximum new accounts in {@link NEW_WITHIN} milliseconds. */
const MAX_NEW = 100;
const NEW_WITHIN = 60_000;

/** The accounts of one authority. They are read from the store each time, because other processes may change them in the store. */
export class Accounts {
	readonly #store: Store;
	readonly #folder: string;
	#windowBegan = 0;
	#newCount = 0;

	constructor(store: Store, authority: string) {
		this.#store = store;
		this.#folder = `acme_server/${authority}`;
	}

	/** Returns the account with an ID, or undefined. */
	async byId(id: string): Promise<Account | undefined> {
		if (!/^[A-Za-z0-9_-]{8,64}$/.test(id)) return undefined;
		const text = await this.#store.read(`${this.#folder}/accounts/${id}.json`);
		return text && accountOf(id, text.toString('utf8'));
	}

	/** Returns the account of a key; undefined if there is none, or if its key has been replaced by another one. */
	async byKey(jwk: PublicJwk): Promise<Account | undefined> {
		const id = await this.#store.read(`${this.#folder}/keys/${jwkThumbprint(jwk)}`);
		const account = id && (await this.byId(id.toString('utf8')));
		return account && jwkThumbprint(account.jwk) === jwkThumbprint(jwk) ? account : undefined;
	}

	/** Creates an account. Throws {@link AcmeRefusal} if too many are being created. */
	async create(jwk: PublicJwk, contact: readonly string[]): Promise<Account> {
		const now = Date.now();
		if (now - this.#windowBegan > NEW_WITHIN) {
			this.#windowBegan = now;
			this.#newCount = 0;
		}
		if (++this.#newCount > MAX_NEW) throw new AcmeRefusal('rateLimited', 429, 'Too many accounts are being created.');
		const print = jwkThumbprint(jwk);
		const id = print.slice(0, 22);
		const idHolder = await this.byId(id);
		// An account's ID is derived from its first key. If that key has been replaced, the ID is taken, and the new account gets a
		// random one.
		const isIdTaken = idHolder !== undefined && jwkThumbprint(idHolder.jwk) !== print;
		return this.write({ id: isIdTaken ? randomBytes(16).toString('base64url') : id, jwk, contact, status: 'valid' });
	}

	/** Writes a changed account. */
	async write(account: Account): Promise<Account> {
		const { id, jwk } = account;
		await this.#store.write(`${this.#folder}/accounts/${id}.json`, JSON.stringify(account));
		await this.#store.write(`${this.#folder}/keys/${jwkThumbprint(jwk)}`, id);
		return account;
	}

	/** Replaces the key of an account. */
	async replaceKey(account: Account, jwk: PublicJwk): Promise<Account> {
		const changed = await this.write({ ...account, jwk });
		await this.#store.remove(`${this.#folder}/keys/${jwkThumbprint(account.jwk)}`);
		return changed;
	}
}

function accountOf(id: string, text: string): Account {
	const { jwk, contact, status } = JSON.parse(text) as Account;
	return { id, jwk: publicJwk(jwk), contact, status };
}
