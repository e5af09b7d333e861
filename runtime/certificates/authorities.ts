/**
 * The internal CAs. Each is opened once, and its certificates are renewed before they expire. If the store is a folder that is
 * not writable, the CAs exist only in memory.
 */
import type { PkiSettings } from '../../compiler/modules/options/pki.ts';
import { createMemoryStore } from '../storage/memory-store.ts';
import { type Store, StoreError } from '../storage/store.ts';
import { type Authority, AuthorityError, authorityKey, openAuthority } from './authority.ts';
import { type AuthorityPlan, authorityPlan } from './authority-settings.ts';
import type { ManagerLog } from './manager-log.ts';

interface OpenAuthority {
	readonly plan: AuthorityPlan;
	authority: Authority | undefined;
	/** Time of the last maintenance, in milliseconds since the epoch. */
	maintainedAt: number;
}

/** The internal CAs by ID. */
export class Authorities {
	readonly #log: ManagerLog;
	readonly #now: () => number;
	/** By {@link settingsKey}: until a load is complete, a CA may be open with the settings of both configurations. */
	readonly #openAuthorities = new Map<string, OpenAuthority>();
	/** CAs that are being opened, by {@link settingsKey}. */
	readonly #pendingOpens = new Map<string, Promise<OpenAuthority>>();
	/** The settings of the configuration that was prepared last, or of the active one. */
	#pki: PkiSettings = {};
	/** The settings of the active configuration. */
	#activePki: PkiSettings = {};
	#store: Store | undefined;

	constructor(log: ManagerLog, now: () => number) {
		this.#log = log;
		this.#now = now;
	}

	/** Opens the CAs that a configuration uses, like {@link openAll}, with the configuration's settings. */
	prepare(ids: readonly string[], pki: PkiSettings, store: Store): Promise<void> {
		this.#pki = pki;
		return this.openAll(ids, store);
	}

	/** Uses the settings of the active configuration from now on. */
	activate(pki: PkiSettings): void {
		this.#activePki = pki;
		this.discard();
	}

	/** Returns to the settings of the active configuration, and to the CAs that were opened with them. */
	discard(): void {
		this.#pki = this.#activePki;
		for (const [key, { plan }] of this.#openAuthorities)
			if (key !== this.#settingsKey(plan.id)) this.#openAuthorities.delete(key);
	}

	/**
	 * Opens CAs. Rejects with AuthorityError if files named by the configuration are invalid. Failures of the store are logged and
	 * retried when a certificate is needed.
	 */
	async openAll(ids: readonly string[], store: Store): Promise<void> {
		this.#store = store;
		for (const id of ids) {
			const entry = await this.#openEntry(id);
			if (!entry.plan.root && !entry.plan.intermediate) continue;
			await openAuthority(entry.plan, store, this.#now);
			// The authority's files may have changed since it was opened.
			await this.#maintainEntry(entry);
		}
	}

	/** Returns the CA, or undefined while it cannot sign. */
	async get(id: string): Promise<Authority | undefined> {
		const entry = await this.#openEntry(id);
		const now = this.#now();
		const isDue = now - entry.maintainedAt >= entry.plan.maintenanceIntervalMs;
		if (!entry.authority || isDue) await this.#maintainEntry(entry);
		return entry.authority;
	}

	/** Maintains the CAs whose maintenance interval has elapsed. Returns the milliseconds until the next CA needs maintenance. */
	async maintainDue(): Promise<number> {
		let nextWaitMs = Number.POSITIVE_INFINITY;
		for (const entry of this.#openAuthorities.values()) {
			const waitMs = entry.maintainedAt + entry.plan.maintenanceIntervalMs - this.#now();
			if (waitMs <= 0) await this.#maintainEntry(entry);
			nextWaitMs = Math.min(nextWaitMs, waitMs <= 0 ? entry.plan.maintenanceIntervalMs : waitMs);
		}
		return nextWaitMs;
	}

	/** Returns a text made from the ID of a CA and its current settings. */
	#settingsKey(id: string): string {
		return `${id} ${JSON.stringify(this.#pki.authorities?.[id] ?? {})}`;
	}

	#openEntry(id: string): Promise<OpenAuthority> {
		const key = this.#settingsKey(id);
		const existingAuthority = this.#openAuthorities.get(key);
		if (existingAuthority) return Promise.resolve(existingAuthority);
		let pendingOpen = this.#pendingOpens.get(key);
		if (!pendingOpen) {
			const entry: OpenAuthority = {
				plan: authorityPlan(id, this.#pki.authorities?.[id] ?? {}, this.#now()),
				authority: undefined,
				maintainedAt: 0,
			};
			pendingOpen = this.#maintainEntry(entry).then(() => {
				this.#openAuthorities.set(key, entry);
				this.#pendingOpens.delete(key);
				return entry;
			});
			this.#pendingOpens.set(key, pendingOpen);
		}
		return pendingOpen;
	}

	async #maintainEntry(entry: OpenAuthority): Promise<void> {
		entry.maintainedAt = this.#now();
		const { id } = entry.plan;
		try {
			if (entry.authority) {
				if (await entry.authority.maintain()) this.#logAuthority(entry.authority, 'internal authority renewed');
				return;
			}
			entry.authority = await openAuthority(entry.plan, this.#store!, this.#now);
			this.#logAuthority(entry.authority, 'internal authority opened');
		} catch (error) {
			if (!(error instanceof StoreError) && !(error instanceof AuthorityError)) throw error;
			const store = this.#store!.description;
			this.#log('error', 'pki', `the authority \`${id}\` cannot be opened or renewed`, { cause: error.message, store });
			// If several machines share the store, a CA in memory would differ from the other machines', so none is created. The next
			// use tries the store again.
			if (entry.authority || error instanceof AuthorityError || this.#store!.isRemote) return;
			entry.authority = await openAuthority(entry.plan, createMemoryStore(), this.#now);
			this.#log(
				'warn',
				'pki',
				`the authority \`${id}\` is kept in memory only and will be lost when this process exits`,
				{
					store,
					hint: "Let the server's user write to the store, and restart the server; clients must then trust the new root.",
				},
			);
		}
	}

	#logAuthority(authority: Authority, message: string): void {
		this.#log('info', 'pki', message, {
			ca: authority.id,
			root: authority.rootName,
			store: this.#store!.description,
			root_file: authorityKey(authority.id, 'root.crt'),
			intermediate_expires: new Date(authority.intermediateNotAfter).toISOString(),
		});
	}
}
