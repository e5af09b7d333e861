/** The blocks of a store: chains of them hold heads and bodies. Changed with the lock held only. */
import { BLOCK, type CacheLayout, WORD } from './memory-layout.ts';

/** Entries that are let go for a block that is wanted, at most: what needs more is not taken. */
const MOST_EVICTIONS = 16_384;

/** The blocks as one thread sees them. They are counted from 1; 0 is none. */
export class BlockChains {
	readonly data: Uint8Array;
	readonly #words: Int32Array;
	readonly #nextAt: number;
	readonly #count: number;
	readonly #makeRoom: () => boolean;

	/** `makeRoom` lets an entry go; false when there is none. */
	constructor(words: Int32Array, data: Uint8Array, { nextAt, blocks }: CacheLayout, makeRoom: () => boolean) {
		this.data = data;
		this.#words = words;
		// Blocks are counted from 1.
		this.#nextAt = nextAt - 1;
		this.#count = blocks;
		this.#makeRoom = makeRoom;
	}

	/** A block that stands alone; 0 when nothing more can be let go. */
	take(): number {
		const words = this.#words;
		for (let evictions = 0; ; evictions++) {
			const free = words[WORD.freeBlock]!;
			if (free !== 0) {
				words[WORD.freeBlock] = words[this.#nextAt + free]!;
				words[this.#nextAt + free] = 0;
				words[WORD.usedBlocks]!++;
				return free;
			}
			if (words[WORD.freshBlock]! < this.#count) {
				words[WORD.usedBlocks]!++;
				const fresh = ++words[WORD.freshBlock]!;
				words[this.#nextAt + fresh] = 0;
				return fresh;
			}
			if (evictions === MOST_EVICTIONS || !this.#makeRoom()) return 0;
		}
	}

	/** Puts a block behind the last of a chain. */
	link(last: number, block: number): void {
		this.#words[this.#nextAt + last] = block;
	}

	/** The last block of a chain. */
	lastOf(first: number): number {
		let last = first;
		for (let next = this.#next(last); next !== 0; next = this.#next(last)) last = next;
		return last;
	}

	/** Frees a whole chain of `count` blocks, in its order: what stood side by side does so for the next one, too. */
	free(first: number, last: number, count: number): void {
		if (first === 0) return;
		const words = this.#words;
		words[this.#nextAt + last] = words[WORD.freeBlock]!;
		words[WORD.freeBlock] = first;
		words[WORD.usedBlocks]! -= count;
	}

	/** The block that many bytes on in a chain; 0 behind its end. */
	forward(first: number, bytes: number): number {
		let block = first;
		for (let left = bytes; left >= BLOCK && block !== 0; left -= BLOCK) block = this.#next(block);
		return block;
	}

	/** Bytes from a place in a chain on that stand side by side, `most` at most. Needs a pin, or the lock. */
	run(block: number, skip: number, most: number): Uint8Array {
		const start = (block - 1) * BLOCK + skip;
		let size = BLOCK - skip;
		let last = block;
		while (size < most && this.#next(last) === last + 1) {
			size += BLOCK;
			last++;
		}
		return this.data.subarray(start, start + Math.min(size, most));
	}

	/** Copies a chain of blocks, `length` bytes from `skip` on. Needs a pin, or the lock. */
	copy(first: number, skip: number, length: number, to: Uint8Array): void {
		let block = this.forward(first, skip);
		let left = skip % BLOCK;
		let done = 0;
		while (done < length) {
			const start = (block - 1) * BLOCK + left;
			let size = BLOCK - left;
			// Blocks that stand side by side are copied in one go.
			let next = this.#next(block);
			while (size < length - done && next === block + 1) {
				size += BLOCK;
				block = next;
				next = this.#next(block);
			}
			const taken = Math.min(size, length - done);
			to.set(this.data.subarray(start, start + taken), done);
			done += taken;
			left = 0;
			block = next;
		}
	}

	/** Puts bytes into a block, from a place in it on. */
	write(block: number, at: number, bytes: Uint8Array): void {
		this.data.set(bytes, (block - 1) * BLOCK + at);
	}

	#next(block: number): number {
		return this.#words[this.#nextAt + block]!;
	}
}
