/**
 * The eviction policy: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, SOSP 2023). New entries start in a small queue; only those
 * requested again there, or again soon after their eviction, enter the main queue.
 */
import { type CacheLayout, ENTRY_WORD, HEADER_WORD, MAIN_QUEUE, NO_QUEUE, SMALL_QUEUE } from './memory-layout.ts';

/** Fraction of the blocks that the small queue may use if the main queue is not empty. */
const SMALL_QUEUE_SHARE = 0.1;
/**
 * Maximum number of used entries that one call moves to the head of the main queue. After that, an entry is evicted although it
 * has been used, so that the call does not scan the whole store.
 */
const MAX_REINSERTIONS = 256;

/** The two queues, and the ghost table of evicted entries. The methods must be called with the lock held. */
export class QueueKeeper {
	readonly #words: Int32Array;
	readonly #layout: CacheLayout;

	constructor(words: Int32Array, layout: CacheLayout) {
		this.#words = words;
		this.#layout = layout;
	}

	/** Counts a request for an entry. Needs no lock, because a lost update does no harm. */
	countUse(entry: number): void {
		const usesIndex = this.#entryIndex(entry) + ENTRY_WORD.uses;
		const uses = this.#words[usesIndex]!;
		if (uses < 3) this.#words[usesIndex] = uses + 1;
	}

	/** Adds a new entry to the small queue, or to the main queue if the entry was evicted recently. */
	addEntry(entry: number): void {
		const words = this.#words;
		const entryIndex = this.#entryIndex(entry);
		const hash = words[entryIndex + ENTRY_WORD.hashA]!;
		const ghostIndex = this.#ghostIndex(hash);
		const isReturning = words[ghostIndex] === words[entryIndex + ENTRY_WORD.hashB] && words[ghostIndex] !== 0;
		if (isReturning) words[ghostIndex] = 0;
		words[entryIndex + ENTRY_WORD.uses] = 0;
		this.#pushEntry(entry, isReturning ? MAIN_QUEUE : SMALL_QUEUE);
	}

	removeEntry(entry: number): void {
		const words = this.#words;
		const entryIndex = this.#entryIndex(entry);
		const queue = words[entryIndex + ENTRY_WORD.queue]!;
		if (queue === NO_QUEUE) return;
		const newerEntry = words[entryIndex + ENTRY_WORD.newer]!;
		const olderEntry = words[entryIndex + ENTRY_WORD.older]!;
		if (newerEntry === 0) words[queue === SMALL_QUEUE ? HEADER_WORD.smallHead : HEADER_WORD.mainHead] = olderEntry;
		else words[this.#entryIndex(newerEntry) + ENTRY_WORD.older] = olderEntry;
		if (olderEntry === 0) words[queue === SMALL_QUEUE ? HEADER_WORD.smallTail : HEADER_WORD.mainTail] = newerEntry;
		else words[this.#entryIndex(olderEntry) + ENTRY_WORD.newer] = newerEntry;
		if (queue === SMALL_QUEUE) words[HEADER_WORD.smallBlocks]! -= words[entryIndex + ENTRY_WORD.blocks]!;
		words[entryIndex + ENTRY_WORD.queue] = NO_QUEUE;
	}

	/** Accounts for blocks added to or removed from an entry. */
	accountResize(entry: number, blockCount: number): void {
		if (this.#words[this.#entryIndex(entry) + ENTRY_WORD.queue] === SMALL_QUEUE)
			this.#words[HEADER_WORD.smallBlocks]! += blockCount;
	}

	/** Returns the entry to evict; 0 if there is none. */
	chooseVictim(): number {
		const words = this.#words;
		const maxSmallBlocks = this.#layout.blocks * SMALL_QUEUE_SHARE;
		for (let round = 0; ; round++) {
			const smallTail = words[HEADER_WORD.smallTail]!;
			const mainTail = words[HEADER_WORD.mainTail]!;
			if (smallTail !== 0 && (words[HEADER_WORD.smallBlocks]! > maxSmallBlocks || mainTail === 0)) {
				const entryIndex = this.#entryIndex(smallTail);
				if (words[entryIndex + ENTRY_WORD.uses]! > 0 && round < MAX_REINSERTIONS) {
					this.removeEntry(smallTail);
					words[entryIndex + ENTRY_WORD.uses] = 0;
					this.#pushEntry(smallTail, MAIN_QUEUE);
					continue;
				}
				words[this.#ghostIndex(words[entryIndex + ENTRY_WORD.hashA]!)] = words[entryIndex + ENTRY_WORD.hashB]!;
				return smallTail;
			}
			if (mainTail === 0) return smallTail;
			const at = this.#entryIndex(mainTail);
			if (words[at + ENTRY_WORD.uses]! === 0 || round >= MAX_REINSERTIONS) return mainTail;
			words[at + ENTRY_WORD.uses]!--;
			this.removeEntry(mainTail);
			this.#pushEntry(mainTail, MAIN_QUEUE);
		}
	}

	#pushEntry(entry: number, queue: number): void {
		const words = this.#words;
		const entryIndex = this.#entryIndex(entry);
		const headWord = queue === SMALL_QUEUE ? HEADER_WORD.smallHead : HEADER_WORD.mainHead;
		const tailWord = queue === SMALL_QUEUE ? HEADER_WORD.smallTail : HEADER_WORD.mainTail;
		const headEntry = words[headWord]!;
		words[entryIndex + ENTRY_WORD.newer] = 0;
		words[entryIndex + ENTRY_WORD.older] = headEntry;
		if (headEntry === 0) words[tailWord] = entry;
		else words[this.#entryIndex(headEntry) + ENTRY_WORD.newer] = entry;
		words[headWord] = entry;
		words[entryIndex + ENTRY_WORD.queue] = queue;
		if (queue === SMALL_QUEUE) words[HEADER_WORD.smallBlocks]! += words[entryIndex + ENTRY_WORD.blocks]!;
	}

	/** Returns the word index of a hash in the ghost table. */
	#ghostIndex(hashA: number): number {
		return this.#layout.ghostsAt + ((Math.imul(hashA, 0x9e3779b1) >>> 7) % this.#layout.buckets);
	}

	#entryIndex(entry: number): number {
		return this.#layout.entriesAt + (entry - 1) * this.#layout.entryWords;
	}
}
