/**
 * The eviction policy: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, SOSP 2023). New entries start in a small queue; only those
 * requested again there, or again soon after their eviction, enter the main queue.
 */
import { type CacheLayout, ENTRY_WORD, HEADER_WORD, MAIN_QUEUE, NO_QUEUE, SMALL_QUEUE } from './memory-layout.ts';

/** Fraction of the blocks that the small queue may use if the main queue is not empty. */
const SMALL_SHARE = 0.1;
/** Maximum number of entries reinserted before one is evicted in any case, so that a call does not scan the whole store. */
const MAX_ROUNDS = 256;

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
		const at = this.#entryIndex(entry) + ENTRY_WORD.uses;
		const uses = this.#words[at]!;
		if (uses < 3) this.#words[at] = uses + 1;
	}

	/** Adds a new entry to the small queue, or to the main queue if the entry was evicted recently. */
	enter(entry: number): void {
		const words = this.#words;
		const at = this.#entryIndex(entry);
		const hash = words[at + ENTRY_WORD.hashA]!;
		const ghostIndex = this.#ghostIndex(hash);
		const isReturning = words[ghostIndex] === words[at + ENTRY_WORD.hashB] && words[ghostIndex] !== 0;
		if (isReturning) words[ghostIndex] = 0;
		words[at + ENTRY_WORD.uses] = 0;
		this.#push(entry, isReturning ? MAIN_QUEUE : SMALL_QUEUE);
	}

	leave(entry: number): void {
		const words = this.#words;
		const at = this.#entryIndex(entry);
		const queue = words[at + ENTRY_WORD.queue]!;
		if (queue === NO_QUEUE) return;
		const newer = words[at + ENTRY_WORD.newer]!;
		const older = words[at + ENTRY_WORD.older]!;
		if (newer === 0) words[queue === SMALL_QUEUE ? HEADER_WORD.smallHead : HEADER_WORD.mainHead] = older;
		else words[this.#entryIndex(newer) + ENTRY_WORD.older] = older;
		if (older === 0) words[queue === SMALL_QUEUE ? HEADER_WORD.smallTail : HEADER_WORD.mainTail] = newer;
		else words[this.#entryIndex(older) + ENTRY_WORD.newer] = newer;
		if (queue === SMALL_QUEUE) words[HEADER_WORD.smallBlocks]! -= words[at + ENTRY_WORD.blocks]!;
		words[at + ENTRY_WORD.queue] = NO_QUEUE;
	}

	/** Accounts for blocks added to or removed from an entry. */
	accountResize(entry: number, blocks: number): void {
		if (this.#words[this.#entryIndex(entry) + ENTRY_WORD.queue] === SMALL_QUEUE)
			this.#words[HEADER_WORD.smallBlocks]! += blocks;
	}

	/** Returns the entry to evict; 0 if there is none. */
	chooseVictim(): number {
		const words = this.#words;
		const maxSmallBlocks = this.#layout.blocks * SMALL_SHARE;
		for (let rounds = 0; ; rounds++) {
			const smallTail = words[HEADER_WORD.smallTail]!;
			const mainTail = words[HEADER_WORD.mainTail]!;
			if (smallTail !== 0 && (words[HEADER_WORD.smallBlocks]! > maxSmallBlocks || mainTail === 0)) {
				const at = this.#entryIndex(smallTail);
				if (words[at + ENTRY_WORD.uses]! > 0 && rounds < MAX_ROUNDS) {
					this.leave(smallTail);
					words[at + ENTRY_WORD.uses] = 0;
					this.#push(smallTail, MAIN_QUEUE);
					continue;
				}
				words[this.#ghostIndex(words[at + ENTRY_WORD.hashA]!)] = words[at + ENTRY_WORD.hashB]!;
				return smallTail;
			}
			if (mainTail === 0) return smallTail;
			const at = this.#entryIndex(mainTail);
			if (words[at + ENTRY_WORD.uses]! === 0 || rounds >= MAX_ROUNDS) return mainTail;
			words[at + ENTRY_WORD.uses]!--;
			this.leave(mainTail);
			this.#push(mainTail, MAIN_QUEUE);
		}
	}

	#push(entry: number, queue: number): void {
		const words = this.#words;
		const at = this.#entryIndex(entry);
		const headWord = queue === SMALL_QUEUE ? HEADER_WORD.smallHead : HEADER_WORD.mainHead;
		const tailWord = queue === SMALL_QUEUE ? HEADER_WORD.smallTail : HEADER_WORD.mainTail;
		const head = words[headWord]!;
		words[at + ENTRY_WORD.newer] = 0;
		words[at + ENTRY_WORD.older] = head;
		if (head === 0) words[tailWord] = entry;
		else words[this.#entryIndex(head) + ENTRY_WORD.newer] = entry;
		words[headWord] = entry;
		words[at + ENTRY_WORD.queue] = queue;
		if (queue === SMALL_QUEUE) words[HEADER_WORD.smallBlocks]! += words[at + ENTRY_WORD.blocks]!;
	}

	/** Returns the slot of a hash in the ghost table. */
	#ghostIndex(hashA: number): number {
		return this.#layout.ghostsAt + ((Math.imul(hashA, 0x9e3779b1) >>> 7) % this.#layout.buckets);
	}

	#entryIndex(entry: number): number {
		return this.#layout.entriesAt + (entry - 1) * this.#layout.entryWords;
	}
}
