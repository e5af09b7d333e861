/** A thread's view of a response cache: the memory shared by all threads, plus a local cache of popular heads. */
import { isAscii } from 'node:buffer';
import type { Body } from '../../compiler/exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheEvent,
	CacheWriter,
	FetchTicket,
	ResponseCache,
} from '../../compiler/exchange/response-cache.ts';
import { BodyFiling, MIN_FILED_BODY_BYTES } from './body-filing.ts';
import { CacheMemory, type EntryHashes } from './cache-memory.ts';
import { EntryWriter } from './entry-writer.ts';
import { type CachedHeadsOfKey, HeadsAtHand } from './heads-at-hand.ts';
import { hashKey, type KeyHash, plainPath, urlText } from './key-hash.ts';
import { BLOCK_BYTES, ENTRY_LIVE, ENTRY_WORD } from './memory-layout.ts';
import { PinnedBody } from './pinned-body.ts';
import { RequestCoalescer, waitAtMost } from './request-coalescer.ts';

/** Maximum bytes of a body that is copied in one go. */
const WHOLE = 65_536;
/** Share of the maximum cache size that all threads together may use for cached heads and copies of bodies. */
const AT_HAND_SHARE = 1 / 40;
/** Minimum number of bytes for these per thread. */
const MIN_AT_HAND = 65_536;
/** Maximum keys whose heads a thread caches. */
const KEYS_AT_HAND = 2048;
/** Maximum bytes of a body that is kept as text, so that it is sent together with its head. All its bytes must be ASCII. */
const MAX_TEXT = 1024;
/** Maximum bytes of a head; responses with longer ones are not stored. */
const MAX_HEAD = 64 * 1024;
/** Estimated bytes of a parsed head per byte of its text. */
const HEAD_WEIGHT = 5;
/** Maximum number of stored responses per key. Clients choose the request fields and must not be able to fill the store with one page. */
export const MAX_VARIANTS: number = 64;

/** A stored response, as this thread knows it. */
export class StoredResponse implements CachedResponse {
	readonly head: CachedHead;
	readonly length: number;
	readonly entry: number;
	readonly serial: number;
	readonly known: Known;
	/** Number of requests for the whole body. */
	wanted = 0;
	/** A copy of the body, made once that is worthwhile. */
	copy: Uint8Array | string | undefined = undefined;

	constructor(head: CachedHead, length: number, entry: number, serial: number, known: Known) {
		this.head = head;
		this.length = length;
		this.entry = entry;
		this.serial = serial;
		this.known = known;
	}
}

/** The stored responses of a key, valid for one version of its bucket. */
interface Known extends CachedHeadsOfKey {
	readonly hash: KeyHash;
	readonly bucket: number;
	readonly version: number;
	readonly responses: StoredResponse[];
}

/** Maximum attempts to read a bucket that other threads are changing. */
const MAX_LOOKS = 8;

/** Maximum milliseconds that a request waits for the disk. */
const MAX_RECALL = 1000;

/** Minimum milliseconds between two revalidations that are written to disk, if the later one changes nothing. */
const CONFIRMED_SHORTLY = 60_000;

const NOTHING: readonly StoredResponse[] = [];

/** A thread's interface to the disk tier, which is on the main thread. */
export interface DiskPort {
	/** Reports that a response was stored or revalidated. */
	stored(key: string, entry: number, serial: number): void;
	/** Reports that a response is no longer valid. */
	removed(key: string): void;
	/** Resolves when no response of the URL can reappear. */
	invalidated(host: string, path: string, query: string | undefined): Promise<void>;
	/** Settles when the responses of a key have been loaded into memory. */
	recall(key: string): Promise<void>;
}

/** The memory of a cache, and other dependencies. */
export interface SharedCacheDeps {
	readonly buffer: SharedArrayBuffer;
	/** Maximum size in bytes. */
	readonly ceiling: number;
	readonly rows: number;
	/** Index of this thread's row. */
	readonly thread: number;
	count(event: CacheEvent): void;
	/** Size of the disk tier in bytes, and the interface to it, which the main thread does not need. */
	readonly diskSize?: number | undefined;
	readonly disk?: DiskPort | undefined;
}

