/** The internal authorities of the running document: opened once, looked after, kept in memory where the store cannot be written. */
import type { PkiSettings } from '../../compiler/options/pki.ts';
import { memoryStore } from '../storage/memory-store.ts';
import { type Store, StoreError } from '../storage/store.ts';
import { type Authority, AuthorityError, authorityKey, openAuthority } from './authority.ts';
import { type AuthorityPlan, authorityPlan } from './authority-settings.ts';
import type { ManagerLog } from './manager-log.ts';

interface Kept {
	/** JSON of the settings that it was opened with. */
	readonly settings: string;
	readonly plan: AuthorityPlan;
	authority: Authority | undefined;
	/** When it was last looked after. */
	maintainedAt: number;
}

/** The authorities by id. */
export class Authorities {
	readonly #log: ManagerLog;
	readonly #now: () => number;
	readonly #kept = new Map<string, Kept>();
	readonly #opening = new Map<string, Promise<Kept>>();
	#pki: PkiSettings = {};
	#store: Store | undefined;

	constructor(log: ManagerLog, now: () => number) {
		this.#log = log;
		this.#now = now;
	}

	/**
	 * Opens the authorities that a document uses. Rejects with AuthorityError when files that the document names cannot
	 * serve; what is wrong with the store is logged, and tried again when a certificate is wanted.
	 */
	async use(ids: readonly string[], pki: PkiSettings, store: Store): Promise<void> {
		this.#pki = pki;
		this.#store = store;
		for (const id of ids) {
			const kept = await this.#open(id);
			if (!kept.plan.root && !kept.plan.intermediate) continue;
			await openAuthority(kept.plan, store, this.#now);
			// Its files may hold something else than when it was opened.
			await this.#maintain(kept);
		}
	}

	/** The authority, able to sign; undefined while it is not. Never rejects. */
	async get(id: string): Promise<Authority | undefined> {
		const kept = await this.#open(id);
		const now = this.#now();
		const due = now - kept.maintainedAt >= kept.plan.maintenanceInterval;
		if (!kept.authority || due) await this.#maintain(kept);
		return kept.authority;
	}

	/** Looks after those that are due; gives milliseconds until the next is. */
	async maintain(): Promise<number> {
		let next = Number.POSITIVE_INFINITY;
		for (const kept of this.#kept.values()) {
			const wait = kept.maintainedAt + kept.plan.maintenanceInterval - this.#now();
			if (wait <= 0) await this.#maintain(kept);
			next = Math.min(next, wait <= 0 ? kept.plan.maintenanceInterval : wait);
		}
		return next;
	}

	#open(id: string): Promise<Kept> {
		const wanted = this.#pki.authorities?.[id] ?? {};
		const settings = JSON.stringify(wanted);
		const kept = this.#kept.get(id);
		if (kept?.settings === settings) return Promise.resolve(kept);
		const key = `${id} ${settings}`;
		let opening = this.#opening.get(key);
		if (!opening) {
			const made: Kept = {
				settings,
				plan: authorityPlan(id, wanted, this.#now()),
				authority: undefined,
				maintainedAt: 0,
			};
			opening = this.#maintain(made).then(() => {
				this.#kept.set(id, made);
				this.#opening.delete(key);
				return made;
			});
			this.#opening.set(key, opening);
		}
		return opening;
	}

	async #maintain(kept: Kept): Promise<void> {
		kept.maintainedAt = this.#now();
		const { id } = kept.plan;
		try {
			if (kept.authority) {
				if (await kept.authority.maintain()) this.#tell(kept.authority, 'an internal authority was renewed');
				return;
			}
			kept.authority = await openAuthority(kept.plan, this.#store!, this.#now);
			this.#tell(kept.authority, 'an internal authority is open');
		} catch (error) {
			if (!(error instanceof StoreError) && !(error instanceof AuthorityError)) throw error;
			this.#log('error', 'pki', `the authority \`${id}\` cannot be opened or renewed`, { cause: error.message });
			if (kept.authority || error instanceof AuthorityError) return;
			kept.authority = await openAuthority(kept.plan, memoryStore(), this.#now);
			this.#log('warn', 'pki', `the authority \`${id}\` is kept in memory and ends with this process`);
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
