/**
 * The shared memory of a response cache: entries found by hash, each with a chain of blocks for its head and one for its
 * body. Every method that changes something is called with the lock held, but for pins.
 */
import { randomInt } from 'node:crypto';
import { type MemoryFiles, memoryFiles } from '../sockets/memory-files.ts';
import { BlockChains } from './block-chains.ts';
import type { KeyHash } from './key-hash.ts';
import {
	BLOCK,
	type CacheLayout,
	cacheLayout,
	ENTRY,
	FILLING,
	FREE,
	INVALIDATIONS,
	LIVE,
	NO_QUEUE,
	WORD,
	ZOMBIE,
} from './memory-layout.ts';
import { MemoryLock } from './memory-lock.ts';
import { QueueKeeper } from './queue-keeper.ts';

/** Naps of the main thread before it gives a lock up: a second. */
const MAIN_NAPS = 200;

/** What an entry is found by. */
export interface EntryHashes {
	readonly key: KeyHash;
	/** Of host, path and query; of the path alone, in its one spelling. */
	readonly url: number;
	readonly path: number;
}

/** The memory as one thread sees it. */
export class CacheMemory {
	readonly layout: CacheLayout;
	readonly words: Int32Array;
	readonly blocks: BlockChains;
	readonly queues: QueueKeeper;
	readonly #lock: MemoryLock;
	readonly #filter: Uint8Array;
	#files: MemoryFiles | undefined | null = null;
	readonly #self: number;
	readonly #pinWord: number;
	readonly #pinBit: number;

