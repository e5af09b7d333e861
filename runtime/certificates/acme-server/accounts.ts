/** Accounts of an ACME server: identified by their keys, kept in the store. */
import { randomBytes } from 'node:crypto';
import type { Store } from '../../storage/store.ts';
import { AcmeRefusal } from './acme-refusal.ts';
import { jwkThumbprint, type PublicJwk, publicJwk } from './signed-request.ts';

/** An ACME account (RFC 8555 §7.1.2). */
export interface Account {
	/** The last segment of its URL. */
	readonly id: string;
	readonly jwk: PublicJwk;
	readonly contact: readonly string[];
	readonly status: 'valid' | 'deactivated';
}

/** Maximum new accounts in {@link NEW_WITHIN} milliseconds. */
const MAX_NEW = 100;
const NEW_WITHIN = 60_000;

/** The accounts of one authority. They are read each time, because other processes with the same store may change them. */
export class Accounts {
	readonly #store: Store;
	readonly #folder: string;
	#windowBegan = 0;
	#new = 0;

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

	/** Returns the account of a key. A replaced key has no account. */
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
			this.#new = 0;
		}
		if (++this.#new > MAX_NEW) throw new AcmeRefusal('rateLimited', 429, 'Too many accounts are being created.');
		const print = jwkThumbprint(jwk);
		const id = print.slice(0, 22);
		const holder = await this.byId(id);
		// The ID of an account whose key was replaced still belongs to that account.
		const taken = holder !== undefined && jwkThumbprint(holder.jwk) !== print;
		return this.write({ id: taken ? randomBytes(16).toString('base64url') : id, jwk, contact, status: 'valid' });
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
