/** Obtains and renews certificates: loads them from the store, orders those that are due, and publishes them to threads. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Store, StoreError } from '../storage/store.ts';
import { LabelledCounter } from './certificate-metrics.ts';
import type { CertificatePublisher } from './certificate-publisher.ts';
import {
	type CertificateRecord,
	createCertificateRecord,
	readCertificateRecord,
	writeCertificateRecord,
} from './certificate-records.ts';
import { type IssuedCertificate, IssueError, type Issuer } from './issuer.ts';
import type { ManagedCertificate } from './managed-certificate.ts';
import type { ManagerLog } from './manager-log.ts';
import { retryDelay } from './renewal-times.ts';
import { forEachConcurrently, WorkQueue } from './work-queue.ts';

const MAX_CONCURRENT_ORDERS = 24;
/** Maximum number of concurrent reads from the store. */
const MAX_CONCURRENT_READS = 32;
/** Maximum number of certificates per message to the threads. Parsing more would stall a thread. */
const MAX_PUBLISHED_AT_ONCE = 250;
/** Milliseconds until the next attempt after an error that only a new configuration can fix. */
const FINAL_ERROR_RETRY_MS = 86_400_000;
/** Milliseconds until renewal information that could not be fetched is requested again. */
const ADVICE_RETRY_MS = 3_600_000;

/** Dependencies of {@link CertificateKeeper}. */
export interface KeeperDeps {
	readonly publisher: CertificatePublisher;
	readonly log: ManagerLog;
	readonly now: () => number;
	/** Returns the store. Must not be called before a configuration has been prepared. */
	readonly store: () => Store;
	/** Rejects with StoreError if a new certificate could not be written to the store. */
	readonly checkStore: () => Promise<void>;
	/** Returns the global option `renewal_window_ratio`. */
	readonly renewalRatio: () => number | undefined;
	/** Called after changes that may make a certificate due before the next periodic check. */
	readonly wake: () => void;
}

/** Obtains and renews single certificates. The manager decides which ones, and when. */
export class CertificateKeeper {
	/** Number of attempts to obtain a certificate, by issuer and result. */
	readonly attempts: LabelledCounter = new LabelledCounter();
	readonly #deps: KeeperDeps;
	readonly #orderQueue = new WorkQueue(MAX_CONCURRENT_ORDERS);
	readonly #writeQueue = new WorkQueue(8);
	/** CAs for which `svc trust` has been suggested. */
	readonly #suggestedAuthorities = new Set<string>();

	constructor(deps: KeeperDeps) {
		this.#deps = deps;
	}

	/** Loads certificates from the store, obtains missing ones from issuers that need no order, and publishes them all. */
	async load(entries: readonly ManagedCertificate[]): Promise<void> {
		let batch: ManagedCertificate[] = [];
		const publish = (): void => {
			this.#deps.publisher.publish(batch);
			batch = [];
		};
		await forEachConcurrently(entries, MAX_CONCURRENT_READS, async entry => {
			await this.#loadEntry(entry);
			if (entry.isPublished) return;
			batch.push(entry);
			if (batch.length >= MAX_PUBLISHED_AT_ONCE) publish();
		});
		publish();
	}

