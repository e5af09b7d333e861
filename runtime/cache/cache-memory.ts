/**
 * The shared memory of a response cache: entries found by hash, each with a chain of blocks for its head and one for its
 * body. Methods that change something, except for pins, must be called with the lock held.
 */
import { randomInt } from 'node:crypto';
import { type MemoryFiles, memoryFiles } from '../sockets/memory-files.ts';
import { BlockChains } from './block-chains.ts';
import type { KeyHash } from './key-hash.ts';
import {
	BLOCK_BYTES,
	type CacheLayout,
	cacheLayout,
	ENTRY_FILLING,
	ENTRY_FREE,
	ENTRY_LIVE,
	ENTRY_WORD,
	ENTRY_ZOMBIE,
	HEADER_WORD,
	INVALIDATION_COUNTERS,
	NO_QUEUE,
} from './memory-layout.ts';
import { MemoryLock } from './memory-lock.ts';
import { QueueKeeper } from './queue-keeper.ts';

/** Number of times that the main thread sleeps, about a second in total, before it gives up on a lock. */
const MAX_MAIN_SLEEPS = 200;

/** The hashes by which an entry is found. */
export interface EntryHashes {
	readonly key: KeyHash;
	/** Hash of the host, path and query. */
	readonly url: number;
	/** Hash of only the normalized path. */
	readonly path: number;
}

/** One thread's view of the cache's shared memory. */
export class CacheMemory {
	readonly layout: CacheLayout;
	readonly words: Int32Array;
	readonly blocks: BlockChains;
	readonly queues: QueueKeeper;
	readonly #lock: MemoryLock;
	readonly #diskFilter: Uint8Array;
	/** Functions for in-memory files: null before the first use; undefined if the system has no such files. */
	#files: MemoryFiles | undefined | null = null;
	readonly #threadNumber: number;
	readonly #pinWord: number;
	readonly #pinBit: number;

	/**
	 * @param maxBytes Maximum size of the cache.
	 * @param maxThreads Maximum number of worker threads.
	 * @param thread This thread, counted from 0; `maxThreads` for the main thread.
	 * @param diskBytes Maximum size of the disk tier; 0 if there is none.
	 */
	constructor(buffer: SharedArrayBuffer, maxBytes: number, maxThreads: number, thread: number, diskBytes: number = 0) {
		this.layout = cacheLayout(maxBytes, maxThreads, diskBytes);
		this.words = new Int32Array(buffer, 0, this.layout.dataAt / 4);
		const blockData = new Uint8Array(buffer, this.layout.dataAt, this.layout.blocks * BLOCK_BYTES);
		this.blocks = new BlockChains(this.words, blockData, this.layout, () => this.#evictEntry());
		this.#diskFilter = new Uint8Array(buffer, this.layout.filterAt * 4, this.layout.filterBytes);
		this.queues = new QueueKeeper(this.words, this.layout);
		this.#threadNumber = thread + 1;
		this.#lock = new MemoryLock(
			this.words,
			this.#threadNumber,
			thread === maxThreads ? MAX_MAIN_SLEEPS : Number.POSITIVE_INFINITY,
		);
		this.#pinWord = ENTRY_WORD.pins + (thread >> 5);
		this.#pinBit = 1 << (thread & 31);
	}

	/**
	 * Initializes the memory, on the main thread. By default, the seed of the hashes is a random number that no outsider can know.
	 */
	static prepare(buffer: SharedArrayBuffer, seed: number = randomInt(1, 2 ** 31 - 1)): void {
		new Int32Array(buffer)[HEADER_WORD.seed] = seed;
	}

	get seed(): number {
		return this.words[HEADER_WORD.seed]!;
	}

	/** True after a thread died during a change: nothing is found or stored until the store is reset. */
	get isBroken(): boolean {
		return Atomics.load(this.words, HEADER_WORD.broken) !== 0;
	}

	/** Runs a function with the lock held. On the main thread, throws LockLost if the lock cannot be acquired. */
	withLock<T>(run: () => T): T {
		return this.#lock.runLocked(run);
	}

	/** Returns the index of an entry's first word; entries are numbered from 1. */
	entryIndex(entry: number): number {
		return this.layout.entriesAt + (entry - 1) * this.layout.entryWords;
	}

	field(entry: number, field: number): number {
		return this.words[this.entryIndex(entry) + field]!;
	}

