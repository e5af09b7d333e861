/** Removes expired certificates and stale data from the store. */
import { X509Certificate } from 'node:crypto';
import type { Settings } from '../../compiler/document/document.ts';
import { type Store, toKeySegment } from '../storage/store.ts';
import { CERTIFICATES_FOLDER } from './certificate-records.ts';
import type { ManagerLog } from './manager-log.ts';
import { CHALLENGES_FOLDER } from './shared-challenges.ts';
import { OCSP_RESPONSES_FOLDER } from './status-stapler.ts';

/** Default milliseconds between two cleanings. */
const DEFAULT_INTERVAL_MS = 86_400_000;
/** Milliseconds for which certificates are kept after their expiry. */
const EXPIRED_RETENTION_MS: number = 14 * 86_400_000;
/** Milliseconds for which OCSP responses are kept after they were last refreshed. */
const STATUS_RETENTION_MS: number = 14 * 86_400_000;
/** Milliseconds for which challenges are kept that no process has withdrawn. */
const CHALLENGE_RETENTION_MS: number = 86_400_000;
/** The store key of the time of the last cleaning, shared by all processes. */
const LAST_CLEANING_KEY = 'last_clean.json';

/** Cleans the store periodically. */
export class StoreCleaner {
	readonly #log: ManagerLog;
	readonly #now: () => number;
	readonly #store: () => Store;
	#intervalMs = DEFAULT_INTERVAL_MS;
	#nextCleaningAt = 0;
	#isClosed = false;

	constructor({
		log,
		now,
		store,
	}: {
		readonly log: ManagerLog;
		readonly now: () => number;
		readonly store: () => Store;
	}) {
		this.#log = log;
		this.#now = now;
		this.#store = store;
	}

	/** Applies `storage_clean_interval` of the active configuration. */
	configure(settings: Settings): void {
		this.#intervalMs = (settings.storage_clean_interval as number | undefined) ?? DEFAULT_INTERVAL_MS;
	}

	/** Cleans the store if the interval has elapsed. Keeps the certificates for `neededNames`, even if they have expired. */
	cleanIfDue(neededNames: ReadonlySet<string>): void {
		const now = this.#now();
		if (this.#isClosed || this.#intervalMs === 0 || now < this.#nextCleaningAt) return;
		// The first cleaning is deferred, to keep the start fast.
		const isFirst = this.#nextCleaningAt === 0;
		this.#nextCleaningAt = now + (isFirst ? Math.min(600_000, this.#intervalMs) : this.#intervalMs);
		if (isFirst) return;
		void this.clean(neededNames).catch(error => {
			const cause = error instanceof Error ? error.message : String(error);
			this.#log('warn', 'tls.cache', 'the store could not be cleaned', { cause });
		});
	}

	/** Cleans now, unless another process is cleaning or has recently cleaned. Rejects with StoreError. */
	async clean(neededNames: ReadonlySet<string>): Promise<void> {
		const store = this.#store();
		const lock = await store.tryLock('storage_clean');
		if (!lock) return;
		try {
			const lastCleaning = await store.read(LAST_CLEANING_KEY);
			const cleanedAt =
				lastCleaning === undefined ? Number.NaN : Date.parse(JSON.parse(lastCleaning.toString('utf8')).cleaned_at);
			if (this.#now() - cleanedAt < this.#intervalMs) return;
			const removedCount =
				(await this.#cleanCertificates(store, neededNames)) +
				(await this.#cleanFolder(store, OCSP_RESPONSES_FOLDER, STATUS_RETENTION_MS)) +
				(await this.#cleanFolder(store, CHALLENGES_FOLDER, CHALLENGE_RETENTION_MS));
			await store.write(LAST_CLEANING_KEY, JSON.stringify({ cleaned_at: new Date(this.#now()).toISOString() }));
			if (removedCount > 0) this.#log('info', 'tls.cache', 'store cleaned', { removed: removedCount });
		} catch (error) {
			if (!(error instanceof SyntaxError)) throw error;
			await store.remove(LAST_CLEANING_KEY);
		} finally {
			await lock.release();
		}
	}

	/** Prevents further cleanings. */
	close(): void {
		this.#isClosed = true;
	}

	async #cleanCertificates(store: Store, neededNames: ReadonlySet<string>): Promise<number> {
		const keptSegments = new Set([...neededNames].map(toKeySegment));
		let removedCount = 0;
		for (const key of await store.list(CERTIFICATES_FOLDER)) {
			const [, issuer, name] = key.split('/');
			if (!key.endsWith('.crt') || issuer === undefined || name === undefined || keptSegments.has(name)) continue;
			const chain = await store.read(key);
			if (!chain || !isLongExpired(chain, this.#now())) continue;
			await store.remove(`${CERTIFICATES_FOLDER}/${issuer}/${name}`);
			removedCount++;
		}
		return removedCount;
	}

	/** Removes the values in a folder that were written more than `retentionMs` milliseconds ago. Returns their number. */
	async #cleanFolder(store: Store, folder: string, retentionMs: number): Promise<number> {
		let removedCount = 0;
		for (const key of await store.list(folder)) {
			const entry = await store.stat(key);
			if (!entry || this.#now() - entry.modified < retentionMs) continue;
			await store.remove(key);
			removedCount++;
		}
		return removedCount;
	}
}

function isLongExpired(chain: Buffer, now: number): boolean {
	try {
		return now - new X509Certificate(chain).validToDate.getTime() > EXPIRED_RETENTION_MS;
	} catch {
		return false;
	}
}
