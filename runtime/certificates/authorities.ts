/**
 * The internal CAs. They are opened once and renewed in time. If the store is a folder that is not writable, they exist only in
 * memory.
 */
import type { PkiSettings } from '../../compiler/modules/options/pki.ts';
import { createMemoryStore } from '../storage/memory-store.ts';
import { type Store, StoreError } from '../storage/store.ts';
import { type Authority, AuthorityError, authorityKey, openAuthority } from './authority.ts';
import { type AuthorityPlan, authorityPlan } from './authority-settings.ts';
import type { ManagerLog } from './manager-log.ts';

interface OpenAuthority {
	/** The settings with which the CA was opened, as JSON. */
	readonly settings: string;
	readonly plan: AuthorityPlan;
	authority: Authority | undefined;
	/** Time of the last maintenance, in milliseconds since the epoch. */
	maintainedAt: number;
}

/** The internal CAs by ID. */
export class Authorities {
	readonly #log: ManagerLog;
	readonly #now: () => number;
	readonly #openAuthorities = new Map<string, OpenAuthority>();
	readonly #opening = new Map<string, Promise<OpenAuthority>>();
	#pki: PkiSettings = {};
	#store: Store | undefined;

	constructor(log: ManagerLog, now: () => number) {
		this.#log = log;
		this.#now = now;
	}

	/**
	 * Opens the CAs that a document uses. Rejects with AuthorityError if files named by the document are invalid. Failures of
	 * the store are logged and retried when a certificate is needed.
	 */
	async use(ids: readonly string[], pki: PkiSettings, store: Store): Promise<void> {
		this.#pki = pki;
		this.#store = store;
		for (const id of ids) {
			const kept = await this.#open(id);
			if (!kept.plan.root && !kept.plan.intermediate) continue;
			await openAuthority(kept.plan, store, this.#now);
			// The authority's files may have changed since it was opened.
			await this.#maintain(kept);
		}
	}

	/** Returns the CA, or undefined while it cannot sign. */
	async get(id: string): Promise<Authority | undefined> {
		const kept = await this.#open(id);
		const now = this.#now();
		const due = now - kept.maintainedAt >= kept.plan.maintenanceInterval;
		if (!kept.authority || due) await this.#maintain(kept);
		return kept.authority;
	}

	/** Maintains the CAs that are due. Returns the milliseconds until the next CA is due. */
	async maintain(): Promise<number> {
		let next = Number.POSITIVE_INFINITY;
		for (const kept of this.#openAuthorities.values()) {
			const wait = kept.maintainedAt + kept.plan.maintenanceInterval - this.#now();
			if (wait <= 0) await this.#maintain(kept);
			next = Math.min(next, wait <= 0 ? kept.plan.maintenanceInterval : wait);
		}
		return next;
	}

	#open(id: string): Promise<OpenAuthority> {
		const wanted = this.#pki.authorities?.[id] ?? {};
		const settings = JSON.stringify(wanted);
		const kept = this.#openAuthorities.get(id);
		if (kept?.settings === settings) return Promise.resolve(kept);
		const key = `${id} ${settings}`;
		let opening = this.#opening.get(key);
		if (!opening) {
			const made: OpenAuthority = {
				settings,
				plan: authorityPlan(id, wanted, this.#now()),
				authority: undefined,
				maintainedAt: 0,
			};
			opening = this.#maintain(made).then(() => {
				this.#openAuthorities.set(id, made);
				this.#opening.delete(key);
				return made;
			});
			this.#opening.set(key, opening);
		}
		return opening;
	}

	async #maintain(kept: OpenAuthority): Promise<void> {
		kept.maintainedAt = this.#now();
		const { id } = kept.plan;
		try {
			if (kept.authority) {
				if (await kept.authority.maintain()) this.#tell(kept.authority, 'internal authority renewed');
				return;
			}
			kept.authority = await openAuthority(kept.plan, this.#store!, this.#now);
			this.#tell(kept.authority, 'internal authority opened');
		} catch (error) {
			if (!(error instanceof StoreError) && !(error instanceof AuthorityError)) throw error;
			this.#log('error', 'pki', `the authority \`${id}\` cannot be opened or renewed`, { cause: error.message });
			// With a store that several machines share, a CA in memory would differ from theirs, so none is created. The next use
			// tries the store again.
			if (kept.authority || error instanceof AuthorityError || this.#store!.isRemote) return;
			kept.authority = await openAuthority(kept.plan, createMemoryStore(), this.#now);
			this.#log(
				'warn',
				'pki',
				`the authority \`${id}\` is kept in memory only and will be lost when this process exits`,
			);
		}
	}

	#tell(authority: Authority, message: string): void {
		this.#log('info', 'pki', message, {
			ca: authority.id,
			root: authority.rootName,
			store: this.#store!.description,
			root_file: authorityKey(authority.id, 'root.crt'),
			intermediate_expires: new Date(authority.intermediateNotAfter).toISOString(),
		});
	}
}