	bucketOf(hash: number): number {
		return hash & (this.layout.buckets - 1);
	}

	/** Returns the version of a bucket, which changes whenever an entry in the bucket is added, changed or removed. */
	bucketVersion(bucket: number): number {
		return Atomics.load(this.words, this.layout.versionsAt + bucket);
	}

	entrySerial(entry: number): number {
		return Atomics.load(this.words, this.entryIndex(entry) + ENTRY_WORD.serial);
	}

	/** Returns a number that changes whenever stored responses of a URL may have been purged or invalidated. */
	urlEpoch(url: number): number {
		const { words, layout } = this;
		const wordIndex = layout.invalidatedAt + (url & (INVALIDATION_COUNTERS - 1));
		return (Atomics.load(words, HEADER_WORD.purges) + Atomics.load(words, wordIndex)) | 0;
	}

	/**
	 * Prevents responses from being stored if their requests were sent before this call. `url` is the hash of the affected URL;
	 * if it is undefined, the responses of all URLs are affected.
	 */
	advanceEpoch(url: number | undefined): void {
		const wordIndex =
			url === undefined ? HEADER_WORD.purges : this.layout.invalidatedAt + (url & (INVALIDATION_COUNTERS - 1));
		Atomics.add(this.words, wordIndex, 1);
	}

