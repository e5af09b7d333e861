/** Obtains and renews: takes certificates from the store, orders those that are due, and gives each to the threads. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Store, StoreError } from '../storage/store.ts';
import type { CertificateSink, PublishedCertificate } from '../tls/certificate-feed.ts';
import { LabelledCounter } from './certificate-metrics.ts';
import { type CertificateRecord, readRecord, recordOf, writeRecord } from './certificate-records.ts';
import { type Issued, IssueError, type Issuer } from './issuer.ts';
import type { ManagedCertificate } from './managed-certificate.ts';
import type { ManagerLog } from './manager-log.ts';
import { backOff } from './renewal-times.ts';
import { forEachOf, WorkQueue } from './work-queue.ts';

/** Orders that are under way at one time. */
const MOST_ORDERS = 24;
/** Certificates read from the store at one time. */
const MOST_READS = 32;
/** Certificates in one message to the threads: parsing them must not stall a thread for long. */
const PUBLISHED_AT_ONCE = 250;
/** Milliseconds before something is tried again that only another configuration can help. */
const HOPELESS = 86_400_000;
/** Milliseconds before an advice that could not be had is asked for again, and before one is asked for at all. */
const ADVICE_RETRY = 3_600_000;

/** What the keeper finds around it. */
export interface KeeperSurroundings {
	readonly sink: CertificateSink;
	readonly log: ManagerLog;
	readonly now: () => number;
	/** The store, which is there once a document has been prepared. */
	readonly store: () => Store;
	/** Rejects with StoreError when what would be ordered could not be kept. */
	readonly checkStore: () => Promise<void>;
	/** `renewal_window_ratio` of the process. */
	readonly renewalRatio: () => number | undefined;
	/** Called when something has changed that the next look at all certificates should not wait for. */
	readonly wake: () => void;
}

/** Looks after certificates one by one; which and when is the manager's. */
export class CertificateKeeper {
	/** Attempts by issuer and result. */
	readonly attempts: LabelledCounter = new LabelledCounter();
	readonly #around: KeeperSurroundings;
	readonly #orders = new WorkQueue(MOST_ORDERS);
	readonly #writes = new WorkQueue(8);
	/** Authorities for which `svc trust` has been named. */
	readonly #suggested = new Set<string>();

	constructor(surroundings: KeeperSurroundings) {
		this.#around = surroundings;
	}

	/** Takes from the store, and from issuers that answer at once, what the names should have; publishes it. Never rejects. */
	async load(entries: readonly ManagedCertificate[]): Promise<void> {
		let batch: PublishedCertificate[] = [];
		const publish = (): void => {
			if (batch.length > 0) this.#around.sink.publish(batch);
			batch = [];
		};
		await forEachOf(entries, MOST_READS, async entry => {
			await this.#loadOne(entry);
			const publication = entry.publication;
			if (!publication || entry.gone || entry.published) return;
			entry.published = true;
			batch.push(publication);
			if (batch.length >= PUBLISHED_AT_ONCE) publish();
		});
		publish();
	}

