/** Removes expired certificates and stale data from the store. */
import { X509Certificate } from 'node:crypto';
import type { Settings } from '../../compiler/document/document.ts';
import { type Store, toKeySegment } from '../storage/store.ts';
import { CERTIFICATES_FOLDER } from './certificate-records.ts';
import type { ManagerLog } from './manager-log.ts';
import { CHALLENGES_FOLDER } from './shared-challenges.ts';
import { OCSP_RESPONSES_FOLDER } from './status-stapler.ts';

/** Default milliseconds between two cleanings. */
const CLEAN_INTERVAL = 86_400_000;
/** Milliseconds for which certificates are kept after their expiry. */
const KEPT_EXPIRED: number = 14 * 86_400_000;
/** Milliseconds for which OCSP responses are kept after they were last refreshed. */
const KEPT_STATUS: number = 14 * 86_400_000;
/** Milliseconds for which abandoned challenges are kept. */
const KEPT_CHALLENGE: number = 86_400_000;
/** The store key of the time of the last cleaning, shared by all processes. */
const LAST_CLEANING = 'last_clean.json';

/** Cleans the store periodically. */
export class StoreCleaner {
	readonly #log: ManagerLog;
	readonly #now: () => number;
	readonly #store: () => Store;
	#interval = CLEAN_INTERVAL;
	#nextAt = 0;
	#closed = false;

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

	/** Applies `storage_clean_interval` of the active document. */
	configure(settings: Settings): void {
		this.#interval = (settings.storage_clean_interval as number | undefined) ?? CLEAN_INTERVAL;
	}

	/** Cleans the store if that is due. Keeps certificates for the names in `wanted`. */
	check(wanted: ReadonlySet<string>): void {
		const now = this.#now();
		if (this.#closed || this.#interval === 0 || now < this.#nextAt) return;
		// The first cleaning is deferred, to keep the start fast.
		const isFirst = this.#nextAt === 0;
		this.#nextAt = now + (isFirst ? Math.min(600_000, this.#interval) : this.#interval);
		if (isFirst) return;
		void this.clean(wanted).catch(error => {
			const cause = error instanceof Error ? error.message : String(error);
			this.#log('warn', 'tls.cache', 'the store could not be cleaned', { cause });
		});
	}

	/** Cleans now, unless another process is cleaning or has recently cleaned. Rejects with StoreError. */
	async clean(wanted: ReadonlySet<string>): Promise<void> {
		const store = this.#store();
		const lock = await store.tryLock('storage_clean');
		if (!lock) return;
		try {
			const last = await store.read(LAST_CLEANING);
			const at = last === undefined ? Number.NaN : Date.parse(JSON.parse(last.toString('utf8')).cleaned_at);
			if (this.#now() - at < this.#interval) return;
			const removedCount =
				(await this.#cleanCertificates(store, wanted)) +
				(await this.#cleanOld(store, OCSP_RESPONSES_FOLDER, KEPT_STATUS)) +
				(await this.#cleanOld(store, CHALLENGES_FOLDER, KEPT_CHALLENGE));
			await store.write(LAST_CLEANING, JSON.stringify({ cleaned_at: new Date(this.#now()).toISOString() }));
			if (removedCount > 0) this.#log('info', 'tls.cache', 'store cleaned', { removed: removedCount });
		} catch (error) {
			if (!(error instanceof SyntaxError)) throw error;
			await store.remove(LAST_CLEANING);
		} finally {
			await lock.release();
		}
	}

	/** Prevents further cleanings. */
	close(): void {
		this.#closed = true;
	}

	async #cleanCertificates(store: Store, wanted: ReadonlySet<string>): Promise<number> {
		const keptSegments = new Set([...wanted].map(toKeySegment));
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

	/** Removes the values below a folder that were last written more than `kept` milliseconds ago. */
	async #cleanOld(store: Store, below: string, kept: number): Promise<number> {
		let removedCount = 0;
		for (const key of await store.list(below)) {
			const found = await store.stat(key);
			if (!found || this.#now() - found.modified < kept) continue;
			await store.remove(key);
			removedCount++;
		}
		return removedCount;
	}
}

function isLongExpired(chain: Buffer, now: number): boolean {
	try {
		return now - new X509Certificate(chain).validToDate.getTime() > KEPT_EXPIRED;
	} catch {
		return false;
	}
}