	/** Counts a response that was written to disk (`change` 1) or removed from it (−1), by its hash. Called on the main thread. */
	countOnDisk(hashA: number, change: 1 | -1): void {
		const filterIndex = (hashA >>> 3) & (this.#diskFilter.length - 1);
		const count = this.#diskFilter[filterIndex]!;
		// A saturated counter stays saturated, because its true value is unknown.
		if (count < 255) this.#diskFilter[filterIndex] = count + change;
	}

	/** Returns false if no response with this hash is on disk; may return true although there is none. */
	mayBeOnDisk(hashA: number): boolean {
		return this.#diskFilter.length > 0 && this.#diskFilter[(hashA >>> 3) & (this.#diskFilter.length - 1)] !== 0;
	}

	/** Yields the live entries whose key has this hash. */
	*entriesOfKey({ a, b }: KeyHash): IterableIterator<number> {
		if (this.isBroken) return;
		let entry = this.words[this.layout.bucketsAt + this.bucketOf(a)]!;
		while (entry !== 0) {
			const entryIndex = this.entryIndex(entry);
			const nextEntry = this.words[entryIndex + ENTRY_WORD.chain]!;
			if (this.words[entryIndex + ENTRY_WORD.hashA] === a && this.words[entryIndex + ENTRY_WORD.hashB] === b)
				yield entry;
			entry = nextEntry;
		}
	}

	/** Yields the live entries whose URL has this hash. */
	*entriesOfUrl(hash: number): IterableIterator<number> {
		if (this.isBroken) return;
		let entry = this.words[this.layout.urlsAt + this.bucketOf(hash)]!;
		while (entry !== 0) {
			const entryIndex = this.entryIndex(entry);
			const nextEntry = this.words[entryIndex + ENTRY_WORD.urlChain]!;
			if (this.words[entryIndex + ENTRY_WORD.urlHash] === hash) yield entry;
			entry = nextEntry;
		}
	}

	/** Allocates an entry for this thread to fill; 0 if there is no room. */
	allocateEntry({ key, url, path }: EntryHashes): number {
		const { words, layout } = this;
		if (this.isBroken) return 0;
		let entry = words[HEADER_WORD.freeEntry]!;
		if (entry === 0 && words[HEADER_WORD.freshEntry]! < layout.entries) entry = ++words[HEADER_WORD.freshEntry]!;
		else {
			for (let attempt = 0; entry === 0 && attempt < 64 && this.#evictEntry(); attempt++)
				entry = words[HEADER_WORD.freeEntry]!;
			if (entry === 0) return 0;
			words[HEADER_WORD.freeEntry] = words[this.entryIndex(entry) + ENTRY_WORD.chain]!;
		}
		const entryIndex = this.entryIndex(entry);
		for (let field = 0; field < ENTRY_WORD.pins; field++)
			if (field !== ENTRY_WORD.serial) words[entryIndex + field] = 0;
		words[entryIndex + ENTRY_WORD.hashA] = key.a;
		words[entryIndex + ENTRY_WORD.hashB] = key.b;
		words[entryIndex + ENTRY_WORD.urlHash] = url;
		words[entryIndex + ENTRY_WORD.pathHash] = path;
		words[entryIndex + ENTRY_WORD.state] = ENTRY_FILLING;
		words[entryIndex + ENTRY_WORD.owner] = this.#threadNumber;
		return entry;
	}

	/** Appends a block to the body of an entry being filled; 0 if there is no room. */
	appendBlock(entry: number): number {
		const block = this.isBroken ? 0 : this.blocks.takeBlock();
		if (block === 0) return 0;
		const { words } = this;
		const entryIndex = this.entryIndex(entry);
		const lastBlock = words[entryIndex + ENTRY_WORD.bodyLast]!;
		if (lastBlock === 0) words[entryIndex + ENTRY_WORD.bodyBlock] = block;
		else this.blocks.linkBlock(lastBlock, block);
		words[entryIndex + ENTRY_WORD.bodyLast] = block;
		words[entryIndex + ENTRY_WORD.blocks]!++;
		return block;
	}

	/** Replaces an entry's head. Returns false if there is no room. */
	setHead(entry: number, bytes: Uint8Array): boolean {
		const { words, blocks } = this;
		const blockCount = headBlockCount(bytes.byteLength);
		const serial = this.entrySerial(entry);
		let firstBlock = 0;
		let lastBlock = 0;
		for (let i = 0; i < blockCount; i++) {
			const block = blocks.takeBlock();
			if (block === 0) {
				blocks.freeChain(firstBlock, lastBlock, i);
				return false;
			}
			if (lastBlock === 0) firstBlock = block;
			else blocks.linkBlock(lastBlock, block);
			lastBlock = block;
			blocks.write(block, 0, bytes.subarray(i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES));
		}
		if (this.entrySerial(entry) !== serial) {
			// The eviction that made room for the new head has removed the entry itself.
			blocks.freeChain(firstBlock, lastBlock, blockCount);
			return false;
		}
		const oldHeadBlocks = this.#freeHead(entry);
		const entryIndex = this.entryIndex(entry);
		words[entryIndex + ENTRY_WORD.headBlock] = firstBlock;
		words[entryIndex + ENTRY_WORD.headLength] = bytes.byteLength;
		words[entryIndex + ENTRY_WORD.blocks]! += blockCount - oldHeadBlocks;
		this.queues.accountResize(entry, blockCount - oldHeadBlocks);
		return true;
	}

	readHead(entry: number): Buffer {
		const bytes = Buffer.allocUnsafe(this.field(entry, ENTRY_WORD.headLength));
		this.blocks.copyBytes(this.field(entry, ENTRY_WORD.headBlock), 0, bytes.byteLength, bytes);
		return bytes;
	}

	/** Makes the entry visible to all threads. */
	publishEntry(entry: number): void {
		const { words, layout } = this;
		const entryIndex = this.entryIndex(entry);
		words[entryIndex + ENTRY_WORD.owner] = 0;
		words[entryIndex + ENTRY_WORD.state] = ENTRY_LIVE;
		const hashA = words[entryIndex + ENTRY_WORD.hashA]!;
		const bucket = layout.bucketsAt + this.bucketOf(hashA);
		words[entryIndex + ENTRY_WORD.chain] = words[bucket]!;
		words[bucket] = entry;
		const urlBucket = layout.urlsAt + this.bucketOf(words[entryIndex + ENTRY_WORD.urlHash]!);
		words[entryIndex + ENTRY_WORD.urlChain] = words[urlBucket]!;
		words[urlBucket] = entry;
		words[HEADER_WORD.entries]!++;
		this.queues.addEntry(entry);
		this.bumpVersion(hashA);
	}

	/** Changes the version of the bucket that contains a hash. */
	bumpVersion(hashA: number): void {
		Atomics.add(this.words, this.layout.versionsAt + this.bucketOf(hashA), 1);
	}

	/** Removes an entry from all threads' view. Its memory is freed once nobody reads it. */
	remove(entry: number): void {
		const { words, layout } = this;
		const entryIndex = this.entryIndex(entry);
		const state = words[entryIndex + ENTRY_WORD.state]!;
		if (state === ENTRY_FREE || state === ENTRY_ZOMBIE || this.isBroken) return;
		if (state === ENTRY_LIVE) {
			this.#unlinkEntry(
				layout.bucketsAt + this.bucketOf(words[entryIndex + ENTRY_WORD.hashA]!),
				entry,
				ENTRY_WORD.chain,
			);
			this.#unlinkEntry(
				layout.urlsAt + this.bucketOf(words[entryIndex + ENTRY_WORD.urlHash]!),
				entry,
				ENTRY_WORD.urlChain,
			);
			this.queues.removeEntry(entry);
			words[HEADER_WORD.entries]!--;
		}
		// The serial is incremented before the pins are checked, so that a thread that pins the entry later sees that it has been
		// removed.
		Atomics.add(words, entryIndex + ENTRY_WORD.serial, 1);
		if (state === ENTRY_LIVE) this.bumpVersion(words[entryIndex + ENTRY_WORD.hashA]!);
		if (this.#isPinned(entryIndex)) {
			words[entryIndex + ENTRY_WORD.state] = ENTRY_ZOMBIE;
			words[HEADER_WORD.zombies]!++;
		} else this.#releaseEntry(entry);
	}

