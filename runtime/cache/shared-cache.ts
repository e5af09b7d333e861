/** The response cache of one thread: what all threads share in memory, with the heads that are asked for often at hand. */
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
import { BodyFiling, LEAST_FILED } from './body-filing.ts';
import { CacheMemory, type EntryHashes } from './cache-memory.ts';
import { EntryWriter } from './entry-writer.ts';
import { type AtHand, HeadsAtHand } from './heads-at-hand.ts';
import { hashKey, type KeyHash, plainPath, urlText } from './key-hash.ts';
import { BLOCK, ENTRY, LIVE } from './memory-layout.ts';
import { PinnedBody } from './pinned-body.ts';
import { RequestCoalescer, within } from './request-coalescer.ts';

/** Bytes of a body up to which it is copied out at once. */
const WHOLE = 65_536;
/** Share of the ceiling that all threads together may use for heads at hand and copies of bodies, and least of a thread. */
const AT_HAND_SHARE = 1 / 40;
const LEAST_AT_HAND = 65_536;
/** Keys whose heads a thread keeps at hand. */
const KEYS_AT_HAND = 2048;
/** Bytes of a body that is kept as text, which goes out with its head, where each byte is a character. */
const LONGEST_TEXT = 1024;
/** Bytes of a head, beyond which a response is not kept. */
const LONGEST_HEAD = 64 * 1024;
/** Bytes of a head in the thread's own memory, per byte of its text: objects take more than what they were read from. */
const HEAD_WEIGHT = 5;
/** Responses of one key: fields that clients choose freely must not fill the store with one page. */
export const MOST_VARIANTS: number = 64;

/** A stored response as this thread knows it. */
export class StoredResponse implements CachedResponse {
	readonly head: CachedHead;
	readonly length: number;
	readonly entry: number;
	readonly serial: number;
	readonly known: Known;
	/** Times that the whole body was wanted, and a copy of it once it is worth one. */
	wanted = 0;
	copy: Uint8Array | string | undefined = undefined;

	constructor(head: CachedHead, length: number, entry: number, serial: number, known: Known) {
		this.head = head;
		this.length = length;
		this.entry = entry;
		this.serial = serial;
		this.known = known;
	}
}

/** What is known of a key while the version of its bucket is this. */
interface Known extends AtHand {
	readonly hash: KeyHash;
	readonly bucket: number;
	readonly version: number;
	readonly responses: StoredResponse[];
}

/** Times that a bucket is looked at which others change. */
const MOST_LOOKS = 8;

/** Milliseconds that a request waits for what is on disk. */
const LONGEST_RECALL = 1000;

/** Milliseconds between two confirmations that are written to disk, where the second one says nothing new. */
const CONFIRMED_SHORTLY = 60_000;

const NOTHING: readonly StoredResponse[] = [];

/** The disk tier as a thread reaches it: the main thread has it. */
export interface DiskPort {
	/** A response was stored, or confirmed. */
	stored(key: string, entry: number, serial: number): void;
	/** A response does not hold any more. */
	removed(key: string): void;
	/** Resolves once nothing of the URL comes back. */
	invalidated(host: string, path: string, query: string | undefined): Promise<void>;
	/** Settles once what is on disk of a key is in memory. */
	recall(key: string): Promise<void>;
}

/** Where a cache lives, and who counts for it. */
export interface SharedCacheDeps {
	readonly buffer: SharedArrayBuffer;
	/** Bytes. */
	readonly ceiling: number;
	readonly rows: number;
	/** Row of this thread. */
	readonly thread: number;
	count(event: CacheEvent): void;
	/** Bytes of its disk, and the way there: the main thread needs none. */
	readonly diskSize?: number | undefined;
	readonly disk?: DiskPort | undefined;
}

/** A cache that all threads share. */
export class SharedCache implements ResponseCache {
	readonly largest: number;
	readonly #memory: CacheMemory;
	readonly #turns: RequestCoalescer;
	readonly #count: (event: CacheEvent) => void;
	readonly #known: HeadsAtHand<Known>;
	readonly #filing: BodyFiling;
	readonly #answers: boolean;
	readonly #disk: DiskPort | undefined;
	readonly #recalls = new Map<string, Promise<void>>();
	/** Entries that this thread reads, how often, and which serial they had. */
	readonly #pins = new Map<number, { times: number; readonly serial: number }>();

