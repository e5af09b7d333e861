/** A thread's view of a response cache: the memory shared by all threads, plus a local cache of popular heads. */
import { isAscii } from 'node:buffer';
import type { Body } from '../../compiler/exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheEvent,
	CacheWriter,
	ClusterAnswer,
	ClusterTier,
	FetchOutcome,
	FetchTicket,
	ResponseCache,
} from '../../compiler/exchange/response-cache.ts';
import { BodyFiling, MIN_FILED_BODY_BYTES } from './body-filing.ts';
import { CacheMemory, type EntryHashes } from './cache-memory.ts';
import type { ClusterConsultation, FetchResult } from './cluster-messages.ts';
import { EntryWriter } from './entry-writer.ts';
import { hashKey, type KeyHash, normalizePath, urlText } from './key-hash.ts';
import { type CachedHeadsOfKey, LocalHeadCache } from './local-head-cache.ts';
import { BLOCK_BYTES, ENTRY_LIVE, ENTRY_WORD } from './memory-layout.ts';
import { PinnedBody } from './pinned-body.ts';
import { RequestCoalescer, waitAtMost } from './request-coalescer.ts';

/** Maximum size, in bytes, of a body that is copied in one go. */
const MAX_COPIED_BODY_BYTES = 65_536;
/** Fraction of the maximum cache size that all threads together may use for local caches of heads and copies of bodies. */
const LOCAL_CACHE_SHARE = 1 / 40;
/** Minimum number of bytes for the local cache of each thread. */
const MIN_LOCAL_CACHE_BYTES = 65_536;
/** Maximum number of keys whose heads a thread caches. */
const MAX_LOCAL_KEYS = 2048;
/**
 * Maximum size, in bytes, of a body that is kept as text, so that it is sent together with its head. All its bytes must be ASCII.
 */
const MAX_TEXT_BYTES = 1024;
/** Maximum size of a head in bytes; responses with longer ones are not stored. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Estimated bytes of memory that a parsed head uses for each byte of its text. */
const PARSED_BYTES_PER_BYTE = 5;
/**
 * Maximum number of stored responses per key. Clients choose the request fields by which the responses vary, and must not be able
 * to fill the store with variants of one page.
 */
export const MAX_VARIANTS: number = 64;

/** One thread's view of a stored response. */
export class StoredResponse implements CachedResponse {
	readonly head: CachedHead;
	readonly length: number;
	readonly entry: number;
	readonly serial: number;
	readonly knownKey: KnownKey;
	/** Number of this thread's requests for the body so far. A body that is requested often is copied or moved to a file. */
	bodyRequestCount = 0;
	/** A copy of the body; undefined until the response has turned out to be popular. */
	bodyCopy: Uint8Array | string | undefined = undefined;

	constructor(head: CachedHead, length: number, entry: number, serial: number, knownKey: KnownKey) {
		this.head = head;
		this.length = length;
		this.entry = entry;
		this.serial = serial;
		this.knownKey = knownKey;
	}
}

/** The stored responses of a key, valid for one version of its bucket. */
interface KnownKey extends CachedHeadsOfKey {
	readonly hash: KeyHash;
	readonly bucket: number;
	readonly version: number;
	readonly responses: StoredResponse[];
}

/** Maximum number of times that publishing a response is retried because another thread has changed its bucket. */
const MAX_PUBLISH_ATTEMPTS = 8;

/** Maximum milliseconds that a request waits for responses to be loaded from disk. */
const MAX_RECALL_WAIT_MS = 1000;

/**
 * Minimum milliseconds between two writes of a response to disk if the revalidation in between did not change how it is cached.
 */
const MIN_REWRITE_INTERVAL_MS = 60_000;

const NO_RESPONSES: readonly StoredResponse[] = [];

/** A thread's interface to the disk and cluster tiers, which the main thread owns. */
export interface LowerTiersPort {
	/** Reports that the responses of a key are no longer valid. */
	reportRemoved(key: string): void;
	/** Resolves when no response of the URL can reappear. */
	invalidateUrl(host: string, path: string, query: string | undefined): Promise<void>;
}

/** A thread's interface to the disk tier. */
export interface DiskPort {
	/** Reports that a response was stored or revalidated. */
	reportStored(key: string, entry: number, serial: number): void;
	/** Settles when the responses of a key have been loaded into memory. */
	recall(key: string): Promise<void>;
}

