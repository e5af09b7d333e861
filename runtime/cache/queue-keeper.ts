/**
 * The eviction policy: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, SOSP 2023). New entries start in a small queue; only those
 * requested again there, or again soon after their eviction, enter the main queue.
 */
import { type CacheLayout, ENTRY, MAIN, NO_QUEUE, SMALL, WORD } from './memory-layout.ts';

/** Share of the blocks that the small queue may use if there is a main queue. */
const SMALL_SHARE = 0.1;
/** Maximum number of entries reinserted before one is evicted in any case, so that a call does not scan the whole store. */
const MAX_ROUNDS = 256;

/** The two queues, and the ghost table of evicted entries. Its methods must be called with the lock held. */
export class QueueKeeper {
	readonly #words: Int32Array;
	readonly #layout: CacheLayout;

	constructor(words: Int32Array, layout: CacheLayout) {
		this.#words = words;
		this.#layout = layout;
	}

	/** Counts a request for an entry. Needs no lock, because a lost update does no harm. */
	used(entry: number): void {
		const at = this.#at(entry) + ENTRY.uses;
		const uses = this.#words[at]!;
		if (uses < 3) this.#words[at] = uses + 1;
	}

	/** Adds a new entry. */
	enter(entry: number): void {
		const words = this.#words;
		const at = this.#at(entry);
		const hash = words[at + ENTRY.hashA]!;
		const ghost = this.#ghost(hash);
		const returns = words[ghost] === words[at + ENTRY.hashB] && words[ghost] !== 0;
		if (returns) words[ghost] = 0;
		words[at + ENTRY.uses] = 0;
		this.#push(entry, returns ? MAIN : SMALL);
	}

	leave(entry: number): void {
		const words = this.#words;
		const at = this.#at(entry);
		const queue = words[at + ENTRY.queue]!;
		if (queue === NO_QUEUE) return;
		const newer = words[at + ENTRY.newer]!;
		const older = words[at + ENTRY.older]!;
		if (newer === 0) words[queue === SMALL ? WORD.smallHead : WORD.mainHead] = older;
		else words[this.#at(newer) + ENTRY.older] = older;
		if (older === 0) words[queue === SMALL ? WORD.smallTail : WORD.mainTail] = newer;
		else words[this.#at(older) + ENTRY.newer] = newer;
		if (queue === SMALL) words[WORD.smallBlocks]! -= words[at + ENTRY.blocks]!;
		words[at + ENTRY.queue] = NO_QUEUE;
	}

	/** Accounts for blocks added to or removed from an entry. */
	resized(entry: number, by: number): void {
		if (this.#words[this.#at(entry) + ENTRY.queue] === SMALL) this.#words[WORD.smallBlocks]! += by;
	}

	/** Returns the entry to evict; 0 if there is none. */
	victim(): number {
		const words = this.#words;
		const share = this.#layout.blocks * SMALL_SHARE;
		for (let rounds = 0; ; rounds++) {
			const small = words[WORD.smallTail]!;
			const main = words[WORD.mainTail]!;
			if (small !== 0 && (words[WORD.smallBlocks]! > share || main === 0)) {
				const at = this.#at(small);
				if (words[at + ENTRY.uses]! > 0 && rounds < MAX_ROUNDS) {
					this.leave(small);
					words[at + ENTRY.uses] = 0;
					this.#push(small, MAIN);
					continue;
				}
				words[this.#ghost(words[at + ENTRY.hashA]!)] = words[at + ENTRY.hashB]!;
				return small;
			}
			if (main === 0) return small;
			const at = this.#at(main);
			if (words[at + ENTRY.uses]! === 0 || rounds >= MAX_ROUNDS) return main;
			words[at + ENTRY.uses]!--;
			this.leave(main);
			this.#push(main, MAIN);
		}
	}

	#push(entry: number, queue: number): void {
		const words = this.#words;
		const at = this.#at(entry);
		const headWord = queue === SMALL ? WORD.smallHead : WORD.mainHead;
		const tailWord = queue === SMALL ? WORD.smallTail : WORD.mainTail;
		const head = words[headWord]!;
		words[at + ENTRY.newer] = 0;
		words[at + ENTRY.older] = head;
		if (head === 0) words[tailWord] = entry;
		else words[this.#at(head) + ENTRY.newer] = entry;
		words[headWord] = entry;
		words[at + ENTRY.queue] = queue;
		if (queue === SMALL) words[WORD.smallBlocks]! += words[at + ENTRY.blocks]!;
	}

	/** Returns the slot of a hash in the ghost table. */
	#ghost(hashA: number): number {
		return this.#layout.ghostsAt + ((Math.imul(hashA, 0x9e3779b1) >>> 7) % this.#layout.buckets);
	}

	#at(entry: number): number {
		return this.#layout.entriesAt + (entry - 1) * this.#layout.entryWords;
	}
}
