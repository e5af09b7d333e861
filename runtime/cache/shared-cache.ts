/** The response cache of one thread: what all threads share in memory, with the heads that are asked for often at hand. */
import { isAscii } from 'node:buffer';
import type { Body, BodySource } from '../../compiler/exchange/body.ts';
import type {
	CachedHead,
	CachedResponse,
	CacheEvent,
	CacheWriter,
	FetchTurn,
	ResponseCache,
} from '../../compiler/exchange/response-cache.ts';
import { CacheMemory } from './cache-memory.ts';
import { FetchTurns } from './fetch-turns.ts';
import { hashKey, type KeyHash, urlText } from './key-hash.ts';
import { BLOCK, ENTRY, LIVE } from './memory-layout.ts';

/** Bytes of a body up to which it is copied out at once. */
const WHOLE = 65_536;
/** Bytes side by side that are sent as they stand in the shared memory, at least and at most at once. */
const LEAST_RUN = 16_384;
const LONGEST_RUN = 262_144;
/** Share of the ceiling that all threads together may use for copies of bodies that are asked for all the time. */
const COPIES_SHARE = 1 / 32;
/** Bytes of a body that is kept as text, which goes out with its head, where each byte is a character. */
const LONGEST_TEXT = 1024;
/** Keys whose heads a thread keeps at hand. */
const AT_HAND = 1024;
/** Bytes of a head, beyond which a response is not kept. */
const LONGEST_HEAD = 64 * 1024;
/** Responses of one key: fields that clients choose freely must not fill the store with one page. */
const MOST_VARIANTS = 64;

/** A stored response as this thread knows it. */
class StoredResponse implements CachedResponse {
	readonly head: CachedHead;
	readonly length: number;
	readonly entry: number;
	readonly serial: number;
	readonly hash: KeyHash;
	/** Times that the whole body was wanted, and a copy of it once it is worth one. */
	wanted = 0;
	copy: Uint8Array | string | undefined = undefined;

	constructor(head: CachedHead, length: number, entry: number, serial: number, hash: KeyHash) {
		this.head = head;
		this.length = length;
		this.entry = entry;
		this.serial = serial;
		this.hash = hash;
	}
}

/** What is known of a key while the version of its bucket is this. */
interface Known {
	readonly hash: KeyHash;
	readonly bucket: number;
	readonly version: number;
	readonly responses: readonly StoredResponse[];
}

const NOTHING: readonly StoredResponse[] = [];

/** Where a cache lives, and who counts for it. */
export interface SharedCacheSurroundings {
	readonly buffer: SharedArrayBuffer;
	/** Bytes. */
	readonly ceiling: number;
	readonly rows: number;
	/** Row of this thread. */
	readonly thread: number;
	count(event: CacheEvent): void;
}

/** A cache that all threads share. */
export class SharedCache implements ResponseCache {
	readonly largest: number;
	readonly #memory: CacheMemory;
	readonly #turns: FetchTurns;
	readonly #count: (event: CacheEvent) => void;
	readonly #known = new Map<string, Known>();
	/** Bytes of bodies that this thread has copies of. */
	#copied = 0;
	readonly #mostCopied: number;
	/** Entries that this thread reads, how often, and which serial they had. */
	readonly #pins = new Map<number, { times: number; readonly serial: number }>();