	/** Begins an order; the entry's `work` tells when it is over. Never rejects. */
	begin(entry: ManagedCertificate): Promise<void> {
		if (entry.work) return entry.work.done;
		const abort = new AbortController();
		const done = this.#orders
			.run(() => this.#obtain(entry, abort.signal))
			.catch(error => {
				// A bug must not end the process that serves all other sites.
				this.#around.log('error', 'tls.obtain', 'obtaining a certificate failed unexpectedly', {
					name: entry.name,
					cause: error instanceof Error ? error.message : String(error),
				});
				this.#failed(entry, [], undefined);
			})
			.finally(() => {
				entry.work = undefined;
				this.#around.wake();
			});
		entry.work = { done, abort };
		return done;
	}

	/** Asks the issuer when to renew. Never rejects. */
	async advise(entry: ManagedCertificate): Promise<void> {
		const { issuer, record } = entry;
		entry.adviseAt = this.#around.now() + ADVICE_RETRY;
		if (!issuer?.advise || !record) {
			entry.adviseAt = Number.POSITIVE_INFINITY;
			return;
		}
		try {
			const advice = await issuer.advise(record.chain);
			if (entry.record !== record) return;
			if (!advice) {
				entry.adviseAt = Number.POSITIVE_INFINITY;
				return;
			}
			entry.adviseAt = advice.askAgainAt;
			if (advice.renewAt < entry.renewAt) {
				this.#around.log('info', 'tls.renew', 'the issuer advises to renew earlier', {
					name: entry.name,
					renew_at: new Date(advice.renewAt).toISOString(),
				});
			}
			// The advice is what the issuer's capacity goes by; the end of the life is still the end.
			entry.renewAt = Math.min(advice.renewAt, record.notAfter - (record.notAfter - record.notBefore) / 20);
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#around.log('debug', 'tls.renew', 'the issuer gave no advice when to renew', { name: entry.name, cause });
		}
	}

	/** Gives the threads what an entry has now. */
	publish(entry: ManagedCertificate): void {
		const publication = entry.publication;
		if (!publication || entry.gone) return;
		entry.published = true;
		this.#around.sink.publish([publication]);
	}

	async #loadOne(entry: ManagedCertificate): Promise<void> {
		const { now } = this.#around;
		try {
			const stored = await this.#stored(entry);
			if (stored) entry.take(stored, this.#ratioOf(entry, stored));
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#around.log('error', 'tls.cache', 'a certificate cannot be read from the store', {
				name: entry.name,
				cause: error.message,
			});
		}
		const [first] = entry.policy.issuers;
		if (first?.immediate && (!entry.record || now() >= entry.renewAt)) {
			await this.#obtain(entry, AbortSignal.timeout(60_000));
		}
		entry.loaded = true;
	}

	/** The certificate that an entry has in the store: of the issuer that is preferred, unless it has expired. */
	async #stored(entry: ManagedCertificate): Promise<CertificateRecord | undefined> {
		let expired: CertificateRecord | undefined;
		for (const { storeName } of entry.policy.issuers) {
			const record = await readRecord(this.#around.store(), storeName, entry.name);
			if (record && record.notAfter > this.#around.now()) return record;
			expired ??= record;
		}
		return expired;
	}

	async #obtain(entry: ManagedCertificate, signal: AbortSignal): Promise<void> {
		if (entry.gone || signal.aborted) return;
		const failures: { issuer: Issuer; error: IssueError | StoreError }[] = [];
		const logger = loggerOf(entry);
		for (const issuer of entry.policy.issuers) {
			try {
				if (!(await this.#obtainFrom(issuer, entry, signal))) continue;
				for (const { issuer, error } of failures) {
					this.#around.log('info', logger, 'an issuer gave no certificate, another did', {
						name: entry.name,
						issuer: issuer.storeName,
						cause: error.message,
					});
				}
				return;
			} catch (error) {
				// What a stop, or a document without the name, has ended is no failure.
				if (signal.aborted || entry.gone) return;
				if (!(error instanceof IssueError) && !(error instanceof StoreError)) throw error;
				const limited = error.code === 'issuer/rate-limited';
				this.attempts.count({ issuer: issuer.kind, result: limited ? 'rate_limited' : 'failed' });
				failures.push({ issuer, error });
			}
		}
		const retries = failures.map(({ error }) => {
			if (!(error instanceof IssueError)) return undefined;
			return error.final ? this.#around.now() + HOPELESS : error.retryAt;
		});
		// As soon as one of the issuers may be asked again.
		const retryAt = retries.includes(undefined) ? undefined : Math.min(...(retries as number[]));
		this.#failed(
			entry,
			failures.map(({ issuer, error }) => `${issuer.storeName}: ${error.message}`),
			retryAt,
		);
	}

	/** True when the entry has its certificate. */
	async #obtainFrom(issuer: Issuer, entry: ManagedCertificate, signal: AbortSignal): Promise<boolean> {
		if (issuer.immediate) {
			const issued = await issuer.issue(this.#orderOf(entry, signal));
			const record = checked(issuer, entry.name, issued);
			this.#take(entry, issuer, record);
			void this.#writes.run(() => this.#keep(record, issued));
			return true;
		}
		await this.#around.checkStore();
		const lock = await this.#around.store().lock(`issue_${entry.name}`, signal);
		try {
			if (await this.#othersHave(entry)) return true;
			const all = AbortSignal.any([signal, lock.lost]);
			const issued = await issuer.issue(this.#orderOf(entry, all)).catch(error => {
				if (!lock.lost.aborted || signal.aborted) throw error;
				throw new IssueError('issuer/lock-lost', 'Another process took over the order.');
			});
			const record = checked(issuer, entry.name, issued);
			await this.#persist(record, issued, signal);
			this.#take(entry, issuer, record);
			return true;
		} finally {
			await lock.release();
		}
	}

	/** A process that shares the store may have renewed while this one waited. */
	async #othersHave(entry: ManagedCertificate): Promise<boolean> {
		const stored = await this.#stored(entry);
		if (!stored || stored.fingerprint === entry.record?.fingerprint) return false;
		const before = entry.record;
		entry.take(stored, this.#ratioOf(entry, stored));
		if (this.#around.now() >= entry.renewAt) {
			if (before) entry.take(before, this.#ratioOf(entry, before));
			return false;
		}
		this.#succeeded(entry);
		this.#around.log('info', 'tls.cache', 'a certificate that another process obtained is served', {
			name: entry.name,
			issuer: stored.issuer,
			expires: new Date(stored.notAfter).toISOString(),
		});
		return true;
	}

	#orderOf(entry: ManagedCertificate, signal: AbortSignal) {
		const { name, keyType, failures, record, policy } = entry;
		return {
			name,
			keyType,
			failures,
			signal,
			...(policy.settings.reuse_private_keys && record ? { privateKey: record.privateKey } : {}),
			...(record ? { replaces: record.chain } : {}),
		};
	}

	/** A certificate that cannot be written now has been paid for all the same: it is tried again for some time. */
	async #persist(record: CertificateRecord, issued: Issued, signal: AbortSignal): Promise<void> {
		for (let tries = 0; ; tries++) {
			try {
				await writeRecord(this.#around.store(), record, issued.details);
				await issued.kept?.();
				return;
			} catch (error) {
				if (!(error instanceof StoreError) || tries === 3) throw error;
				await sleep(500 * 2 ** tries, undefined, { signal });
			}
		}
	}

	async #keep(record: CertificateRecord, issued: Issued): Promise<void> {
		try {
			await writeRecord(this.#around.store(), record, issued.details);
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#around.log('warn', 'tls.cache', 'a certificate is not kept in the store', {
				name: record.name,
				cause: error.message,
			});
		}
	}

	#take(entry: ManagedCertificate, issuer: Issuer, record: CertificateRecord): void {
		const renewal = entry.record !== undefined;
		entry.take(record, this.#ratioOf(entry, record));
		this.#succeeded(entry);
		this.attempts.count({ issuer: issuer.kind, result: renewal ? 'renewed' : 'obtained' });
		const message = renewal ? 'a certificate was renewed' : 'a certificate was obtained';
		this.#around.log('info', renewal ? 'tls.renew' : 'tls.obtain', message, {
			name: entry.name,
			issuer: issuer.storeName,
			expires: new Date(record.notAfter).toISOString(),
		});
		if (issuer.kind === 'internal' && !renewal) this.#suggestTrust(issuer.storeName);
	}

	/** Says once for each authority how to have this machine accept its certificates. */
	#suggestTrust(authority: string): void {
		if (this.#suggested.has(authority)) return;
		this.#suggested.add(authority);
		const command = authority === 'local' ? 'svc trust' : `svc trust --ca ${authority}`;
		this.#around.log('info', 'pki', `to have browsers on this machine accept internal certificates, run: ${command}`, {
			ca: authority,
			store: this.#around.store().description,
		});
	}

	#succeeded(entry: ManagedCertificate): void {
		entry.failures = 0;
		entry.attemptAt = 0;
		entry.lastError = undefined;
		this.publish(entry);
	}

	#failed(entry: ManagedCertificate, causes: readonly string[], retryAt: number | undefined): void {
		const now = this.#around.now();
		if (entry.failures++ === 0) entry.failingSince = now;
		const wait = backOff(entry.failures, now - entry.failingSince, Math.random());
		entry.attemptAt = Math.max(now + wait, retryAt ?? 0);
		entry.lastError = causes.join(' ');
		if (causes.length === 0) return;
		this.#around.log('error', loggerOf(entry), 'no issuer gave a certificate', {
			name: entry.name,
			causes,
			failures: entry.failures,
			next_attempt: new Date(entry.attemptAt).toISOString(),
		});
	}

	#ratioOf(entry: ManagedCertificate, record: CertificateRecord): number | undefined {
		const issuer = entry.policy.issuers.find(({ storeName }) => storeName === record.issuer);
		return issuer?.renewalRatio ?? this.#around.renewalRatio();
	}
}

function loggerOf({ record }: ManagedCertificate): string {
	return record ? 'tls.renew' : 'tls.obtain';
}

/** What an issuer gave, or why it cannot be used. */
function checked(issuer: Issuer, name: string, { chain, privateKey }: Issued): CertificateRecord {
	const record = recordOf(issuer.storeName, name, chain, privateKey);
	if (record) return record;
	throw new IssueError('issuer/wrong-certificate', 'The issuer gave a certificate for another name or key.');
}
