/**
 * The shared memory of a response cache: a lock, entries found by hash, and chains of blocks. Every method that changes
 * something is called with the lock held.
 */
import { randomInt } from 'node:crypto';
import {
	BLOCK,
	type CacheLayout,
	cacheLayout,
	ENTRY,
	FILLING,
	FREE,
	LIVE,
	NO_QUEUE,
	WORD,
	ZOMBIE,
} from './memory-layout.ts';
import { QueueKeeper } from './queue-keeper.ts';

/** Times that the lock is asked for before the thread sleeps. */
const SPINS = 200;
/** Milliseconds of a sleep: who held it may have died. */
const NAP = 5;
/** Entries that are let go for one that comes, at most: what needs more is not taken. */
const MOST_EVICTIONS = 16_384;

/** The memory as one thread sees it. */
export class CacheMemory {
	readonly layout: CacheLayout;
	readonly words: Int32Array;
	readonly data: Uint8Array;
	readonly queues: QueueKeeper;
	readonly #self: number;
	readonly #pinWord: number;
	readonly #pinBit: number;

	/** `thread` is the row of this thread, or `rows` for the main thread. */
	constructor(buffer: SharedArrayBuffer, ceiling: number, rows: number, thread: number) {
		this.layout = cacheLayout(ceiling, rows);
		this.words = new Int32Array(buffer, 0, this.layout.dataAt / 4);
		this.data = new Uint8Array(buffer, this.layout.dataAt, this.layout.blocks * BLOCK);
		this.queues = new QueueKeeper(this.words, this.layout);
		this.#self = thread + 1;
		this.#pinWord = ENTRY.pins + (thread >> 5);
		this.#pinBit = 1 << (thread & 31);
	}

	/** For the main thread, before anybody uses it: a seed that nobody outside can know. */
	static prepare(buffer: SharedArrayBuffer): void {
		new Int32Array(buffer)[WORD.seed] = randomInt(1, 2 ** 31 - 1);
	}

	get seed(): number {
		return this.words[WORD.seed]!;
	}