	/** Prevents an entry's memory from being reused while this thread reads it. Does not need the lock. */
	pin(entry: number): void {
		Atomics.or(this.words, this.entryIndex(entry) + this.#pinWord, this.#pinBit);
	}

	/** Ends this thread's pin. Takes the lock if the entry, pinned with this serial, has been removed in the meantime. */
	unpin(entry: number, serial: number): void {
		const entryIndex = this.entryIndex(entry);
		Atomics.and(this.words, entryIndex + this.#pinWord, ~this.#pinBit);
		if (this.entrySerial(entry) !== serial) this.withLock(() => this.#freeRemovedEntry(entry));
	}

	/**
	 * Releases the pins and unfinished entries of a dead thread. Called on the main thread. If the thread died during a change, the
	 * store is no longer trusted. Throws LockLost if another dead thread, whose end has not been reported yet, holds the lock.
	 */
	onThreadEnded(thread: number): void {
		const { words } = this;
		this.#lock.takeOver(thread + 1, () => this.#markBroken());
		const lastEntry = words[HEADER_WORD.freshEntry]!;
		for (let entry = 1; entry <= lastEntry; entry++) {
			Atomics.and(words, this.entryIndex(entry) + ENTRY_WORD.pins + (thread >> 5), ~(1 << (thread & 31)));
		}
		for (let entry = 1; entry <= lastEntry && !this.isBroken; entry++) {
			const entryIndex = this.entryIndex(entry);
			const state = words[entryIndex + ENTRY_WORD.state]!;
			if (state !== ENTRY_ZOMBIE && (state !== ENTRY_FILLING || words[entryIndex + ENTRY_WORD.owner] !== thread + 1))
				continue;
			this.withLock(() => {
				if (words[entryIndex + ENTRY_WORD.state] === ENTRY_ZOMBIE) this.#freeRemovedEntry(entry);
				else if (words[entryIndex + ENTRY_WORD.owner] === thread + 1) this.remove(entry);
			});
		}
	}

	/** Resets a broken store. Returns false, without a reset, while any thread still reads it. Called on the main thread. */
	resetStore(): boolean {
		const { words, layout } = this;
		if (!this.closeFiles()) return false;
		this.withLock(() => {
			for (let word = HEADER_WORD.freeBlock; word <= HEADER_WORD.zombies; word++) words[word] = 0;
			words.fill(0, layout.bucketsAt, layout.bucketsAt + layout.buckets);
			words.fill(0, layout.urlsAt, layout.urlsAt + layout.buckets);
			for (let entry = 1; entry <= layout.entries; entry++)
				words[this.entryIndex(entry) + ENTRY_WORD.state] = ENTRY_FREE;
			words[HEADER_WORD.resets]!++;
			Atomics.store(words, HEADER_WORD.broken, 0);
		});
		return true;
	}

	/** Closes the files of a broken or unused store. Returns false while any thread still reads them. Called on the main thread. */
	closeFiles(): boolean {
		const { words } = this;
		const lastEntry = words[HEADER_WORD.freshEntry]!;
		for (let entry = 1; entry <= lastEntry; entry++) if (this.#isPinned(this.entryIndex(entry))) return false;
		for (let entry = 1; entry <= lastEntry; entry++) {
			const entryIndex = this.entryIndex(entry);
			if (words[entryIndex + ENTRY_WORD.file] === 0) continue;
			// The memory of the entry's blocks may have been returned to the system, so the entry becomes invalid, too.
			Atomics.add(words, entryIndex + ENTRY_WORD.serial, 1);
			this.#closeFile(entryIndex);
		}
		return true;
	}

	/** Hides all entries until the store is reset. Readers can continue, because their data is not moved. */
	#markBroken(): void {
		const { words, layout } = this;
		Atomics.store(words, HEADER_WORD.broken, 1);
		words[HEADER_WORD.entries] = 0;
		for (let entry = 1; entry <= layout.entries; entry++)
			Atomics.add(words, this.entryIndex(entry) + ENTRY_WORD.serial, 1);
		for (let bucket = 0; bucket < layout.buckets; bucket++) Atomics.add(words, layout.versionsAt + bucket, 1);
	}

	/** Evicts the least valuable entry; returns false if there is none. */
	#evictEntry(): boolean {
		const { words } = this;
		const victim = this.queues.chooseVictim();
		if (victim === 0) return false;
		this.remove(victim);
		words[HEADER_WORD.evictions]!++;
		return true;
	}

	/** Frees a removed entry that nobody reads any longer. */
	#freeRemovedEntry(entry: number): void {
		const entryIndex = this.entryIndex(entry);
		if (this.words[entryIndex + ENTRY_WORD.state] !== ENTRY_ZOMBIE || this.#isPinned(entryIndex) || this.isBroken)
			return;
		this.words[HEADER_WORD.zombies]!--;
		this.#releaseEntry(entry);
	}

	#isPinned(entryIndex: number): boolean {
		for (let word = entryIndex + ENTRY_WORD.pins, end = entryIndex + this.layout.entryWords; word < end; word++) {
			if (Atomics.load(this.words, word) !== 0) return true;
		}
		return false;
	}

	#releaseEntry(entry: number): void {
		const { words } = this;
		const entryIndex = this.entryIndex(entry);
		if (words[entryIndex + ENTRY_WORD.file] !== 0) this.#closeFile(entryIndex);
		const headBlocks = this.#freeHead(entry);
		this.blocks.freeChain(
			words[entryIndex + ENTRY_WORD.bodyBlock]!,
			words[entryIndex + ENTRY_WORD.bodyLast]!,
			words[entryIndex + ENTRY_WORD.blocks]! - headBlocks,
		);
		words[entryIndex + ENTRY_WORD.headBlock] = 0;
		words[entryIndex + ENTRY_WORD.bodyBlock] = 0;
		words[entryIndex + ENTRY_WORD.state] = ENTRY_FREE;
		words[entryIndex + ENTRY_WORD.queue] = NO_QUEUE;
		words[entryIndex + ENTRY_WORD.chain] = words[HEADER_WORD.freeEntry]!;
		words[HEADER_WORD.freeEntry] = entry;
	}

