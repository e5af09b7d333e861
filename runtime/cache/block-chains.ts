/**
 * The blocks of a cache's shared memory. Chains of blocks hold the heads and bodies of responses. Changes require the cache's
 * lock.
 */
import { BLOCK_BYTES, type CacheLayout, HEADER_WORD } from './memory-layout.ts';

/** Maximum number of entries evicted to make room for one block. If that is not enough, the response is not stored. */
const MAX_EVICTIONS = 16_384;

/** One thread's view of the blocks. They are numbered from 1; 0 means none. */
export class BlockChains {
	readonly data: Uint8Array;
	readonly #words: Int32Array;
	/** Adding a block's number to this index gives the word that contains the block's successor. */
	readonly #successorBase: number;
	readonly #blockCount: number;
	readonly #makeRoom: () => boolean;

	/** @param makeRoom Evicts an entry. Returns false if there is none to evict. */
	constructor(words: Int32Array, data: Uint8Array, { nextAt, blocks }: CacheLayout, makeRoom: () => boolean) {
		this.data = data;
		this.#words = words;
		// Blocks are numbered from 1.
		this.#successorBase = nextAt - 1;
		this.#blockCount = blocks;
		this.#makeRoom = makeRoom;
	}

	/** Returns a block that is in no chain; 0 if none is free and nothing more can be evicted. */
	takeBlock(): number {
		const words = this.#words;
		for (let evictions = 0; ; evictions++) {
			const freeBlock = words[HEADER_WORD.freeBlock]!;
			if (freeBlock !== 0) {
				words[HEADER_WORD.freeBlock] = words[this.#successorBase + freeBlock]!;
				words[this.#successorBase + freeBlock] = 0;
				words[HEADER_WORD.usedBlocks]!++;
				return freeBlock;
			}
			if (words[HEADER_WORD.freshBlock]! < this.#blockCount) {
				words[HEADER_WORD.usedBlocks]!++;
				const freshBlock = ++words[HEADER_WORD.freshBlock]!;
				words[this.#successorBase + freshBlock] = 0;
				return freshBlock;
			}
			if (evictions === MAX_EVICTIONS || !this.#makeRoom()) return 0;
		}
	}

	linkBlock(lastBlock: number, block: number): void {
		this.#words[this.#successorBase + lastBlock] = block;
	}

	lastBlockOf(firstBlock: number): number {
		let lastBlock = firstBlock;
		for (let nextBlock = this.#nextBlock(lastBlock); nextBlock !== 0; nextBlock = this.#nextBlock(lastBlock))
			lastBlock = nextBlock;
		return lastBlock;
	}

	/** Frees a chain of `count` blocks, preserving its order, so that adjacent blocks are reused together. */
	freeChain(firstBlock: number, lastBlock: number, count: number): void {
		if (firstBlock === 0) return;
		const words = this.#words;
		words[this.#successorBase + lastBlock] = words[HEADER_WORD.freeBlock]!;
		words[HEADER_WORD.freeBlock] = firstBlock;
		words[HEADER_WORD.usedBlocks]! -= count;
	}

	/** Returns the block of a chain that contains the byte at offset `byteOffset`; 0 past the end of the chain. */
	blockAfter(firstBlock: number, byteOffset: number): number {
		let block = firstBlock;
		for (let bytesLeft = byteOffset; bytesLeft >= BLOCK_BYTES && block !== 0; bytesLeft -= BLOCK_BYTES)
			block = this.#nextBlock(block);
		return block;
	}

	/** Returns at most `maxBytes` contiguous bytes from a position in a chain. Requires a pin or the lock. */
	contiguousBytes(block: number, offset: number, maxBytes: number): Uint8Array {
		const startOffset = (block - 1) * BLOCK_BYTES + offset;
		let runBytes = BLOCK_BYTES - offset;
		let lastBlock = block;
		while (runBytes < maxBytes && this.#nextBlock(lastBlock) === lastBlock + 1) {
			runBytes += BLOCK_BYTES;
			lastBlock++;
		}
		return this.data.subarray(startOffset, startOffset + Math.min(runBytes, maxBytes));
	}

	/** Copies `length` bytes of a chain, starting at `offset`. Requires a pin or the lock. */
	copyBytes(firstBlock: number, offset: number, length: number, target: Uint8Array): void {
		let block = this.blockAfter(firstBlock, offset);
		let offsetInBlock = offset % BLOCK_BYTES;
		let copiedBytes = 0;
		while (copiedBytes < length) {
			const startOffset = (block - 1) * BLOCK_BYTES + offsetInBlock;
			let runBytes = BLOCK_BYTES - offsetInBlock;
			// Adjacent blocks are copied together.
			let nextBlock = this.#nextBlock(block);
			while (runBytes < length - copiedBytes && nextBlock === block + 1) {
				runBytes += BLOCK_BYTES;
				block = nextBlock;
				nextBlock = this.#nextBlock(block);
			}
			const partBytes = Math.min(runBytes, length - copiedBytes);
			target.set(this.data.subarray(startOffset, startOffset + partBytes), copiedBytes);
			copiedBytes += partBytes;
			offsetInBlock = 0;
			block = nextBlock;
		}
	}

	write(block: number, offset: number, bytes: Uint8Array): void {
		this.data.set(bytes, (block - 1) * BLOCK_BYTES + offset);
	}

	#nextBlock(block: number): number {
		return this.#words[this.#successorBase + block]!;
	}
}