/** A thread's interface to the tier that the machines of a cluster share. */
export interface ClusterPort {
	/** Calls {@link ClusterTier.consult} on the main thread. Never rejects. */
	consult(consultation: Omit<ClusterConsultation, 'thread'>): Promise<ClusterAnswer>;
	/** Ends a fetch for which this thread has the lease. */
	endFetch(result: FetchResult): void;
}

export interface SharedCacheDeps {
	readonly buffer: SharedArrayBuffer;
	/** Maximum size of the cache in bytes. */
	readonly ceiling: number;
	/** Maximum number of worker threads. */
	readonly rows: number;
	/** This thread, counted from 0; equal to `rows` on the main thread. */
	readonly thread: number;
	count(event: CacheEvent): void;
	/** Size of the disk tier in bytes; undefined if there is none. */
	readonly diskSize?: number | undefined;
	/** The interface to the tiers below memory, on disk and in Redis; undefined if neither exists, and on the main thread. */
	readonly lowerTiers?: LowerTiersPort | undefined;
	readonly disk?: DiskPort | undefined;
	readonly cluster?: ClusterPort | undefined;
}

/** A cache that all threads share. */
export class SharedCache implements ResponseCache {
	readonly maxBodyBytes: number;
	readonly clusterTier: ClusterTier | undefined;
	readonly #memory: CacheMemory;
	readonly #coalescer: RequestCoalescer;
	readonly #countEvent: (event: CacheEvent) => void;
	readonly #localHeads: LocalHeadCache<KnownKey>;
	readonly #bodyFiling: BodyFiling;
	readonly #servesRequests: boolean;
	readonly #lowerTiers: LowerTiersPort | undefined;
	readonly #disk: DiskPort | undefined;
	/** The entries of responses that were stored under a lease, by the lease's ID, until the lease's fetch has ended. */
	readonly #entriesByLease = new Map<number, { readonly entry: number; readonly serial: number }>();
	readonly #recallsByKey = new Map<string, Promise<void>>();
	/** Entries pinned by this thread, with the number of uses of each pin and the serial of the pinned response. */
	readonly #pinsByEntry = new Map<number, { uses: number; readonly serial: number }>();

