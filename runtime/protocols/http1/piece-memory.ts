/** Memory for large pieces of bodies, used again and again. */
import { ownedCopy } from './owned-copy.ts';

/** Bytes of a block: as many as one read gives. */
const BLOCK = 65_536;
/** Bytes from which a piece gets a block: a smaller one would keep more memory from use than it holds. */
export const LARGE_PIECE = 16_384;
/** Bytes of a small block: as many as one frame of HTTP/2 gives, of which bodies often have many. */
const SMALL_BLOCK = 16_384;
/** Bytes from which a piece gets a small block. */
const MEDIUM_PIECE = 8192;
/** Free blocks that are kept: 4 MiB, and 1 MiB of small ones. */
const KEPT = 64;

/**
 * Copies of pieces, in blocks that come back. A block made anew for each piece costs more than the copying: the system gives
 * its pages one by one, and collecting it is work for other threads.
 */
export class PieceMemory {
	readonly #free: Buffer[] = [];
	readonly #freeSmall: Buffer[] = [];
	/** The memory of all blocks, free or not. */
	readonly #blocks = new WeakSet<ArrayBufferLike>();

	/** A block, to read into. */
	block(): Buffer {
		return this.#free.pop() ?? this.#make(BLOCK);
	}

	#make(size: number): Buffer {
		const block = Buffer.allocUnsafeSlow(size);
		this.#blocks.add(block.buffer);
		return block;
	}

	/** A copy of the bytes from `start` up to but not including `end`. */
	copy(bytes: Buffer, start: number, end: number): Buffer {
		const length = end - start;
		if (length < MEDIUM_PIECE || length > BLOCK) return ownedCopy(bytes, start, end);
		const block = length <= SMALL_BLOCK ? (this.#freeSmall.pop() ?? this.#make(SMALL_BLOCK)) : this.block();
		bytes.copy(block, 0, start, end);
		return length === block.length ? block : block.subarray(0, length);
	}

	/** Takes a piece back that nobody looks at any more; one that is in no block is left to the collector. */
	giveBack(piece: Uint8Array): void {
		const { buffer } = piece;
		if (piece.length < MEDIUM_PIECE || !this.#blocks.has(buffer)) return;
		const free = buffer.byteLength === BLOCK ? this.#free : this.#freeSmall;
		if (free.length >= KEPT) return;
		free.push(piece.length === buffer.byteLength ? (piece as Buffer) : Buffer.from(buffer as ArrayBuffer));
	}
}