	constructor({ buffer, ceiling, rows, thread, count }: SharedCacheSurroundings) {
		this.#memory = new CacheMemory(buffer, ceiling, rows, thread);
		this.#turns = new FetchTurns(this.#memory, thread);
		this.#count = count;
		this.#mostCopied = (ceiling * COPIES_SHARE) / rows;
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

	body(response: CachedResponse, start: number, end: number): Body | undefined {
		const stored = response as StoredResponse;
		const { entry, serial } = stored;
		if (stored.copy !== undefined && end - start === stored.length) {
			return this.#memory.serial(entry) === serial ? stored.copy : undefined;
		}
		if (!this.#pin(entry, serial)) return undefined;
		const memory = this.#memory;
		const first = memory.field(entry, ENTRY.bodyBlock);
		const length = end - start;
		if (length > WHOLE) return new PinnedBody(memory, first, start, length, () => this.#unpin(entry));
		const bytes = Buffer.allocUnsafe(length);
		memory.copy(first, start, length, bytes);
		this.#unpin(entry);
		if (length === stored.length && ++stored.wanted > 2) this.#keepCopy(stored, bytes);
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

	store(head: CachedHead, length: number | undefined, most: number): CacheWriter | undefined {
		const bytes = Buffer.from(JSON.stringify(head), 'utf8');
		const bound = Math.min(most, this.largest);
		if (bytes.byteLength > LONGEST_HEAD || (length ?? 0) > bound) return undefined;
		const memory = this.#memory;
		const entry = memory.locked(() => {
			const begun = memory.begin();
			if (begun === 0) return 0;
			if (memory.setHead(begun, bytes)) return begun;
			memory.remove(begun);
			return 0;
		});
		if (entry === 0) return undefined;
		return new EntryWriter(memory, entry, bound, () => this.#publish(head, entry));
	}

	refresh(response: CachedResponse, head: CachedHead): CachedResponse {
		const { entry, serial, hash, length } = response as StoredResponse;
		const memory = this.#memory;
		const bytes = Buffer.from(JSON.stringify(head), 'utf8');
		if (bytes.byteLength <= LONGEST_HEAD) {
			memory.locked(() => {
				if (memory.serial(entry) !== serial || memory.field(entry, ENTRY.state) !== LIVE) return;
				if (memory.setHead(entry, bytes)) memory.touch(hash.a);
				else memory.remove(entry);
			});
		}
		return new StoredResponse(head, length, entry, serial, hash);
	}

	remove(response: CachedResponse): void {
		const { entry, serial } = response as StoredResponse;
		const memory = this.#memory;
		memory.locked(() => {
			if (memory.serial(entry) === serial) memory.remove(entry);
		});
	}

	invalidate(host: string, path: string, query: string | undefined): void {
		const memory = this.#memory;
		const hash = hashKey(urlText(host, path, query), memory.seed).a;
		memory.locked(() => {
			for (const entry of memory.ofUrl(hash)) memory.remove(entry);
		});
	}

	turn(key: string, patience: number): FetchTurn {
		return this.#turns.take(key, hashKey(key, this.#memory.seed), patience);
	}

	count(event: CacheEvent): void {
		this.#count(event);
	}

	/** Most answers are one of a few: making a copy anew for each would cost more than all else. */
	#keepCopy(stored: StoredResponse, bytes: Buffer): void {
		if (this.#copied + bytes.byteLength > this.#mostCopied) {
			for (const { responses } of this.#known.values()) for (const one of responses) one.copy = undefined;
			this.#copied = 0;
		}
		this.#copied += bytes.byteLength;
		stored.copy = bytes.byteLength <= LONGEST_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes;
	}

	/** Reads the heads of a key from the shared memory. */
	#look(key: string): readonly StoredResponse[] {
		const memory = this.#memory;
		const hash = this.#known.get(key)?.hash ?? hashKey(key, memory.seed);
		const bucket = memory.bucketOf(hash.a);
		const heads: { bytes: Buffer; entry: number; serial: number; length: number }[] = [];
		const version = memory.locked(() => {
			for (const entry of memory.chain(hash.a, hash.b)) {
				const bytes = Buffer.allocUnsafe(memory.field(entry, ENTRY.headLength));
				memory.copy(memory.field(entry, ENTRY.headBlock), 0, bytes.byteLength, bytes);
				heads.push({ bytes, entry, serial: memory.serial(entry), length: memory.field(entry, ENTRY.bodyLength) });
				memory.queues.used(entry);
			}
			return memory.version(bucket);
		});
		if (heads.length === 0) {
			this.#known.delete(key);
			return NOTHING;
		}
		const responses: StoredResponse[] = [];
		for (const { bytes, entry, serial, length } of heads) {
			const head = JSON.parse(bytes.toString('utf8')) as CachedHead;
			// Two keys may have one hash.
			if (head.key === key) responses.push(new StoredResponse(head, length, entry, serial, hash));
		}
		if (this.#known.size >= AT_HAND) {
			this.#known.clear();
			this.#copied = 0;
		}
		this.#known.set(key, { hash, bucket, version, responses });
		return responses;
	}

	/** The response of an entry is whole. */
	#publish(head: CachedHead, entry: number): void {
		const memory = this.#memory;
		const hash = hashKey(head.key, memory.seed);
		const replaced = this.#replacedBy(head);
		const url = hashKey(urlText(head.host, head.path, head.query), memory.seed).a;
		memory.locked(() => {
			for (const old of replaced) if (memory.serial(old.entry) === old.serial) memory.remove(old.entry);
			memory.publish(entry, hash.a, hash.b, url);
		});
	}

	/** Stored responses that a new one takes the place of. */
	#replacedBy(head: CachedHead): readonly StoredResponse[] {
		const all = this.#look(head.key);
		const same = all.filter(({ head: { selecting } }) => selecting.join('\n') === head.selecting.join('\n'));
		if (all.length - same.length < MOST_VARIANTS) return same;
		const oldest = all.reduce((a, b) => (a.head.storedAt <= b.head.storedAt ? a : b));
		return [...same, oldest];
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
			memory.unpin(entry);
			return false;
		}
		this.#pins.set(entry, { times: 1, serial });
		return true;
	}

	#unpin(entry: number): void {
		const pinned = this.#pins.get(entry);
		if (pinned === undefined || --pinned.times > 0) return;
		this.#pins.delete(entry);
		this.#memory.unpin(entry);
	}
}

