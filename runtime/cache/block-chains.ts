/** The blocks of a store, which form chains that hold heads and bodies. They may only be changed with the lock held. */
import { BLOCK_BYTES, type CacheLayout, HEADER_WORD } from './memory-layout.ts';

/** Maximum number of entries evicted to make room for one block. If that is not enough, the response is not stored. */
const MAX_EVICTIONS = 16_384;

/** One thread's view of the blocks. They are numbered from 1; 0 means none. */
export class BlockChains {
	readonly data: Uint8Array;
	readonly #words: Int32Array;
	/** Index of the word that contains the successor of block 0, if there were one. */
	readonly #nextAt: number;
	readonly #blockCount: number;
	readonly #makeRoom: () => boolean;

	/** @param makeRoom Evicts an entry. Returns false if there is none to evict. */
	constructor(words: Int32Array, data: Uint8Array, { nextAt, blocks }: CacheLayout, makeRoom: () => boolean) {
		this.data = data;
		this.#words = words;
		// Blocks are numbered from 1.
		this.#nextAt = nextAt - 1;
		this.#blockCount = blocks;
		this.#makeRoom = makeRoom;
	}

	/** Returns an unlinked block; 0 if nothing more can be evicted. */
	takeBlock(): number {
		const words = this.#words;
		for (let evictions = 0; ; evictions++) {
			const free = words[HEADER_WORD.freeBlock]!;
			if (free !== 0) {
				words[HEADER_WORD.freeBlock] = words[this.#nextAt + free]!;
				words[this.#nextAt + free] = 0;
				words[HEADER_WORD.usedBlocks]!++;
				return free;
			}
			if (words[HEADER_WORD.freshBlock]! < this.#blockCount) {
				words[HEADER_WORD.usedBlocks]!++;
				const freshBlock = ++words[HEADER_WORD.freshBlock]!;
				words[this.#nextAt + freshBlock] = 0;
				return freshBlock;
			}
			if (evictions === MAX_EVICTIONS || !this.#makeRoom()) return 0;
		}
	}

	/** Appends a block to a chain. */
	link(last: number, block: number): void {
		this.#words[this.#nextAt + last] = block;
	}

	/** Returns the last block of a chain. */
	lastOf(first: number): number {
		let last = first;
		for (let next = this.#next(last); next !== 0; next = this.#next(last)) last = next;
		return last;
	}

	/** Frees a chain of `count` blocks, preserving its order, so that adjacent blocks are reused together. */
	free(first: number, last: number, count: number): void {
		if (first === 0) return;
		const words = this.#words;
		words[this.#nextAt + last] = words[HEADER_WORD.freeBlock]!;
		words[HEADER_WORD.freeBlock] = first;
		words[HEADER_WORD.usedBlocks]! -= count;
	}

	/** Returns the block of a chain that contains the byte at offset `bytes`; 0 past the end of the chain. */
	blockAfter(first: number, bytes: number): number {
		let block = first;
		for (let bytesLeft = bytes; bytesLeft >= BLOCK_BYTES && block !== 0; bytesLeft -= BLOCK_BYTES)
			block = this.#next(block);
		return block;
	}

	/** Returns at most `maxBytes` contiguous bytes from a position in a chain. Requires a pin or the lock. */
	contiguousBytes(block: number, offset: number, maxBytes: number): Uint8Array {
		const start = (block - 1) * BLOCK_BYTES + offset;
		let size = BLOCK_BYTES - offset;
		let last = block;
		while (size < maxBytes && this.#next(last) === last + 1) {
			size += BLOCK_BYTES;
			last++;
		}
		return this.data.subarray(start, start + Math.min(size, maxBytes));
	}

	/** Copies `length` bytes of a chain, starting at `offset`. Requires a pin or the lock. */
	copy(first: number, offset: number, length: number, target: Uint8Array): void {
		let block = this.blockAfter(first, offset);
		let offsetInBlock = offset % BLOCK_BYTES;
		let copiedBytes = 0;
		while (copiedBytes < length) {
			const start = (block - 1) * BLOCK_BYTES + offsetInBlock;
			let size = BLOCK_BYTES - offsetInBlock;
			// Adjacent blocks are copied together.
			let next = this.#next(block);
			while (size < length - copiedBytes && next === block + 1) {
				size += BLOCK_BYTES;
				block = next;
				next = this.#next(block);
			}
			const partBytes = Math.min(size, length - copiedBytes);
			target.set(this.data.subarray(start, start + partBytes), copiedBytes);
			copiedBytes += partBytes;
			offsetInBlock = 0;
			block = next;
		}
	}

	/** Writes bytes into a block at an offset. */
	write(block: number, offset: number, bytes: Uint8Array): void {
		this.data.set(bytes, (block - 1) * BLOCK_BYTES + offset);
	}

	#next(block: number): number {
		return this.#words[this.#nextAt + block]!;
	}
}