	constructor({
		buffer,
		ceiling: maxBytes,
		rows: maxThreads,
		thread,
		count,
		diskSize,
		lowerTiers,
		disk,
		cluster,
	}: SharedCacheDeps) {
		this.#memory = new CacheMemory(buffer, maxBytes, maxThreads, thread, diskSize);
		this.#lowerTiers = lowerTiers;
		this.#disk = disk;
		this.clusterTier = cluster && this.#createClusterTier(cluster);
		this.#coalescer = new RequestCoalescer(this.#memory, thread);
		this.#countEvent = count;
		this.#bodyFiling = new BodyFiling(this.#memory);
		// The main thread serves no requests.
		this.#servesRequests = thread !== maxThreads;
		const localCacheBytes = thread === maxThreads ? 0 : (maxBytes * LOCAL_CACHE_SHARE) / maxThreads;
		this.#localHeads = new LocalHeadCache(MAX_LOCAL_KEYS, Math.max(MIN_LOCAL_CACHE_BYTES, localCacheBytes));
		this.maxBodyBytes = Math.floor((this.#memory.layout.blocks * BLOCK_BYTES) / 8);
	}

	find(key: string): readonly CachedResponse[] {
		const knownKey = this.#localHeads.get(key);
		if (knownKey !== undefined && this.#memory.bucketVersion(knownKey.bucket) === knownKey.version) {
			const { responses } = knownKey;
			for (let i = 0; i < responses.length; i++) this.#memory.queues.countUse(responses[i]!.entry);
			return responses;
		}
		return this.#readHeads(key);
	}

	/**
	 * Returns the response that a thread has just stored in an entry, unless the response has been removed. Called on the main
	 * thread.
	 */
	responseAt(key: string, entry: number, serial: number): StoredResponse | undefined {
		return this.#readHeads(key).find(stored => stored.entry === entry && stored.serial === serial);
	}

	loadFromDisk(key: string): Promise<void> | undefined {
		if (this.#disk === undefined) return undefined;
		const pendingRecall = this.#recallsByKey.get(key);
		if (pendingRecall !== undefined || !this.#memory.mayBeOnDisk(hashKey(key, this.#memory.seed).a))
			return pendingRecall;
		// Requests must not wait for a disk that is slower than an origin, or that does not respond at all.
		const recall = waitAtMost(this.#disk.recall(key), MAX_RECALL_WAIT_MS).finally(() => this.#recallsByKey.delete(key));
		this.#recallsByKey.set(key, recall);
		return recall;
	}

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		const storedResponse = response as StoredResponse;
		const { entry, serial } = storedResponse;
		// The copy is used only if the response has not been removed since this thread found it.
		if (
			storedResponse.bodyCopy !== undefined &&
			end - start === storedResponse.length &&
			this.#memory.entrySerial(entry) === serial
		) {
			return storedResponse.bodyCopy;
		}
		if (!this.#pinEntry(entry, serial)) return undefined;
		const memory = this.#memory;
		const length = end - start;
		const isLong = storedResponse.length >= MIN_FILED_BODY_BYTES;
		if (isLong) {
			const wantsFile = this.#servesRequests && length > MAX_COPIED_BODY_BYTES && ++storedResponse.bodyRequestCount > 2;
			const filedBody = this.#bodyFiling.openBody(entry, start, length, wantsFile, () => this.#unpinEntry(entry));
			if (filedBody !== undefined) return filedBody;
		}
		const firstBlock = memory.field(entry, ENTRY_WORD.bodyBlock);
		const releaseBody = (): void => {
			if (isLong) this.#bodyFiling.onReadEnded(entry);
			this.#unpinEntry(entry);
		};
		if (length > MAX_COPIED_BODY_BYTES) return new PinnedBody(memory.blocks, firstBlock, start, length, releaseBody);
		const bytes = Buffer.allocUnsafe(length);
		memory.blocks.copyBytes(firstBlock, start, length, bytes);
		releaseBody();
		if (!isLong && length === storedResponse.length && ++storedResponse.bodyRequestCount > 2)
			this.#keepCopy(storedResponse, bytes);
		return bytes;
	}

	pin(response: CachedResponse): (() => void) | undefined {
		const { entry, serial } = response as StoredResponse;
		if (!this.#pinEntry(entry, serial)) return undefined;
		let isPinned = true;
		return () => {
			if (isPinned) this.#unpinEntry(entry);
			isPinned = false;
		};
	}

	/** The seed of the hashes of keys and URLs. */
	get seed(): number {
		return this.#memory.seed;
	}

	urlEpoch(host: string, path: string, query: string | undefined): number {
		return this.#memory.urlEpoch(hashKey(urlText(host, path, query), this.#memory.seed).a);
	}

	store(
		head: CachedHead,
		length: number | undefined,
		maxBytes: number,
		requestEpoch: number,
		leaseId?: number,
	): CacheWriter | undefined {
		const headBytes = Buffer.from(JSON.stringify(head), 'utf8');
		const limitBytes = Math.min(maxBytes, this.maxBodyBytes);
		if (headBytes.byteLength > MAX_HEAD_BYTES || (length ?? 0) > limitBytes) return undefined;
		const memory = this.#memory;
		const hashes = hashesOf(head, memory.seed);
		const entry = memory.withLock(() => {
			// The epoch is checked with the lock held: purges that begin later also check entries that are being filled.
			if (memory.urlEpoch(hashes.url) !== requestEpoch) return 0;
			const newEntry = memory.allocateEntry(hashes);
			if (newEntry === 0) return 0;
			if (memory.setHead(newEntry, headBytes)) return newEntry;
			memory.remove(newEntry);
			return 0;
		});
		if (entry === 0) return undefined;
		return new EntryWriter(memory, entry, limitBytes, () => this.#publishEntry(head, entry, leaseId));
	}

	refresh(response: CachedResponse, head: CachedHead, leaseId?: number): CachedResponse {
		const { entry, serial, knownKey, length } = response as StoredResponse;
		const memory = this.#memory;
		const headBytes = Buffer.from(JSON.stringify(head), 'utf8');
		if (headBytes.byteLength <= MAX_HEAD_BYTES) {
			memory.withLock(() => {
				if (memory.entrySerial(entry) !== serial || memory.field(entry, ENTRY_WORD.state) !== ENTRY_LIVE) return;
				if (memory.setHead(entry, headBytes)) memory.bumpVersion(knownKey.hash.a);
				else if (memory.entrySerial(entry) === serial) memory.remove(entry);
			});
			if (this.#disk !== undefined && !isRecentRevalidation(head, response.head))
				this.#disk.reportStored(head.key, entry, serial);
			if (leaseId !== undefined) this.#entriesByLease.set(leaseId, { entry, serial });
		}
		return new StoredResponse(head, length, entry, serial, knownKey);
	}

	remove(response: CachedResponse): void {
		const { entry, serial, head } = response as StoredResponse;
		const memory = this.#memory;
		memory.withLock(() => {
			if (memory.entrySerial(entry) === serial) memory.remove(entry);
		});
		this.#lowerTiers?.reportRemoved(head.key);
	}

	invalidate(host: string, path: string, query: string | undefined): void | Promise<void> {
		const memory = this.#memory;
		const hash = hashKey(urlText(host, path, query), memory.seed).a;
		memory.withLock(() => {
			memory.advanceEpoch(hash);
			for (const entry of memory.entriesOfUrl(hash)) memory.remove(entry);
		});
		return this.#lowerTiers?.invalidateUrl(host, path, query);
	}

	joinFetch(key: string, maxWaitMs: number): FetchTicket {
		return this.#coalescer.join(key, hashKey(key, this.#memory.seed), maxWaitMs);
	}

	countEvent(event: CacheEvent): void {
		this.#countEvent(event);
	}

	/** Keeps a copy of a popular body, because copying it from the shared memory would dominate the cost of each response. */
	#keepCopy(storedResponse: StoredResponse, bytes: Buffer): void {
		if (!this.#localHeads.growValue(storedResponse.knownKey, bytes.byteLength)) return;
		storedResponse.bodyCopy = bytes.byteLength <= MAX_TEXT_BYTES && isAscii(bytes) ? bytes.toString('latin1') : bytes;
	}

	/** Reads the heads of a key from the shared memory. */
	#readHeads(key: string): readonly StoredResponse[] {
		const memory = this.#memory;
		const hash = this.#localHeads.get(key)?.hash ?? hashKey(key, memory.seed);
		const bucket = memory.bucketOf(hash.a);
		const heads: { bytes: Buffer; entry: number; serial: number; length: number }[] = [];
		const version = memory.withLock(() => {
			for (const entry of memory.entriesOfKey(hash)) {
				const serial = memory.entrySerial(entry);
				heads.push({
					bytes: memory.readHead(entry),
					entry,
					serial,
					length: memory.field(entry, ENTRY_WORD.bodyLength),
				});
				memory.queues.countUse(entry);
			}
			return memory.bucketVersion(bucket);
		});
		if (heads.length === 0) {
			this.#localHeads.delete(key);
			return NO_RESPONSES;
		}
		const knownKey: KnownKey = { hash, bucket, version, responses: [], bytes: key.length };
		for (const { bytes, entry, serial, length } of heads) {
			const head = JSON.parse(bytes.toString('utf8')) as CachedHead;
			// Two keys may have the same hash.
			if (head.key !== key) continue;
			knownKey.responses.push(new StoredResponse(head, length, entry, serial, knownKey));
			knownKey.bytes += bytes.byteLength * PARSED_BYTES_PER_BYTE;
		}
		this.#localHeads.set(key, knownKey);
		return knownKey.responses;
	}

	#createClusterTier(cluster: ClusterPort): ClusterTier {
		return {
			consult: (key, url, intent, knownVersions) =>
				this.#coalescer.isUncoalesced(hashKey(key, this.#memory.seed))
					? Promise.resolve({ outcome: 'alone' })
					: cluster.consult({ key, url, intent, knownVersions }),
			ticketWithLease: (ticket, leaseId) => {
				let isDone = false;
				const done = (outcome: FetchOutcome): void => {
					ticket?.done(outcome);
					if (isDone) return;
					isDone = true;
					const stored = this.#entriesByLease.get(leaseId);
					this.#entriesByLease.delete(leaseId);
					cluster.endFetch({ leaseId, outcome, stored });
				};
				return { ended: undefined, leaseId, done };
			},
		};
	}

	/** Publishes a complete response. Returns false if it has been purged meanwhile or if a newer one is stored. */
	#publishEntry(head: CachedHead, entry: number, leaseId: number | undefined): boolean {
		const memory = this.#memory;
		const bucket = memory.bucketOf(hashKey(head.key, memory.seed).a);
		const serial = memory.entrySerial(entry);
		let isPublished = false;
		for (let attempt = 0, isSettled = false; !isSettled; attempt++) {
			const version = memory.bucketVersion(bucket);
			const replacedResponses = this.#responsesReplacedBy(head);
			const now = Date.now();
			// A stored response with a time in the future is not considered newer, because the clock must have been set back since.
			const isLate = replacedResponses.some(({ head: { storedAt } }) => storedAt > head.storedAt && storedAt <= now);
			memory.withLock(() => {
				// Another thread has changed the bucket, so the replaced responses are determined again.
				if (memory.bucketVersion(bucket) !== version && attempt < MAX_PUBLISH_ATTEMPTS) return;
				isSettled = true;
				if (isLate || memory.isBroken || memory.field(entry, ENTRY_WORD.doomed) !== 0) return;
				for (const replacedResponse of replacedResponses)
					if (memory.entrySerial(replacedResponse.entry) === replacedResponse.serial)
						memory.remove(replacedResponse.entry);
				memory.publishEntry(entry);
				isPublished = true;
			});
		}
		if (isPublished) this.#disk?.reportStored(head.key, entry, serial);
		if (isPublished && leaseId !== undefined) this.#entriesByLease.set(leaseId, { entry, serial });
		return isPublished;
	}

	/**
	 * Returns the stored responses that a new one replaces: responses with the same values of the `Vary` fields and, if the key has
	 * too many responses, the oldest. If all stored responses are newer than the new one, returns all, so that it is not published.
	 */
	#responsesReplacedBy(head: CachedHead): readonly StoredResponse[] {
		const storedResponses = this.#readHeads(head.key);
		const sameVariant = storedResponses.filter(
			({ head: { selecting } }) => selecting.join('\n') === head.selecting.join('\n'),
		);
		if (storedResponses.length - sameVariant.length < MAX_VARIANTS) return sameVariant;
		const oldestResponse = storedResponses.reduce((a, b) => (a.head.storedAt <= b.head.storedAt ? a : b));
		return oldestResponse.head.storedAt <= head.storedAt ? [...sameVariant, oldestResponse] : storedResponses;
	}

	#pinEntry(entry: number, serial: number): boolean {
		const heldPin = this.#pinsByEntry.get(entry);
		if (heldPin !== undefined) {
			if (heldPin.serial !== serial) return false;
			heldPin.uses++;
			return true;
		}
		const memory = this.#memory;
		memory.pin(entry);
		if (memory.entrySerial(entry) !== serial) {
			memory.unpin(entry, serial);
			return false;
		}
		this.#pinsByEntry.set(entry, { uses: 1, serial });
		return true;
	}

	#unpinEntry(entry: number): void {
		const heldPin = this.#pinsByEntry.get(entry);
		if (heldPin === undefined || --heldPin.uses > 0) return;
		this.#pinsByEntry.delete(entry);
		this.#memory.unpin(entry, heldPin.serial);
	}
}

/**
 * Reports whether a response was revalidated shortly before, with the same lifetime and caching rules. If each revalidation were
 * written to disk, a popular response would displace everything else there.
 */
function isRecentRevalidation(head: CachedHead, previousHead: CachedHead): boolean {
	return (
		head.storedAt - previousHead.storedAt < MIN_REWRITE_INTERVAL_MS &&
		cachingRulesOf(head) === cachingRulesOf(previousHead)
	);
}

function cachingRulesOf(head: CachedHead): string {
	const { lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags } = head;
	return JSON.stringify([lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags]);
}

/** Returns the hashes by which a response's entry is found. */
function hashesOf({ key, host, path, query }: CachedHead, seed: number): EntryHashes {
	return {
		key: hashKey(key, seed),
		url: hashKey(urlText(host, path, query), seed).a,
		path: hashKey(normalizePath(path), seed).a,
	};
}