	/** Runs something with the lock held. */
	locked<T>(run: () => T): T {
		const { words } = this;
		for (let spins = 0; Atomics.compareExchange(words, WORD.lock, 0, this.#self) !== 0; spins++) {
			if (spins < SPINS) continue;
			Atomics.add(words, WORD.lockWaiters, 1);
			const holder = Atomics.load(words, WORD.lock);
			if (holder !== 0) Atomics.wait(words, WORD.lock, holder, NAP);
			Atomics.sub(words, WORD.lockWaiters, 1);
		}
		try {
			return run();
		} finally {
			Atomics.store(words, WORD.lock, 0);
			if (Atomics.load(words, WORD.lockWaiters) > 0) Atomics.notify(words, WORD.lock, 1);
		}
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

	/** Live entries with these hashes. */
	*chain(hashA: number, hashB: number): IterableIterator<number> {
		let entry = this.words[this.layout.bucketsAt + this.bucketOf(hashA)]!;
		while (entry !== 0) {
			const at = this.at(entry);
			const next = this.words[at + ENTRY.chain]!;
			if (this.words[at + ENTRY.hashA] === hashA && this.words[at + ENTRY.hashB] === hashB) yield entry;
			entry = next;
		}
	}

	/** Live entries of a URL's hash. */
	*ofUrl(hash: number): IterableIterator<number> {
		let entry = this.words[this.layout.urlsAt + this.bucketOf(hash)]!;
		while (entry !== 0) {
			const at = this.at(entry);
			const next = this.words[at + ENTRY.urlChain]!;
			if (this.words[at + ENTRY.urlHash] === hash) yield entry;
			entry = next;
		}
	}

	/** Every live entry among `count` from `first` on. */
	*live(first: number, count: number): IterableIterator<number> {
		const last = Math.min(first + count, this.words[WORD.freshEntry]! + 1);
		for (let entry = first; entry < last; entry++) {
			if (this.words[this.at(entry) + ENTRY.state] === LIVE) yield entry;
		}
	}

	/** An entry that this thread fills; 0 when there is no room. */
	begin(): number {
		const { words, layout } = this;
		let entry = words[WORD.freeEntry]!;
		if (entry === 0 && words[WORD.freshEntry]! < layout.entries) entry = ++words[WORD.freshEntry]!;
		else if (entry !== 0) words[WORD.freeEntry] = words[this.at(entry) + ENTRY.chain]!;
		else {
			for (let tries = 0; entry === 0 && tries < 64 && this.#evictOne(); tries++) entry = words[WORD.freeEntry]!;
			if (entry === 0) return 0;
			words[WORD.freeEntry] = words[this.at(entry) + ENTRY.chain]!;
		}
		const at = this.at(entry);
		for (let field = 0; field < ENTRY.pins; field++) if (field !== ENTRY.serial) words[at + field] = 0;
		words[at + ENTRY.state] = FILLING;
		words[at + ENTRY.owner] = this.#self;
		return entry;
	}

	/** Puts a block at the end of the body of an entry that is being filled; −1 when there is no room. */
	grow(entry: number): number {
		const block = this.#takeBlock();
		if (block === 0) return -1;
		const { words } = this;
		const at = this.at(entry);
		const last = words[at + ENTRY.bodyLast]!;
		if (last === 0) words[at + ENTRY.bodyBlock] = block;
		else words[this.layout.nextAt + last - 1] = block;
		words[at + ENTRY.bodyLast] = block;
		words[at + ENTRY.blocks]!++;
		return block - 1;
	}

	/** Gives an entry a head in place of the one that it has; false when there is no room. */
	setHead(entry: number, bytes: Uint8Array): boolean {
		const { words, data, layout } = this;
		const count = Math.max(1, Math.ceil(bytes.byteLength / BLOCK));
		let first = 0;
		let last = 0;
		for (let i = 0; i < count; i++) {
			const block = this.#takeBlock();
			if (block === 0) {
				this.#freeChain(first);
				return false;
			}
			if (last === 0) first = block;
			else words[layout.nextAt + last - 1] = block;
			last = block;
			data.set(bytes.subarray(i * BLOCK, (i + 1) * BLOCK), (block - 1) * BLOCK);
		}
		const at = this.at(entry);
		const before = words[at + ENTRY.headBlock]!;
		const beforeCount = before === 0 ? 0 : Math.max(1, Math.ceil(words[at + ENTRY.headLength]! / BLOCK));
		words[at + ENTRY.headBlock] = first;
		words[at + ENTRY.headLength] = bytes.byteLength;
		words[at + ENTRY.blocks]! += count - beforeCount;
		this.queues.resized(entry, count - beforeCount);
		this.#freeChain(before);
		return true;
	}

	/** Everybody finds the entry from now on. */
	publish(entry: number, hashA: number, hashB: number, urlHash: number): void {
		const { words, layout } = this;
		const at = this.at(entry);
		words[at + ENTRY.hashA] = hashA;
		words[at + ENTRY.hashB] = hashB;
		words[at + ENTRY.urlHash] = urlHash;
		words[at + ENTRY.owner] = 0;
		words[at + ENTRY.state] = LIVE;
		const bucket = layout.bucketsAt + this.bucketOf(hashA);
		words[at + ENTRY.chain] = words[bucket]!;
		words[bucket] = entry;
		const url = layout.urlsAt + this.bucketOf(urlHash);
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
		if (state === FREE || state === ZOMBIE) return;
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
			words[at + ENTRY.chain] = words[WORD.zombies]!;
			words[WORD.zombies] = entry;
		} else this.#release(entry);
	}

	/** Keeps the memory of an entry from being used anew, as long as this thread reads it. Needs no lock. */
	pin(entry: number): void {
		Atomics.or(this.words, this.at(entry) + this.#pinWord, this.#pinBit);
	}

	unpin(entry: number): void {
		Atomics.and(this.words, this.at(entry) + this.#pinWord, ~this.#pinBit);
	}

	/** The block that many bytes on in a chain; 0 behind its end. */
	forward(first: number, bytes: number): number {
		let block = first;
		for (let left = bytes; left >= BLOCK && block !== 0; left -= BLOCK) {
			block = this.words[this.layout.nextAt + block - 1]!;
		}
		return block;
	}

	/** Bytes from a place in a chain on that stand side by side, `most` at most. Needs a pin, or the lock. */
	run(block: number, skip: number, most: number): Uint8Array {
		const { words, data, layout } = this;
		const start = (block - 1) * BLOCK + skip;
		let size = BLOCK - skip;
		let last = block;
		while (size < most && words[layout.nextAt + last - 1] === last + 1) {
			size += BLOCK;
			last++;
		}
		return data.subarray(start, start + Math.min(size, most));
	}

	/** Copies a chain of blocks, `length` bytes from `skip` on. Needs a pin, or the lock. */
	copy(first: number, skip: number, length: number, to: Uint8Array): void {
		const { words, data, layout } = this;
		let block = this.forward(first, skip);
		let left = skip % BLOCK;
		let done = 0;
		while (done < length) {
			const start = (block - 1) * BLOCK + left;
			let size = BLOCK - left;
			// Blocks that stand side by side are copied in one go.
			let next = words[layout.nextAt + block - 1]!;
			while (size < length - done && next === block + 1) {
				size += BLOCK;
				block = next;
				next = words[layout.nextAt + block - 1]!;
			}
			const taken = Math.min(size, length - done);
			to.set(data.subarray(start, start + taken), done);
			done += taken;
			left = 0;
			block = next;
		}
	}

	/** Forgets everything: whoever held the lock has died within a change. */
	reset(): void {
		const { words, layout } = this;
		for (let word = WORD.freeBlock; word <= WORD.zombies; word++) words[word] = 0;
		words.fill(0, layout.bucketsAt, layout.bucketsAt + layout.buckets);
		words.fill(0, layout.urlsAt, layout.urlsAt + layout.buckets);
		for (let entry = 1; entry <= layout.entries; entry++) {
			const at = this.at(entry);
			if (words[at + ENTRY.state] !== FREE) Atomics.add(words, at + ENTRY.serial, 1);
			words[at + ENTRY.state] = FREE;
		}
		for (let bucket = 0; bucket < layout.buckets; bucket++) Atomics.add(words, layout.versionsAt + bucket, 1);
		words[WORD.resets]!++;
	}

	/** A thread has died: what it filled and read is nobody's. */
	threadEnded(thread: number): void {
		const { words } = this;
		for (let entry = 1, end = words[WORD.freshEntry]!; entry <= end; entry++) {
			const at = this.at(entry);
			Atomics.and(words, at + ENTRY.pins + (thread >> 5), ~(1 << (thread & 31)));
			if (words[at + ENTRY.state] === FILLING && words[at + ENTRY.owner] === thread + 1) this.remove(entry);
		}
	}

	/** Room for a block; 0 when nothing more can be let go. */
	#takeBlock(): number {
		const { words, layout } = this;
		for (let evictions = 0; ; evictions++) {
			const free = words[WORD.freeBlock]!;
			if (free !== 0) {
				words[WORD.freeBlock] = words[layout.nextAt + free - 1]!;
				words[layout.nextAt + free - 1] = 0;
				words[WORD.usedBlocks]!++;
				return free;
			}
			if (words[WORD.freshBlock]! < layout.blocks) {
				words[WORD.usedBlocks]!++;
				const fresh = ++words[WORD.freshBlock]!;
				words[layout.nextAt + fresh - 1] = 0;
				return fresh;
			}
			if (evictions === MOST_EVICTIONS || !this.#evictOne()) return 0;
		}
	}

	/** Lets the entry go that is worth least; false when there is none. */
	#evictOne(): boolean {
		this.#sweep();
		const { words } = this;
		if (words[WORD.freeBlock] !== 0 && words[WORD.freeEntry] !== 0) return true;
		const victim = this.queues.victim();
		if (victim === 0) return false;
		this.remove(victim);
		words[WORD.evictions]!++;
		return true;
	}

	/** Frees what was removed while it was read, and is not any more. */
	#sweep(): void {
		const { words } = this;
		let entry = words[WORD.zombies]!;
		if (entry === 0) return;
		let kept = 0;
		while (entry !== 0) {
			const at = this.at(entry);
			const next = words[at + ENTRY.chain]!;
			if (this.#isPinned(at)) {
				words[at + ENTRY.chain] = kept;
				kept = entry;
			} else this.#release(entry);
			entry = next;
		}
		words[WORD.zombies] = kept;
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
		this.#freeChain(words[at + ENTRY.headBlock]!);
		this.#freeChain(words[at + ENTRY.bodyBlock]!);
		words[at + ENTRY.headBlock] = 0;
		words[at + ENTRY.bodyBlock] = 0;
		words[at + ENTRY.state] = FREE;
		words[at + ENTRY.queue] = NO_QUEUE;
		words[at + ENTRY.chain] = words[WORD.freeEntry]!;
		words[WORD.freeEntry] = entry;
	}

	#freeChain(first: number): void {
		const { words, layout } = this;
		let block = first;
		while (block !== 0) {
			const next = words[layout.nextAt + block - 1]!;
			words[layout.nextAt + block - 1] = words[WORD.freeBlock]!;
			words[WORD.freeBlock] = block;
			words[WORD.usedBlocks]!--;
			block = next;
		}
	}

	#unlink(from: number, entry: number, link: number): void {
		const { words } = this;
		let place = from;
		while (words[place] !== 0 && words[place] !== entry) place = this.at(words[place]!) + link;
		if (words[place] === entry) words[place] = words[this.at(entry) + link]!;
	}
}