	#closeFile(entryIndex: number): void {
		const { words } = this;
		if (this.#files === null) this.#files = memoryFiles();
		this.#files?.close(words[entryIndex + ENTRY_WORD.file]! - 1);
		words[entryIndex + ENTRY_WORD.file] = 0;
		words[HEADER_WORD.files]!--;
		words[HEADER_WORD.looseBlocks]! -= words[entryIndex + ENTRY_WORD.looseBlocks]!;
	}

	/** Frees an entry's head. Returns the number of its blocks. */
	#freeHead(entry: number): number {
		const entryIndex = this.entryIndex(entry);
		const firstBlock = this.words[entryIndex + ENTRY_WORD.headBlock]!;
		if (firstBlock === 0) return 0;
		const blockCount = headBlockCount(this.words[entryIndex + ENTRY_WORD.headLength]!);
		this.blocks.freeChain(firstBlock, this.blocks.lastBlockOf(firstBlock), blockCount);
		return blockCount;
	}

	#unlinkEntry(firstLink: number, entry: number, link: number): void {
		const { words } = this;
		let wordIndex = firstLink;
		while (words[wordIndex] !== 0 && words[wordIndex] !== entry) wordIndex = this.entryIndex(words[wordIndex]!) + link;
		if (words[wordIndex] === entry) words[wordIndex] = words[this.entryIndex(entry) + link]!;
	}
}

function headBlockCount(bytes: number): number {
	return Math.max(1, Math.ceil(bytes / BLOCK_BYTES));
}