/** Fills an entry, block by block. */
class EntryWriter implements CacheWriter {
	readonly #memory: CacheMemory;
	readonly #entry: number;
	readonly #most: number;
	readonly #publish: () => void;
	#size = 0;
	/** First byte of the last block, and how much of it is used. */
	#block = -1;
	#used = BLOCK;
	#over = false;

	constructor(memory: CacheMemory, entry: number, most: number, publish: () => void) {
		this.#memory = memory;
		this.#entry = entry;
		this.#most = most;
		this.#publish = publish;
	}

	write(bytes: Uint8Array): boolean {
		if (this.#over) return false;
		if (this.#size + bytes.byteLength > this.#most || !this.#append(bytes)) {
			this.abandon();
			return false;
		}
		return true;
	}

	commit(): void {
		if (this.#over) return;
		this.#over = true;
		const memory = this.#memory;
		memory.words[memory.at(this.#entry) + ENTRY.bodyLength] = this.#size;
		this.#publish();
	}

	abandon(): void {
		if (this.#over) return;
		this.#over = true;
		const memory = this.#memory;
		memory.locked(() => memory.remove(this.#entry));
	}

	#append(bytes: Uint8Array): boolean {
		const memory = this.#memory;
		const blocks = Math.ceil((bytes.byteLength - (BLOCK - this.#used)) / BLOCK);
		let taken = 0;
		const starts: number[] = [];
		if (blocks > 0) {
			memory.locked(() => {
				for (; taken < blocks; taken++) {
					const block = memory.grow(this.#entry);
					if (block === -1) return;
					starts.push(block);
				}
			});
			if (taken < blocks) return false;
		}
		let done = 0;
		let next = 0;
		while (done < bytes.byteLength) {
			if (this.#used === BLOCK) {
				this.#block = starts[next++]!;
				this.#used = 0;
			}
			const size = Math.min(BLOCK - this.#used, bytes.byteLength - done);
			memory.data.set(bytes.subarray(done, done + size), this.#block * BLOCK + this.#used);
			this.#used += size;
			done += size;
		}
		this.#size += bytes.byteLength;
		return true;
	}
}

/** A long body out of the shared memory, which stays there until the last byte has been sent. */
class PinnedBody implements BodySource {
	readonly length: number;
	readonly #memory: CacheMemory;
	readonly #release: () => void;
	/** Block that is next, and what of it has been sent. */
	#block: number;
	#skip: number;
	#sent = 0;
	#piece: Buffer | undefined = undefined;
	#over = false;

	constructor(memory: CacheMemory, first: number, start: number, length: number, release: () => void) {
		this.#memory = memory;
		this.#block = memory.forward(first, start);
		this.#skip = start % BLOCK;
		this.length = length;
		this.#release = release;
	}

	pull(): Uint8Array | null {
		const left = this.length - this.#sent;
		if (this.#over || left === 0) {
			this.cancel();
			return null;
		}
		const run = this.#memory.run(this.#block, this.#skip, Math.min(LONGEST_RUN, left));
		if (run.byteLength >= LEAST_RUN || run.byteLength === left) {
			this.#advance(run.byteLength);
			return run;
		}
		// The piece before has left the process: its memory can be used again.
		this.#piece ??= Buffer.allocUnsafeSlow(Math.min(WHOLE, this.length));
		const size = Math.min(this.#piece.byteLength, left);
		this.#memory.copy(this.#block, this.#skip, size, this.#piece.subarray(0, size));
		this.#advance(size);
		return this.#piece.subarray(0, size);
	}

	#advance(size: number): void {
		this.#block = this.#memory.forward(this.#block, this.#skip + size);
		this.#skip = (this.#skip + size) % BLOCK;
		this.#sent += size;
	}

	cancel(): void {
		if (this.#over) return;
		this.#over = true;
		this.#piece = undefined;
		this.#release();
	}
}