	/** `thread` is the row of this thread, or `rows` for the main thread; `disk` is as for {@link cacheLayout}. */
	constructor(buffer: SharedArrayBuffer, ceiling: number, rows: number, thread: number, disk: number = 0) {
		this.layout = cacheLayout(ceiling, rows, disk);
		this.words = new Int32Array(buffer, 0, this.layout.dataAt / 4);
		const data = new Uint8Array(buffer, this.layout.dataAt, this.layout.blocks * BLOCK);
		this.blocks = new BlockChains(this.words, data, this.layout, () => this.#evictOne());
		this.#filter = new Uint8Array(buffer, this.layout.filterAt * 4, this.layout.filterBytes);
		this.queues = new QueueKeeper(this.words, this.layout);
		this.#self = thread + 1;
		this.#lock = new MemoryLock(this.words, this.#self, thread === rows ? MAIN_NAPS : Number.POSITIVE_INFINITY);
		this.#pinWord = ENTRY.pins + (thread >> 5);
		this.#pinBit = 1 << (thread & 31);
	}

	/** For the main thread, before anybody uses it: a seed that nobody outside can know, made up if left out. */
	static prepare(buffer: SharedArrayBuffer, seed: number = randomInt(1, 2 ** 31 - 1)): void {
		new Int32Array(buffer)[WORD.seed] = seed;
	}

	get seed(): number {
		return this.words[WORD.seed]!;
	}

	/** A thread has died within a change: nothing is found or taken until all is thrown away. */
	get isBroken(): boolean {
		return Atomics.load(this.words, WORD.broken) !== 0;
	}

	/** Runs something with the lock held. On the main thread it throws LockLost when it cannot be had. */
	locked<T>(run: () => T): T {
		return this.#lock.hold(run);
	}

	/** First word of an entry, counted from 1. */
	at(entry: number): number {
		return this.layout.entriesAt + (entry - 1) * this.layout.entryWords;
	}

	field(entry: number, field: number): number {
		return this.words[this.at(entry) + field]!;
	}

	bucketOf(hash: number): number {
		return hash & (this.layout.buckets - 1);
	}

	/** Number that changes whenever something in the bucket does. */
	version(bucket: number): number {
		return Atomics.load(this.words, this.layout.versionsAt + bucket);
	}

	serial(entry: number): number {
		return Atomics.load(this.words, this.at(entry) + ENTRY.serial);
	}

	/** Number that changes whenever what is stored of a URL may have been purged or invalidated. */
	moment(url: number): number {
		const { words, layout } = this;
		const place = layout.invalidatedAt + (url & (INVALIDATIONS - 1));
		return (Atomics.load(words, WORD.purges) + Atomics.load(words, place)) | 0;
	}

	/** What was asked for before now is not to be stored any more: of one URL, or of all. */
	passMoment(url: number | undefined): void {
		const place = url === undefined ? WORD.purges : this.layout.invalidatedAt + (url & (INVALIDATIONS - 1));
		Atomics.add(this.words, place, 1);
	}

	/** For the main thread: a response with this hash is on disk, or is not any more. */
	onDisk(hashA: number, by: 1 | -1): void {
		const at = (hashA >>> 3) & (this.#filter.length - 1);
		const count = this.#filter[at]!;
		// What has been at the top is not known any more: it stays there.
		if (count < 255) this.#filter[at] = count + by;
	}

	/** False when no response with this hash is on disk. */
	mayBeOnDisk(hashA: number): boolean {
		return this.#filter.length > 0 && this.#filter[(hashA >>> 3) & (this.#filter.length - 1)] !== 0;
	}

	/** Live entries with these hashes. */
	*chain({ a, b }: KeyHash): IterableIterator<number> {
		if (this.isBroken) return;
		let entry = this.words[this.layout.bucketsAt + this.bucketOf(a)]!;
		while (entry !== 0) {
			const at = this.at(entry);
			const next = this.words[at + ENTRY.chain]!;
			if (this.words[at + ENTRY.hashA] === a && this.words[at + ENTRY.hashB] === b) yield entry;
			entry = next;
		}
	}

	/** Live entries of a URL's hash. */
	*ofUrl(hash: number): IterableIterator<number> {
		if (this.isBroken) return;
		let entry = this.words[this.layout.urlsAt + this.bucketOf(hash)]!;
		while (entry !== 0) {
			const at = this.at(entry);
			const next = this.words[at + ENTRY.urlChain]!;
			if (this.words[at + ENTRY.urlHash] === hash) yield entry;
			entry = next;
		}
	}

	/** An entry that this thread fills; 0 when there is no room. */
	begin({ key, url, path }: EntryHashes): number {
		const { words, layout } = this;
		if (this.isBroken) return 0;
		let entry = words[WORD.freeEntry]!;
		if (entry === 0 && words[WORD.freshEntry]! < layout.entries) entry = ++words[WORD.freshEntry]!;
		else {
			for (let tries = 0; entry === 0 && tries < 64 && this.#evictOne(); tries++) entry = words[WORD.freeEntry]!;
			if (entry === 0) return 0;
			words[WORD.freeEntry] = words[this.at(entry) + ENTRY.chain]!;
		}
		const at = this.at(entry);
		for (let field = 0; field < ENTRY.pins; field++) if (field !== ENTRY.serial) words[at + field] = 0;
		words[at + ENTRY.hashA] = key.a;
		words[at + ENTRY.hashB] = key.b;
		words[at + ENTRY.urlHash] = url;
		words[at + ENTRY.pathHash] = path;
		words[at + ENTRY.state] = FILLING;
		words[at + ENTRY.owner] = this.#self;
		return entry;
	}

	/** Puts a block at the end of the body of an entry that is being filled; 0 when there is no room. */
	grow(entry: number): number {
		const block = this.isBroken ? 0 : this.blocks.take();
		if (block === 0) return 0;
		const { words } = this;
		const at = this.at(entry);
		const last = words[at + ENTRY.bodyLast]!;
		if (last === 0) words[at + ENTRY.bodyBlock] = block;
		else this.blocks.link(last, block);
		words[at + ENTRY.bodyLast] = block;
		words[at + ENTRY.blocks]!++;
		return block;
	}

	/** Gives an entry a head in place of the one that it has; false when there is no room. */
	setHead(entry: number, bytes: Uint8Array): boolean {
		const { words, blocks } = this;
		const count = blocksOf(bytes.byteLength);
		const serial = this.serial(entry);
		let first = 0;
		let last = 0;
		for (let i = 0; i < count; i++) {
			const block = blocks.take();
			if (block === 0) {
				blocks.free(first, last, i);
				return false;
			}
			if (last === 0) first = block;
			else blocks.link(last, block);
			last = block;
			blocks.write(block, 0, bytes.subarray(i * BLOCK, (i + 1) * BLOCK));
		}
		if (this.serial(entry) !== serial) {
			// It had to go itself for the room.
			blocks.free(first, last, count);
			return false;
		}
		const before = this.#freeHead(entry);
		const at = this.at(entry);
		words[at + ENTRY.headBlock] = first;
		words[at + ENTRY.headLength] = bytes.byteLength;
		words[at + ENTRY.blocks]! += count - before;
		this.queues.resized(entry, count - before);
		return true;
	}

	/** The bytes of an entry's head. */
	head(entry: number): Buffer {
		const bytes = Buffer.allocUnsafe(this.field(entry, ENTRY.headLength));
		this.blocks.copy(this.field(entry, ENTRY.headBlock), 0, bytes.byteLength, bytes);
		return bytes;
	}

	/** Everybody finds the entry from now on. */
	publish(entry: number): void {
		const { words, layout } = this;
		const at = this.at(entry);
		words[at + ENTRY.owner] = 0;
		words[at + ENTRY.state] = LIVE;
		const hashA = words[at + ENTRY.hashA]!;
		const bucket = layout.bucketsAt + this.bucketOf(hashA);
		words[at + ENTRY.chain] = words[bucket]!;
		words[bucket] = entry;
		const url = layout.urlsAt + this.bucketOf(words[at + ENTRY.urlHash]!);
		words[at + ENTRY.urlChain] = words[url]!;
		words[url] = entry;
		words[WORD.entries]!++;
		this.queues.enter(entry);
		this.touch(hashA);
	}

	/** Says that something in the bucket of a hash has changed. */
	touch(hashA: number): void {
		Atomics.add(this.words, this.layout.versionsAt + this.bucketOf(hashA), 1);
	}

	/** Takes an entry out of everybody's sight; its memory is free once nobody reads it. */
	remove(entry: number): void {
		const { words, layout } = this;
		const at = this.at(entry);
		const state = words[at + ENTRY.state]!;
		if (state === FREE || state === ZOMBIE || this.isBroken) return;
		if (state === LIVE) {
			this.#unlink(layout.bucketsAt + this.bucketOf(words[at + ENTRY.hashA]!), entry, ENTRY.chain);
			this.#unlink(layout.urlsAt + this.bucketOf(words[at + ENTRY.urlHash]!), entry, ENTRY.urlChain);
			this.queues.leave(entry);
			words[WORD.entries]!--;
		}
		// Before the pins are looked at: who pins it from now on sees that it is gone.
		Atomics.add(words, at + ENTRY.serial, 1);
		if (state === LIVE) this.touch(words[at + ENTRY.hashA]!);
		if (this.#isPinned(at)) {
			words[at + ENTRY.state] = ZOMBIE;
			words[WORD.zombies]!++;
		} else this.#release(entry);
	}

	/** Keeps the memory of an entry from being used anew, as long as this thread reads it. Needs no lock. */
	pin(entry: number): void {
		Atomics.or(this.words, this.at(entry) + this.#pinWord, this.#pinBit);
	}

	/** This thread does not read it any more. Takes the lock when the entry, pinned with this serial, was removed meanwhile. */
	unpin(entry: number, serial: number): void {
		const at = this.at(entry);
		Atomics.and(this.words, at + this.#pinWord, ~this.#pinBit);
		if (this.serial(entry) !== serial) this.locked(() => this.#bury(entry));
	}

	/**
	 * For the main thread: a thread has died. What it read nobody reads any more, what it filled nobody fills; if it died
	 * within a change, nothing is to be trusted. Throws LockLost when another has died with the lock: its end is told, too.
	 */
	threadEnded(thread: number): void {
		const { words } = this;
		this.#lock.inherit(thread + 1, () => this.#break());
		const last = words[WORD.freshEntry]!;
		for (let entry = 1; entry <= last; entry++) {
			Atomics.and(words, this.at(entry) + ENTRY.pins + (thread >> 5), ~(1 << (thread & 31)));
		}
		for (let entry = 1; entry <= last && !this.isBroken; entry++) {
			const at = this.at(entry);
			const state = words[at + ENTRY.state]!;
			if (state !== ZOMBIE && (state !== FILLING || words[at + ENTRY.owner] !== thread + 1)) continue;
			this.locked(() => {
				if (words[at + ENTRY.state] === ZOMBIE) this.#bury(entry);
				else if (words[at + ENTRY.owner] === thread + 1) this.remove(entry);
			});
		}
	}

	/** For the main thread: begins anew after a break, once nobody reads what was stored; false while somebody does. */
	heal(): boolean {
		const { words, layout } = this;
		if (!this.closeFiles()) return false;
		this.locked(() => {
			for (let word = WORD.freeBlock; word <= WORD.zombies; word++) words[word] = 0;
			words.fill(0, layout.bucketsAt, layout.bucketsAt + layout.buckets);
			words.fill(0, layout.urlsAt, layout.urlsAt + layout.buckets);
			for (let entry = 1; entry <= layout.entries; entry++) words[this.at(entry) + ENTRY.state] = FREE;
			words[WORD.resets]!++;
			Atomics.store(words, WORD.broken, 0);
		});
		return true;
	}

	/** For the main thread: closes the files of a store that is broken, or that nobody uses any more; false while somebody reads. */
	closeFiles(): boolean {
		const { words } = this;
		const last = words[WORD.freshEntry]!;
		for (let entry = 1; entry <= last; entry++) if (this.#isPinned(this.at(entry))) return false;
		for (let entry = 1; entry <= last; entry++) {
			const at = this.at(entry);
			if (words[at + ENTRY.file] === 0) continue;
			// Behind its blocks there is nothing any more.
			Atomics.add(words, at + ENTRY.serial, 1);
			this.#closeFile(at);
		}
		return true;
	}

	/** Nobody finds anything any more; who reads goes on, since nothing is moved. */
	#break(): void {
		const { words, layout } = this;
		Atomics.store(words, WORD.broken, 1);
		words[WORD.entries] = 0;
		for (let entry = 1; entry <= layout.entries; entry++) Atomics.add(words, this.at(entry) + ENTRY.serial, 1);
		for (let bucket = 0; bucket < layout.buckets; bucket++) Atomics.add(words, layout.versionsAt + bucket, 1);
	}

	/** Lets the entry go that is worth least; false when there is none. */
	#evictOne(): boolean {
		const { words } = this;
		const victim = this.queues.victim();
		if (victim === 0) return false;
		this.remove(victim);
		words[WORD.evictions]!++;
		return true;
	}

	/** Frees a removed entry that nobody reads any more. */
	#bury(entry: number): void {
		const at = this.at(entry);
		if (this.words[at + ENTRY.state] !== ZOMBIE || this.#isPinned(at) || this.isBroken) return;
		this.words[WORD.zombies]!--;
		this.#release(entry);
	}

	#isPinned(at: number): boolean {
		for (let word = at + ENTRY.pins, end = at + this.layout.entryWords; word < end; word++) {
			if (Atomics.load(this.words, word) !== 0) return true;
		}
		return false;
	}

	#release(entry: number): void {
		const { words } = this;
		const at = this.at(entry);
		if (words[at + ENTRY.file] !== 0) this.#closeFile(at);
		const head = this.#freeHead(entry);
		this.blocks.free(words[at + ENTRY.bodyBlock]!, words[at + ENTRY.bodyLast]!, words[at + ENTRY.blocks]! - head);
		words[at + ENTRY.headBlock] = 0;
		words[at + ENTRY.bodyBlock] = 0;
		words[at + ENTRY.state] = FREE;
		words[at + ENTRY.queue] = NO_QUEUE;
		words[at + ENTRY.chain] = words[WORD.freeEntry]!;
		words[WORD.freeEntry] = entry;
	}

	#closeFile(at: number): void {
		const { words } = this;
		if (this.#files === null) this.#files = memoryFiles();
		this.#files?.close(words[at + ENTRY.file]! - 1);
		words[at + ENTRY.file] = 0;
		words[WORD.files]!--;
		words[WORD.looseBlocks]! -= words[at + ENTRY.loose]!;
	}

	/** Frees the head that an entry has; how many blocks that were. */
	#freeHead(entry: number): number {
		const at = this.at(entry);
		const first = this.words[at + ENTRY.headBlock]!;
		if (first === 0) return 0;
		const count = blocksOf(this.words[at + ENTRY.headLength]!);
		this.blocks.free(first, this.blocks.lastOf(first), count);
		return count;
	}

	#unlink(from: number, entry: number, link: number): void {
		const { words } = this;
		let place = from;
		while (words[place] !== 0 && words[place] !== entry) place = this.at(words[place]!) + link;
		if (words[place] === entry) words[place] = words[this.at(entry) + link]!;
	}
}

/** Blocks of a head of so many bytes. */
function blocksOf(bytes: number): number {
	return Math.max(1, Math.ceil(bytes / BLOCK));
}