	constructor({ buffer, ceiling, rows, thread, count, diskSize, disk }: SharedCacheDeps) {
		this.#memory = new CacheMemory(buffer, ceiling, rows, thread, diskSize);
		this.#disk = disk;
		this.#turns = new RequestCoalescer(this.#memory, thread);
		this.#count = count;
		this.#filing = new BodyFiling(this.#memory);
		// The main thread answers no requests.
		this.#answers = thread !== rows;
		const share = thread === rows ? 0 : (ceiling * AT_HAND_SHARE) / rows;
		this.#known = new HeadsAtHand(KEYS_AT_HAND, Math.max(LEAST_AT_HAND, share));
		this.largest = Math.floor((this.#memory.layout.blocks * BLOCK) / 8);
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

	/** For the main thread: the response that a thread has just stored, unless it is gone. */
	responseAt(key: string, entry: number, serial: number): StoredResponse | undefined {
		return this.#look(key).find(one => one.entry === entry && one.serial === serial);
	}

	recall(key: string): Promise<void> | undefined {
		if (this.#disk === undefined) return undefined;
		const under = this.#recalls.get(key);
		if (under !== undefined || !this.#memory.mayBeOnDisk(hashKey(key, this.#memory.seed).a)) return under;
		// Nobody waits for a disk that is slower than an origin may be, or whose answer does not come at all.
		const recall = within(this.#disk.recall(key), LONGEST_RECALL).finally(() => this.#recalls.delete(key));
		this.#recalls.set(key, recall);
		return recall;
	}

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		const stored = response as StoredResponse;
		const { entry, serial } = stored;
		// What was removed is still there for those who hold it.
		if (stored.copy !== undefined && end - start === stored.length && this.#memory.serial(entry) === serial) {
			return stored.copy;
		}
		if (!this.#pin(entry, serial)) return undefined;
		const memory = this.#memory;
		const length = end - start;
		const isLong = stored.length >= LEAST_FILED;
		if (isLong) {
			const wanted = this.#answers && length > WHOLE && ++stored.wanted > 2;
			const filed = this.#filing.body(entry, start, length, wanted, () => this.#unpin(entry));
			if (filed !== undefined) return filed;
		}
		const first = memory.field(entry, ENTRY.bodyBlock);
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

	hold(response: CachedResponse): (() => void) | undefined {
		const { entry, serial } = response as StoredResponse;
		if (!this.#pin(entry, serial)) return undefined;
		let held = true;
		return () => {
			if (held) this.#unpin(entry);
			held = false;
		};
	}

	/** Seed of the hashes. */
	get seed(): number {
		return this.#memory.seed;
	}

	moment(host: string, path: string, query: string | undefined): number {
		return this.#memory.moment(hashKey(urlText(host, path, query), this.#memory.seed).a);
	}

	store(head: CachedHead, length: number | undefined, most: number, since: number): CacheWriter | undefined {
		const bytes = Buffer.from(JSON.stringify(head), 'utf8');
		const bound = Math.min(most, this.largest);
		if (bytes.byteLength > LONGEST_HEAD || (length ?? 0) > bound) return undefined;
		const memory = this.#memory;
		const hashes = hashesOf(head, memory.seed);
		const entry = memory.locked(() => {
			// With the lock held: a purge looks at what is being filled from now on.
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
		if (bytes.byteLength <= LONGEST_HEAD) {
			memory.locked(() => {
				if (memory.serial(entry) !== serial || memory.field(entry, ENTRY.state) !== LIVE) return;
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

	turn(key: string, patience: number): FetchTicket {
		return this.#turns.take(key, hashKey(key, this.#memory.seed), patience);
	}

	count(event: CacheEvent): void {
		this.#count(event);
	}

	/** Most answers are one of a few: making a copy anew for each would cost more than all else. */
	#keepCopy(stored: StoredResponse, bytes: Buffer): void {
		if (!this.#known.grow(stored.known, bytes.byteLength)) return;
		stored.copy = bytes.byteLength <= LONGEST_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes;
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
				heads.push({ bytes: memory.head(entry), entry, serial, length: memory.field(entry, ENTRY.bodyLength) });
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
			// Two keys may have one hash.
			if (head.key !== key) continue;
			known.responses.push(new StoredResponse(head, length, entry, serial, known));
			known.bytes += bytes.byteLength * HEAD_WEIGHT;
		}
		this.#known.set(key, known);
		return known.responses;
	}

	/** The response of an entry is whole; false when it was purged while it came, or there is a newer one. */
	#publish(head: CachedHead, entry: number): boolean {
		const memory = this.#memory;
		const bucket = memory.bucketOf(hashKey(head.key, memory.seed).a);
		const serial = memory.serial(entry);
		let published = false;
		for (let tries = 0, settled = false; !settled; tries++) {
			const version = memory.version(bucket);
			const replaced = this.#replacedBy(head);
			const now = Date.now();
			// One of the future tells of a clock that was set back.
			const isLate = replaced.some(({ head: { storedAt } }) => storedAt > head.storedAt && storedAt <= now);
			memory.locked(() => {
				// Another thread has published the same meanwhile.
				if (memory.version(bucket) !== version && tries < MOST_LOOKS) return;
				settled = true;
				if (isLate || memory.isBroken || memory.field(entry, ENTRY.doomed) !== 0) return;
				for (const old of replaced) if (memory.serial(old.entry) === old.serial) memory.remove(old.entry);
				memory.publish(entry);
				published = true;
			});
		}
		if (published) this.#disk?.stored(head.key, entry, serial);
		return published;
	}

	/** Stored responses that a new one takes the place of. */
	#replacedBy(head: CachedHead): readonly StoredResponse[] {
		const all = this.#look(head.key);
		const same = all.filter(({ head: { selecting } }) => selecting.join('\n') === head.selecting.join('\n'));
		if (all.length - same.length < MOST_VARIANTS) return same;
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
 * Whether a response was confirmed shortly before and is kept for as long and by the same as then: with every request that
 * has it confirmed all of it would be written to disk, and nothing else would stay there.
 */
function isHardlyNewer(head: CachedHead, before: CachedHead): boolean {
	return head.storedAt - before.storedAt < CONFIRMED_SHORTLY && keptBy(head) === keptBy(before);
}

function keptBy(head: CachedHead): string {
	const { lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags } = head;
	return JSON.stringify([lifetime, staleWhileRevalidate, staleIfError, mustRevalidate, noCache, etag, modified, tags]);
}

/** What the entry of a response is found by. */
function hashesOf({ key, host, path, query }: CachedHead, seed: number): EntryHashes {
	return {
		key: hashKey(key, seed),
		url: hashKey(urlText(host, path, query), seed).a,
		path: hashKey(plainPath(path), seed).a,
	};
}
