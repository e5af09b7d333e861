/** A pool of memory for large chunks of bodies. */
import { ownedCopy } from './owned-copy.ts';

/** Size of a block in bytes: the maximum that one read returns. */
const BLOCK_BYTES = 65_536;
/**
 * Minimum bytes of a received chunk that stays in its block. Smaller chunks are copied, because they would waste too much of the
 * block.
 */
export const LARGE_PIECE_BYTES = 16_384;
/** Size of a small block in bytes: the maximum that an HTTP/2 frame contains. */
const SMALL_BLOCK_BYTES = 16_384;
/** Minimum bytes of a chunk that gets a small block. */
const MEDIUM_PIECE_BYTES = 8192;
/** Maximum number of free blocks kept of each size: 4 MiB of large ones, and 1 MiB of small ones. */
const MAX_FREE_BLOCKS = 64;

/**
 * Copies chunks into reusable blocks. Allocating memory for each chunk would cost more than copying: the system provides it
 * page by page, and garbage collection slows down other threads.
 */
export class PieceMemory {
	readonly #freeBlocks: Buffer[] = [];
	readonly #freeSmallBlocks: Buffer[] = [];
	/** The underlying memory of all blocks, whether free or in use. */
	readonly #blockBuffers = new WeakSet<ArrayBufferLike>();

	/** Returns a free block to read into. */
	takeBlock(): Buffer {
		return this.#freeBlocks.pop() ?? this.#allocateBlock(BLOCK_BYTES);
	}

	#allocateBlock(sizeBytes: number): Buffer {
		const block = Buffer.allocUnsafeSlow(sizeBytes);
		this.#blockBuffers.add(block.buffer);
		return block;
	}

	/** Returns a copy of the bytes from `start` to `end` (exclusive), in a block if they are many. */
	copy(bytes: Buffer, start: number, end: number): Buffer {
		const length = end - start;
		if (length < MEDIUM_PIECE_BYTES || length > BLOCK_BYTES) return ownedCopy(bytes, start, end);
		const block =
			length <= SMALL_BLOCK_BYTES
				? (this.#freeSmallBlocks.pop() ?? this.#allocateBlock(SMALL_BLOCK_BYTES))
				: this.takeBlock();
		bytes.copy(block, 0, start, end);
		return length === block.length ? block : block.subarray(0, length);
	}

	/** Releases a chunk that is no longer used. Memory that is not a block is left to the garbage collector. */
	giveBack(piece: Uint8Array): void {
		const { buffer } = piece;
		if (piece.length < MEDIUM_PIECE_BYTES || !this.#blockBuffers.has(buffer)) return;
		const freeBlocks = buffer.byteLength === BLOCK_BYTES ? this.#freeBlocks : this.#freeSmallBlocks;
		if (freeBlocks.length >= MAX_FREE_BLOCKS) return;
		freeBlocks.push(piece.length === buffer.byteLength ? (piece as Buffer) : Buffer.from(buffer as ArrayBuffer));
	}
}
