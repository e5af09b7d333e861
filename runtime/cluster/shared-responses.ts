/**
 * Responses that the machines of a cluster share through Redis: the tier of a response cache below memory and disk.
 *
 * Each key of a cache has two values in Redis: a hash with its responses, and a lease, which the machine that fetches a response
 * holds. The other machines wait until the lease has ended, and then find the response in Redis. A response is accepted only from
 * the holder of the lease, so that a machine that was slow or cut off cannot replace a newer response.
 *
 * Each response has a position: the last purge of the cluster before it was requested. A machine that finds a response first makes
 * sure that it knows all purges in Redis, and ignores the response if a purge after its position selects it. A purge therefore
 * affects all responses that were requested before it, even if they are stored after it.
 */
import { randomBytes } from 'node:crypto';
import { isStream } from '../../compiler/exchange/body.ts';
import type {
	CachedHead,
	ClusterAnswer,
	ClusterTierSettings,
	FetchOutcome,
	RequestedUrl,
} from '../../compiler/exchange/response-cache.ts';
import type { ClusterConsultation, FetchResult } from '../cache/cluster-messages.ts';
import { LockLost } from '../cache/memory-lock.ts';
import { compileSelection } from '../cache/purging.ts';
import { waitAtMost } from '../cache/request-coalescer.ts';
import type { SharedCache } from '../cache/shared-cache.ts';
import { ClusterError } from './cluster-error.ts';
import { PurgeHistory } from './purge-history.ts';
import type { RedisAccess } from './redis-access.ts';
import { withinLimit } from './redis-client.ts';
import {
	BACKGROUND_TIMEOUT_MS,
	type ConsultReply,
	MAX_RENEWAL_MS,
	releaseLease,
	removeUrl,
	renewLease,
	sendConsultation,
	storeResponse,
} from './response-commands.ts';
import { ResponseLoader } from './response-loader.ts';
import { ResponseMailbox } from './response-mailbox.ts';
import { type KeyNames, ResponseNames } from './response-names.ts';
import type { SealedValues } from './sealed-values.ts';
import type { SharedPurges } from './shared-purges.ts';
import { decodeRecord, encodeRecord, type SharedRecord } from './shared-record.ts';
import { SharingAvailability, type SharingLog } from './sharing-availability.ts';

/** Milliseconds between renewals of a lease. */
const RENEWAL_INTERVAL_MS = 1000;
/** Milliseconds after the expiry of a lease before a waiting machine tries to take it. */
const EXTRA_EXPIRY_MS = 20;
/**
 * Maximum number of consultations of one request that find responses but load none, because they are purged, invalidated or not
 * readable, or that find the lease of a fetch which is ending in this process.
 */
const MAX_FUTILE_ATTEMPTS = 3;
const ALONE: ClusterAnswer = { outcome: 'alone' };

/** Counters since the process started. */
export interface SharedResponseCounts {
	/** Numbers of consultations that found a response, that found none, and that failed because Redis was not available. */
	readonly found: number;
	readonly absent: number;
	readonly unavailable: number;
	/** Number of times that a request waited for the fetch of another machine. */
	readonly waits: number;
	/**
	 * Numbers of responses that were stored (`stored`), not stored because their lease had ended (`fenced`), and not stored because
	 * Redis failed (`failed`).
	 */
	readonly stored: number;
	readonly fenced: number;
	readonly failed: number;
	/** Number of responses that were found, but that a purge had made invalid. */
	readonly purged: number;
}

interface Lease {
	readonly id: number;
	/** The thread that fetches the response. */
	readonly thread: number;
	readonly token: string;
	readonly names: KeyNames;
	readonly key: string;
	readonly position: string;
	/** Milliseconds to add to a time by this machine's clock. The result is the time by the clock of Redis, or slightly earlier. */
	readonly clockOffset: number;
	readonly cache: SharedCache;
	readonly settings: ClusterTierSettings;
	readonly takenAt: number;
	timer: NodeJS.Timeout | undefined;
}

/** The cluster's Redis, and the maximum milliseconds for which a request waits for it. */
interface RedisWithLimit extends RedisAccess {
	readonly timeoutMs: number;
}

export class SharedResponses {
	readonly #cluster: RedisWithLimit;
	readonly #purges: SharedPurges;
	readonly #sealedValues: SealedValues;
	readonly #names: ResponseNames;
	readonly #availability: SharingAvailability;
	readonly #history: PurgeHistory;
	readonly #mailbox: ResponseMailbox;
	readonly #leases = new Map<number, Lease>();
	/** Promises that resolve when fetches have ended in Redis, by the IDs of their leases. */
	readonly #endingFetches = new Map<number, Promise<void>>();
	/** For each thread number, how many threads with it have ended. A new thread takes over the number of an ended one. */
	readonly #endCounts = new Map<number, number>();
	#lastLease = 0;
	#isClosed = false;
	readonly #counts = { found: 0, absent: 0, unavailable: 0, waits: 0, stored: 0, fenced: 0, failed: 0, purged: 0 };