	/** Starts an order, unless one is in progress. Resolves when the order ends. Never rejects. */
	startOrder(entry: ManagedCertificate): Promise<void> {
		if (entry.currentOrder) return entry.currentOrder.done;
		const abort = new AbortController();
		const done = this.#orderQueue
			.run(() => this.#obtainCertificate(entry, abort.signal))
			.catch(error => {
				// A bug here must not end the process, which serves other sites too.
				this.#deps.log('error', 'tls.obtain', 'obtaining a certificate failed unexpectedly', {
					name: entry.name,
					cause: error instanceof Error ? error.message : String(error),
				});
				this.#recordFailure(entry, [], undefined);
			})
			.finally(() => {
				entry.currentOrder = undefined;
				this.#deps.wake();
			});
		entry.currentOrder = { done, abort };
		return done;
	}

	/** Asks the issuer when to renew a certificate. Never rejects. */
	async advise(entry: ManagedCertificate): Promise<void> {
		const { issuer, record } = entry;
		entry.adviseAt = this.#deps.now() + ADVICE_RETRY_MS;
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
				this.#deps.log('info', 'tls.renew', 'the issuer asks for an earlier renewal', {
					name: entry.name,
					renew_at: new Date(advice.renewAt).toISOString(),
				});
			}
			// The advice lets the issuer spread its load. It must not delay the renewal until after 95% of the certificate's lifetime.
			entry.renewAt = Math.min(advice.renewAt, record.notAfter - (record.notAfter - record.notBefore) / 20);
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.#deps.log('debug', 'tls.renew', 'renewal information is unavailable', { name: entry.name, cause });
		}
	}

	/** Publishes the entry's current certificate to the threads. */
	publish(entry: ManagedCertificate): void {
		this.#deps.publisher.publish([entry]);
	}

	async #loadEntry(entry: ManagedCertificate): Promise<void> {
		const { now } = this.#deps;
		try {
			const storedRecord = await this.#readStored(entry);
			if (storedRecord) entry.setRecord(storedRecord, this.#renewalRatioOf(entry, storedRecord));
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#deps.log('error', 'tls.cache', 'a certificate cannot be read from the store', {
				name: entry.name,
				cause: error.message,
			});
		}
		const [firstIssuer] = entry.policy.issuers;
		if (firstIssuer?.isImmediate && (!entry.record || now() >= entry.renewAt)) {
			await this.#obtainCertificate(entry, AbortSignal.timeout(60_000));
		}
		entry.isLoaded = true;
	}

	/**
	 * Returns the stored certificate of the most preferred issuer that has one. If all stored certificates have expired, returns an
	 * expired one.
	 */
	async #readStored(entry: ManagedCertificate): Promise<CertificateRecord | undefined> {
		let expiredRecord: CertificateRecord | undefined;
		for (const { storeName } of entry.policy.issuers) {
			const record = await readCertificateRecord(this.#deps.store(), storeName, entry.name);
			if (record && record.notAfter > this.#deps.now()) return record;
			expiredRecord ??= record;
		}
		return expiredRecord;
	}

	async #obtainCertificate(entry: ManagedCertificate, signal: AbortSignal): Promise<void> {
		if (entry.isDropped || signal.aborted) return;
		const failures: { issuer: Issuer; error: IssueError | StoreError }[] = [];
		const logger = loggerOf(entry);
		for (const issuer of entry.policy.issuers) {
			try {
				if (!(await this.#obtainFrom(issuer, entry, signal))) continue;
				for (const { issuer, error } of failures) {
					this.#deps.log('info', logger, 'an issuer failed, and another one provided the certificate', {
						name: entry.name,
						issuer: issuer.storeName,
						cause: error.message,
					});
				}
				return;
			} catch (error) {
				// An order canceled by a stop or a new configuration is not a failure.
				if (signal.aborted || entry.isDropped) return;
				if (!(error instanceof IssueError) && !(error instanceof StoreError)) throw error;
				const isRateLimited = error.code === 'issuer/rate-limited';
				this.attempts.count({ issuer: issuer.kind, result: isRateLimited ? 'rate_limited' : 'failed' });
				failures.push({ issuer, error });
			}
		}
		const retryTimes = failures.map(({ error }) => {
			if (!(error instanceof IssueError)) return undefined;
			return error.isFinal ? this.#deps.now() + FINAL_ERROR_RETRY_MS : error.retryAt;
		});
		// The next attempt is made as soon as one of the issuers allows it.
		const retryAt = retryTimes.includes(undefined) ? undefined : Math.min(...(retryTimes as number[]));
		this.#recordFailure(
			entry,
			failures.map(({ issuer, error }) => `${issuer.storeName}: ${error.message}`),
			retryAt,
		);
	}

	/** Obtains a certificate from one issuer. Resolves to true once the entry has the certificate. */
	async #obtainFrom(issuer: Issuer, entry: ManagedCertificate, signal: AbortSignal): Promise<boolean> {
		if (issuer.isImmediate) {
			const issuedCertificate = await issuer.issue(this.#orderOf(entry, signal));
			const record = createCheckedRecord(issuer, entry.name, issuedCertificate);
			this.#useRecord(entry, issuer, record);
			void this.#writeQueue.run(() => this.#storeOnce(record, issuedCertificate));
			return true;
		}
		await this.#deps.checkStore();
		const lock = await this.#deps.store().lock(`issue_${entry.name}`, signal);
		try {
			if (await this.#useRenewedElsewhere(entry)) return true;
			const combinedSignal = AbortSignal.any([signal, lock.lost]);
			const issuedCertificate = await issuer.issue(this.#orderOf(entry, combinedSignal)).catch(error => {
				if (!lock.lost.aborted || signal.aborted) throw error;
				throw new IssueError('issuer/lock-lost', 'Another process took over the order.');
			});
			const record = createCheckedRecord(issuer, entry.name, issuedCertificate);
			await this.#storeWithRetries(this.#deps.store().fenced(lock), record, issuedCertificate, signal);
			this.#useRecord(entry, issuer, record);
			return true;
		} finally {
			await lock.release();
		}
	}

	/** Uses a certificate that another process with the same store obtained while this one waited for the lock. */
	async #useRenewedElsewhere(entry: ManagedCertificate): Promise<boolean> {
		const storedRecord = await this.#readStored(entry);
		if (!storedRecord || storedRecord.fingerprint === entry.record?.fingerprint) return false;
		const previousRecord = entry.record;
		entry.setRecord(storedRecord, this.#renewalRatioOf(entry, storedRecord));
		if (this.#deps.now() >= entry.renewAt) {
			if (previousRecord) entry.setRecord(previousRecord, this.#renewalRatioOf(entry, previousRecord));
			return false;
		}
		this.#recordSuccess(entry);
		this.#deps.log('info', 'tls.cache', 'using a certificate obtained by another process', {
			name: entry.name,
			issuer: storedRecord.issuer,
			expires: new Date(storedRecord.notAfter).toISOString(),
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

	/** Writes a certificate, with retries, because obtaining it again would count against the issuer's limits. */
	async #storeWithRetries(
		store: Store,
		record: CertificateRecord,
		issuedCertificate: IssuedCertificate,
		signal: AbortSignal,
	): Promise<void> {
		for (let attempt = 0; ; attempt++) {
			try {
				await writeCertificateRecord(store, record, issuedCertificate.details);
				await issuedCertificate.onStored?.();
				return;
			} catch (error) {
				if (!(error instanceof StoreError) || error.code === 'store/lock-lost' || attempt === 3) throw error;
				await sleep(500 * 2 ** attempt, undefined, { signal });
			}
		}
	}

	async #storeOnce(record: CertificateRecord, issuedCertificate: IssuedCertificate): Promise<void> {
		try {
			await writeCertificateRecord(this.#deps.store(), record, issuedCertificate.details);
		} catch (error) {
			if (!(error instanceof StoreError)) throw error;
			this.#deps.log('warn', 'tls.cache', 'a certificate could not be stored', {
				name: record.name,
				cause: error.message,
				store: this.#deps.store().description,
			});
		}
	}

	#useRecord(entry: ManagedCertificate, issuer: Issuer, record: CertificateRecord): void {
		const isRenewal = entry.record !== undefined;
		entry.setRecord(record, this.#renewalRatioOf(entry, record));
		this.#recordSuccess(entry);
		this.attempts.count({ issuer: issuer.kind, result: isRenewal ? 'renewed' : 'obtained' });
		const message = isRenewal ? 'a certificate was renewed' : 'a certificate was obtained';
		this.#deps.log('info', isRenewal ? 'tls.renew' : 'tls.obtain', message, {
			name: entry.name,
			issuer: issuer.storeName,
			expires: new Date(record.notAfter).toISOString(),
		});
		if (issuer.kind === 'internal' && !isRenewal) this.#suggestTrust(issuer.storeName);
	}

	/** Logs, once per internal CA, the command that makes this machine trust the CA. */
	#suggestTrust(authorityId: string): void {
		if (this.#suggestedAuthorities.has(authorityId)) return;
		this.#suggestedAuthorities.add(authorityId);
		const command = authorityId === 'local' ? 'svc trust' : `svc trust --ca ${authorityId}`;
		this.#deps.log('info', 'pki', `to have browsers on this machine accept internal certificates, run: ${command}`, {
			ca: authorityId,
			store: this.#deps.store().description,
		});
	}

	#recordSuccess(entry: ManagedCertificate): void {
		entry.failures = 0;
		entry.nextAttemptAt = 0;
		entry.lastError = undefined;
		this.publish(entry);
	}

	#recordFailure(entry: ManagedCertificate, causes: readonly string[], retryAt: number | undefined): void {
		const now = this.#deps.now();
		if (entry.failures++ === 0) entry.failingSince = now;
		const waitMs = retryDelay(entry.failures, now - entry.failingSince, Math.random());
		entry.nextAttemptAt = Math.max(now + waitMs, retryAt ?? 0);
		entry.lastError = causes.join(' ');
		if (causes.length === 0) return;
		this.#deps.log('error', loggerOf(entry), 'no issuer provided a certificate', {
			name: entry.name,
			causes,
			failures: entry.failures,
			next_attempt: new Date(entry.nextAttemptAt).toISOString(),
		});
	}

	#renewalRatioOf(entry: ManagedCertificate, record: CertificateRecord): number | undefined {
		const issuer = entry.policy.issuers.find(({ storeName }) => storeName === record.issuer);
		return issuer?.renewalRatio ?? this.#deps.renewalRatio();
	}
}

function loggerOf({ record }: ManagedCertificate): string {
	return record ? 'tls.renew' : 'tls.obtain';
}

/** Creates the record of an issued certificate. Throws IssueError if the certificate is for another name or key. */
function createCheckedRecord(
	issuer: Issuer,
	name: string,
	{ chain, privateKey }: IssuedCertificate,
): CertificateRecord {
	const record = createCertificateRecord(issuer.storeName, name, chain, privateKey);
	if (record) return record;
	throw new IssueError('issuer/wrong-certificate', 'The issuer returned a certificate for another name or key.');
}