/** A cache that all threads share. */
export class SharedCache implements ResponseCache {
	readonly maxBodyBytes: number;
	readonly #memory: CacheMemory;
	readonly #coalescer: RequestCoalescer;
	readonly #count: (event: CacheEvent) => void;
	readonly #known: HeadsAtHand<Known>;
	readonly #filing: BodyFiling;
	readonly #answers: boolean;
	readonly #disk: DiskPort | undefined;
	readonly #recalls = new Map<string, Promise<void>>();
	/** Entries pinned by this thread, each with its number of uses and its serial. */
	readonly #pins = new Map<number, { times: number; readonly serial: number }>();

	constructor({ buffer, ceiling, rows, thread, count, diskSize, disk }: SharedCacheDeps) {
		this.#memory = new CacheMemory(buffer, ceiling, rows, thread, diskSize);
		this.#disk = disk;
		this.#coalescer = new RequestCoalescer(this.#memory, thread);
		this.#count = count;
		this.#filing = new BodyFiling(this.#memory);
		// The main thread serves no requests.
		this.#answers = thread !== rows;
		const share = thread === rows ? 0 : (ceiling * AT_HAND_SHARE) / rows;
		this.#known = new HeadsAtHand(KEYS_AT_HAND, Math.max(MIN_AT_HAND, share));
		this.maxBodyBytes = Math.floor((this.#memory.layout.blocks * BLOCK_BYTES) / 8);
	}

	find(key: string): readonly CachedResponse[] {
		const known = this.#known.get(key);
		if (known !== undefined && this.#memory.version(known.bucket) === known.version) {
			const { responses } = known;
			for (let i = 0; i < responses.length; i++) this.#memory.queues.used(responses[i]!.entry);
			return responses;
		}
		return this.#look(key);
	}

	/** Returns the response that a thread has just stored, unless it has been removed. Called on the main thread. */
	responseAt(key: string, entry: number, serial: number): StoredResponse | undefined {
		return this.#look(key).find(one => one.entry === entry && one.serial === serial);
	}

	loadFromDisk(key: string): Promise<void> | undefined {
		if (this.#disk === undefined) return undefined;
		const under = this.#recalls.get(key);
		if (under !== undefined || !this.#memory.mayBeOnDisk(hashKey(key, this.#memory.seed).a)) return under;
		// Requests must not wait for a disk that is slower than an origin, or that does not respond at all.
		const recall = waitAtMost(this.#disk.recall(key), MAX_RECALL).finally(() => this.#recalls.delete(key));
		this.#recalls.set(key, recall);
		return recall;
	}

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		const stored = response as StoredResponse;
		const { entry, serial } = stored;
		// A thread that holds a removed response can still read it.
		if (stored.copy !== undefined && end - start === stored.length && this.#memory.serial(entry) === serial) {
			return stored.copy;
		}
		if (!this.#pin(entry, serial)) return undefined;
		const memory = this.#memory;
		const length = end - start;
		const isLong = stored.length >= MIN_FILED_BODY_BYTES;
		if (isLong) {
			const wanted = this.#answers && length > WHOLE && ++stored.wanted > 2;
			const filed = this.#filing.body(entry, start, length, wanted, () => this.#unpin(entry));
			if (filed !== undefined) return filed;
		}
		const first = memory.field(entry, ENTRY_WORD.bodyBlock);
		const release = (): void => {
			if (isLong) this.#filing.read(entry);
			this.#unpin(entry);
		};
		if (length > WHOLE) return new PinnedBody(memory.blocks, first, start, length, release);
		const bytes = Buffer.allocUnsafe(length);
		memory.blocks.copy(first, start, length, bytes);
		release();
		if (!isLong && length === stored.length && ++stored.wanted > 2) this.#keepCopy(stored, bytes);
		return bytes;
	}

	pin(response: CachedResponse): (() => void) | undefined {
		const { entry, serial } = response as StoredResponse;
		if (!this.#pin(entry, serial)) return undefined;
		let held = true;
		return () => {
			if (held) this.#unpin(entry);
			held = false;
		};
	}

	/** The seed of the hashes. */
	get seed(): number {
		return this.#memory.seed;
	}

	urlEpoch(host: string, path: string, query: string | undefined): number {
		return this.#memory.moment(hashKey(urlText(host, path, query), this.#memory.seed).a);
	}

	store(head: CachedHead, length: number | undefined, most: number, since: number): CacheWriter | undefined {
		const bytes = Buffer.from(JSON.stringify(head), 'utf8');
		const bound = Math.min(most, this.maxBodyBytes);
		if (bytes.byteLength > MAX_HEAD || (length ?? 0) > bound) return undefined;
		const memory = this.#memory;
		const hashes = hashesOf(head, memory.seed);
		const entry = memory.locked(() => {
			// This is checked with the lock held, because a purge from now on also checks entries that are being filled.
			if (memory.moment(hashes.url) !== since) return 0;
			const begun = memory.begin(hashes);
			if (begun === 0) return 0;
			if (memory.setHead(begun, bytes)) return begun;
			memory.remove(begun);
			return 0;
		});
		if (entry === 0) return undefined;
		return new EntryWriter(memory, entry, bound, () => this.#publish(head, entry));
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		const { entry, serial, known, length } = response as StoredResponse;
		const memory = this.#memory;
		const bytes = Buffer.from(JSON.stringify(head), 'utf8');
		if (bytes.byteLength <= MAX_HEAD) {
			memory.locked(() => {
				if (memory.serial(entry) !== serial || memory.field(entry, ENTRY_WORD.state) !== ENTRY_LIVE) return;
				if (memory.setHead(entry, bytes)) memory.touch(known.hash.a);
				else if (memory.serial(entry) === serial) memory.remove(entry);
			});
			if (this.#disk !== undefined && !isHardlyNewer(head, response.head)) this.#disk.stored(head.key, entry, serial);
		}
		return new StoredResponse(head, length, entry, serial, known);
	}

	remove(response: CachedResponse): void {
		const { entry, serial, head } = response as StoredResponse;
		const memory = this.#memory;
		memory.locked(() => {
			if (memory.serial(entry) === serial) memory.remove(entry);
		});
		this.#disk?.removed(head.key);
	}

	invalidate(host: string, path: string, query: string | undefined): void | Promise<void> {
		const memory = this.#memory;
		const hash = hashKey(urlText(host, path, query), memory.seed).a;
		memory.locked(() => {
			memory.passMoment(hash);
			for (const entry of memory.ofUrl(hash)) memory.remove(entry);
		});
		return this.#disk?.invalidated(host, path, query);
	}

	joinFetch(key: string, maxWait: number): FetchTicket {
		return this.#coalescer.take(key, hashKey(key, this.#memory.seed), maxWait);
	}

	countEvent(event: CacheEvent): void {
		this.#count(event);
	}

	/** Keeps a copy of a popular body, because copying it for each response would dominate the cost. */
	#keepCopy(stored: StoredResponse, bytes: Buffer): void {
		if (!this.#known.grow(stored.known, bytes.byteLength)) return;
		stored.copy = bytes.byteLength <= MAX_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes;
	}

	/** Reads the heads of a key from the shared memory. */
	#look(key: string): readonly StoredResponse[] {
		const memory = this.#memory;
		const hash = this.#known.get(key)?.hash ?? hashKey(key, memory.seed);
		const bucket = memory.bucketOf(hash.a);
		const heads: { bytes: Buffer; entry: number; serial: number; length: number }[] = [];
		const version = memory.locked(() => {
			for (const entry of memory.chain(hash)) {
				const serial = memory.serial(entry);
				heads.push({ bytes: memory.head(entry), entry, serial, length: memory.field(entry, ENTRY_WORD.bodyLength) });
				memory.queues.used(entry);
			}
			return memory.version(bucket);
		});
		if (heads.length === 0) {
			this.#known.delete(key);
			return NOTHING;
		}
		const known: Known = { hash, bucket, version, responses: [], bytes: key.length };
		for (const { bytes, entry, serial, length } of heads) {
			const head = JSON.parse(bytes.toString('utf8')) as CachedHead;
			// Two keys may have the same hash.
			if (head.key !== key) continue;
			known.responses.push(new StoredResponse(head, length, entry, serial, known));
			known.bytes += bytes.byteLength * HEAD_WEIGHT;
		}
		this.#known.set(key, known);
		return known.responses;
	}

	/** Publishes a complete response. Returns false if it has been purged meanwhile or if a newer one is stored. */
	#publish(head: CachedHead, entry: number): boolean {
		const memory = this.#memory;
		const bucket = memory.bucketOf(hashKey(head.key, memory.seed).a);
		const serial = memory.serial(entry);
		let published = false;
		for (let tries = 0, settled = false; !settled; tries++) {
			const version = memory.version(bucket);
			const replaced = this.#replacedBy(head);
			const now = Date.now();
			// A response from the future means that the clock was set back.
			const isLate = replaced.some(({ head: { storedAt } }) => storedAt > head.storedAt && storedAt <= now);
			memory.locked(() => {
				// Another thread has published the same response in the meantime.
				if (memory.version(bucket) !== version && tries < MAX_LOOKS) return;
				settled = true;
				if (isLate || memory.isBroken || memory.field(entry, ENTRY_WORD.doomed) !== 0) return;
				for (const old of replaced) if (memory.serial(old.entry) === old.serial) memory.remove(old.entry);
				memory.publish(entry);
				published = true;
			});
		}
		if (published) this.#disk?.stored(head.key, entry, serial);
		return published;
	}

	/** Returns the stored responses that a new one replaces. */
	#replacedBy(head: CachedHead): readonly StoredResponse[] {
		const all = this.#look(head.key);
		const same = all.filter(({ head: { selecting } }) => selecting.join('\n') === head.selecting.join('\n'));
		if (all.length - same.length < MAX_VARIANTS) return same;
		const oldest = all.reduce((a, b) => (a.head.storedAt <= b.head.storedAt ? a : b));
		return oldest.head.storedAt <= head.storedAt ? [...same, oldest] : all;
	}

	#pin(entry: number, serial: number): boolean {
		const pinned = this.#pins.get(entry);
		if (pinned !== undefined) {
			if (pinned.serial !== serial) return false;
			pinned.times++;
			return true;
		}
		const memory = this.#memory;
		memory.pin(entry);
		if (memory.serial(entry) !== serial) {
			memory.unpin(entry, serial);
			return false;
		}
		this.#pins.set(entry, { times: 1, serial });
		return true;
	}

	#unpin(entry: number): void {
		const pinned = this.#pins.get(entry);
		if (pinned === undefined || --pinned.times > 0) return;
		this.#pins.delete(entry);
		this.#memory.unpin(entry, pinned.serial);
	}
}

/**
 * Reports whether a response was revalidated shortly before, with the same lifetime and caching rules. If each revalidation were
 * written to disk, a popular response would displace everything else there.
 */
function isHardlyNewer(head: CachedHead, before: CachedHead): boolean {
	return head.storedAt - before.storedAt < CONFIRMED_SHORTLY && keptBy(head) === keptBy(before);
}

function keptBy(head: CachedHead): string {
	const { lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags } = head;
	return JSON.stringify([lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags]);
}

/** Returns the hashes by which a response's entry is found. */
function hashesOf({ key, host, path, query }: CachedHead, seed: number): EntryHashes {
	return {
		key: hashKey(key, seed),
		url: hashKey(urlText(host, path, query), seed).a,
		path: hashKey(plainPath(path), seed).a,
	};
}