	/** @param key The cluster's key, in base64. */
	constructor(cluster: RedisWithLimit, purges: SharedPurges, sealedValues: SealedValues, key: string, log: SharingLog) {
		this.#cluster = cluster;
		this.#purges = purges;
		this.#sealedValues = sealedValues;
		this.#names = new ResponseNames(cluster, key);
		this.#history = new PurgeHistory(cluster);
		this.#mailbox = new ResponseMailbox(cluster, cluster.redisKey(`cache:mailbox:${randomBytes(8).toString('hex')}`));
		this.#availability = new SharingAvailability(cluster, log, () => this.#mailbox.wakeAll());
	}

	get counts(): SharedResponseCounts {
		return this.#counts;
	}

	get isAvailable(): boolean {
		return this.#availability.isAvailable;
	}

	/**
	 * Answers a request that has missed the cache. All waits for Redis together take at most the cluster's timeout. With the intent
	 * `join`, the request also waits for fetches of other machines, for at most the maximum wait.
	 */
	async consult(
		{ key, url, intent, knownVersions, thread }: ClusterConsultation,
		cache: SharedCache,
		settings: ClusterTierSettings,
	): Promise<ClusterAnswer> {
		const names = this.#names.of(key, url);
		const startedAt = performance.now();
		const deadline = startedAt + settings.waitMs;
		/** Milliseconds for which the request has waited for other fetches. */
		let waitedMs = 0;
		const remainingRedisMs = (): number => startedAt + this.#cluster.timeoutMs + waitedMs - performance.now();
		const known = new Set(knownVersions);
		const loader = new ResponseLoader(cache, url);
		const endCount = this.#endCounts.get(thread);
		for (let futileAttempts = 0; futileAttempts < MAX_FUTILE_ATTEMPTS; ) {
			const limitMs = remainingRedisMs();
			if (!this.#availability.isAvailable || this.#isClosed || limitMs <= 0) {
				this.#counts.unavailable++;
				return ALONE;
			}
			const token = `${this.#mailbox.key} ${++this.#lastLease}`;
			const lease = this.#lastLease;
			// Prepared before the command is sent, because the notification can arrive before the reply.
			const preparedWait = intent === 'join' ? this.#mailbox.prepare(names.lease) : undefined;
			try {
				loader.readEpochs();
				const reply = await sendConsultation(
					this.#cluster,
					names,
					{ intent, mailbox: this.#mailbox.key, token, waitMs: settings.waitMs, known },
					limitMs,
				);
				if (reply.state === 'found') {
					const historyRead = this.#history.readUpTo(reply.position);
					await withinLimit(historyRead, remainingRedisMs(), 'no answer about purges in time');
					const result = await this.#loadResponses(reply, names, loader, known);
					if (result === 'loaded') {
						this.#counts.found++;
						return { outcome: 'loaded', versions: [...known] };
					}
					futileAttempts++;
					continue;
				}
				if (reply.state === 'own') {
					const leaseId = Number(String(reply.rest[0]));
					// This process is still fetching the response. A request that gets here has already waited long enough for that fetch.
					if (this.#leases.has(leaseId)) return ALONE;
					const endLimitMs = intent === 'join' ? deadline - performance.now() : remainingRedisMs();
					const waitStartedAt = performance.now();
					await waitAtMost(this.#endingFetches.get(leaseId) ?? Promise.resolve(), Math.max(0, endLimitMs));
					if (intent === 'join') waitedMs += performance.now() - waitStartedAt;
					futileAttempts++;
					continue;
				}
				if (reply.state === 'wait' && preparedWait) {
					const remainingMs = deadline - performance.now();
					if (remainingMs <= 0) return ALONE;
					this.#counts.waits++;
					const waitLimitMs = Math.min(remainingMs, reply.holderMs + EXTRA_EXPIRY_MS);
					const waitStartedAt = performance.now();
					const outcome = await preparedWait.wait(waitLimitMs, reply.redisTime);
					if (outcome === 'private') return { outcome: 'private' };
					waitedMs += performance.now() - waitStartedAt;
					continue;
				}
				this.#counts.absent++;
				if (reply.state !== 'lead') return { outcome: reply.state as 'busy' | 'private' | 'alone' };
				this.#keepLease({
					...{ id: lease, thread, token, names, key, cache, settings },
					...{ position: reply.position, clockOffset: reply.minClockOffset },
					...{ takenAt: performance.now(), timer: undefined },
				});
				// If the thread has died in the meantime, nobody else would end the lease, and the other machines would wait in vain.
				if (this.#endCounts.get(thread) === endCount && !this.#isClosed) return { outcome: 'lead', leaseId: lease };
				void this.endFetch({ leaseId: lease, outcome: 'failed', stored: undefined });
				return ALONE;
			} catch (error) {
				// If earlier commands have taken most of the time, a missing answer does not mean that Redis is unavailable.
				const isOutOfTime = error instanceof ClusterError && error.code === 'cluster/unavailable';
				if (!isOutOfTime || limitMs > this.#cluster.timeoutMs / 2) this.#availability.onFailure(error);
				this.#counts.unavailable++;
				return ALONE;
			} finally {
				preparedWait?.cancel();
			}
		}
		return ALONE;
	}

	/** Ends a fetch: stores its response in Redis, if there is one, and lets the other machines continue. Never rejects. */
	async endFetch({ leaseId, outcome, stored }: FetchResult): Promise<void> {
		const lease = this.#leases.get(leaseId);
		if (!lease) return;
		this.#leases.delete(leaseId);
		clearInterval(lease.timer);
		const ending = this.#endInRedis(lease, outcome, stored);
		this.#endingFetches.set(leaseId, ending);
		await ending;
		this.#endingFetches.delete(leaseId);
	}

	/** Stores the response of a fetch in Redis, if there is one, and ends the lease. Never rejects. */
	async #endInRedis(lease: Lease, outcome: FetchOutcome, stored: FetchResult['stored']): Promise<void> {
		try {
			const isStored = outcome === 'stored' && stored !== undefined;
			const response = isStored ? await this.#readStored(lease, stored.entry, stored.serial) : undefined;
			if (response === undefined || !(await this.#storeInRedis(lease, response)))
				await this.#releaseLease(lease, outcome, response !== undefined);
		} catch (error) {
			this.#counts.failed++;
			this.#availability.onFailure(error);
			// Lets the other machines continue if Redis is full and accepts no responses.
			if (error instanceof ClusterError && error.code === 'cluster/refused')
				await this.#releaseLease(lease, outcome, true).catch(() => {});
		}
	}

	/** Ends the fetches of a thread that has ended. */
	onThreadEnded(thread: number): void {
		this.#endCounts.set(thread, (this.#endCounts.get(thread) ?? 0) + 1);
		for (const lease of this.#leases.values())
			if (lease.thread === thread) void this.endFetch({ leaseId: lease.id, outcome: 'failed', stored: undefined });
	}

	/** Removes the responses of a URL. If Redis is not available, they are removed as soon as it is. Never rejects. */
	async invalidateUrl(url: RequestedUrl): Promise<void> {
		try {
			if (!this.#availability.isAvailable) throw new ClusterError('cluster/unavailable', 'Redis does not answer');
			await removeUrl(this.#cluster, this.#names.urlKeyOf(url), this.#cluster.timeoutMs);
		} catch (error) {
			this.#availability.onFailure(error);
			const { host, path, query } = url;
			this.#purges.purgeElsewhereLater({ host, path: query === undefined ? path : `${path}?${query}` });
		}
	}

	/** Removes the responses of a key, which the origin has shown to be obsolete. */
	removeKey(key: string): void {
		if (!this.#availability.isAvailable) return;
		const responses = this.#names.responsesOf(key);
		this.#cluster
			.sendCommand(['DEL', responses], BACKGROUND_TIMEOUT_MS)
			.catch(error => this.#availability.onFailure(error));
	}

	/** Ends all leases of this process, and all its waits for other machines. */
	async close(): Promise<void> {
		this.#isClosed = true;
		this.#availability.close();
		this.#mailbox.close();
		const results = [...this.#leases.keys()].map(
			leaseId => ({ leaseId, outcome: 'failed', stored: undefined }) as const,
		);
		if (!this.#availability.isAvailable) for (const { timer } of this.#leases.values()) clearInterval(timer);
		else await Promise.all(results.map(result => this.endFetch(result)));
	}

	/**
	 * Loads responses into the cache, and adds their versions to `known`. All purges up to the reply must have been read. Returns
	 * 'overtaken' if Redis must be asked again because of a purge or an invalidation on this machine, and 'unusable' if no response
	 * could be loaded.
	 */
	async #loadResponses(
		{ rest, maxClockOffset }: ConsultReply,
		{ responses }: KeyNames,
		loader: ResponseLoader,
		known: Set<string>,
	): Promise<'loaded' | 'overtaken' | 'unusable'> {
		let isLoaded = false;
		for (let i = 0; i < rest.length; i += 2) {
			const [variant, value] = [String(rest[i]), rest[i + 1]!];
			const separator = value.indexOf(0x3a);
			const version = value.toString('latin1', 0, separator);
			const name = recordName(responses, variant);
			const record = await decodeRecord(value.subarray(separator + 1), name, this.#sealedValues);
			if (record !== undefined && !this.#isPurged(record)) {
				const head = { ...record.head, storedAt: record.head.storedAt - maxClockOffset };
				const result = loader.load(head, record.body);
				if (result === 'overtaken') return 'overtaken';
				isLoaded ||= result;
			}
			known.add(version);
		}
		return isLoaded ? 'loaded' : 'unusable';
	}

	#isPurged({ head, position }: SharedRecord): boolean {
		const isPurged =
			this.#history.isPurged(head, position) ||
			this.#purges.unsharedSelections.some(selection => compileSelection(selection)(head));
		if (isPurged) this.#counts.purged++;
		return isPurged;
	}

	#keepLease(lease: Lease): void {
		this.#leases.set(lease.id, lease);
		lease.timer = setInterval(() => {
			if (!this.#availability.isAvailable) return;
			if (performance.now() - lease.takenAt > MAX_RENEWAL_MS) {
				clearInterval(lease.timer);
				this.#leases.delete(lease.id);
				return;
			}
			renewLease(this.#cluster, lease.names, lease.token).catch(error => this.#availability.onFailure(error));
		}, RENEWAL_INTERVAL_MS).unref();
	}

	/** Reads a response from the cache's shared memory. Returns undefined if it has been evicted or purged. */
	async #readStored(
		{ key, cache }: Lease,
		entry: number,
		serial: number,
	): Promise<{ readonly head: CachedHead; readonly body: Buffer | undefined } | undefined> {
		try {
			const response = cache.responseAt(key, entry, serial);
			if (response === undefined) return undefined;
			const { head, length } = response;
			const body = length === 0 ? null : cache.body(response, 0, length);
			if (body === undefined) return undefined;
			if (!isStream(body)) return { head, body: body === null ? Buffer.alloc(0) : Buffer.from(body as Uint8Array) };
			const chunks: Buffer[] = [];
			for (let chunk = await body.pull(); chunk !== null; chunk = await body.pull()) chunks.push(Buffer.from(chunk));
			return { head, body: Buffer.concat(chunks) };
		} catch (error) {
			if (error instanceof LockLost) return undefined;
			throw error;
		}
	}

	/**
	 * Stores a response and ends its lease. Returns false, without doing either, if the response is evicted, expired or too large.
	 */
	async #storeInRedis(
		{ names, token, position, clockOffset, settings }: Lease,
		{ head, body }: { readonly head: CachedHead; readonly body: Buffer | undefined },
	): Promise<boolean> {
		const keepMs = Math.min(settings.keepMs, usableMs(head));
		if (body === undefined || keepMs <= 0 || body.byteLength > settings.maxBytes) return false;
		const variant = this.#names.variantOf(head);
		const sharedHead = { ...head, storedAt: head.storedAt + clockOffset };
		const record = await encodeRecord(
			{ head: sharedHead, position, body },
			recordName(names.responses, variant),
			this.#sealedValues,
		);
		if (record.byteLength > settings.maxBytes) return false;
		const isAccepted = await storeResponse(this.#cluster, names, token, { variant, record, keepMs });
		if (isAccepted) this.#counts.stored++;
		else this.#counts.fenced++;
		this.#availability.onStored();
		return true;
	}

	/** Ends a lease without a response. `isUnshared` is true if there is a response, but only this machine has it. */
	async #releaseLease({ names, token }: Lease, outcome: FetchOutcome, isUnshared: boolean): Promise<void> {
		const [notifiedOutcome, reason] =
			outcome === 'private' ? ['private', 'private'] : isUnshared ? ['failed', 'unshared'] : ['failed', ''];
		await releaseLease(this.#cluster, names, token, notifiedOutcome, reason);
	}
}

/** Returns the name under which a response is encrypted. */
function recordName(responses: string, variant: string): string {
	return `${responses} ${variant}`;
}

/** Returns for how many milliseconds a response can be served, stale or not. */
function usableMs(head: CachedHead): number {
	const { storedAt, initialAge, lifetime, staleWhileRevalidate, staleIfError } = head;
	return storedAt - initialAge + lifetime + Math.max(staleWhileRevalidate, staleIfError) - Date.now();
}
