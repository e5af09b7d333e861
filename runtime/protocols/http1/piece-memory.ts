/** Memory for large pieces of bodies, used again and again. */
import { ownedCopy } from './owned-copy.ts';

/** Bytes of a block: as many as one read gives. */
const BLOCK = 65_536;
/** Bytes from which a piece gets a block: a smaller one would keep more memory from use than it holds. */
export const LARGE_PIECE = 16_384;
/** Free blocks that are kept: 4 MiB. */
const KEPT = 64;

/**
 * Copies of pieces, in blocks that come back. A block made anew for each piece costs more than the copying: the system gives
 * its pages one by one, and collecting it is work for other threads.
 */
export class PieceMemory {
	readonly #free: Buffer[] = [];
	/** The memory of all blocks, free or not. */
	readonly #blocks = new WeakSet<ArrayBufferLike>();

	/** A block, to read into. */
	block(): Buffer {
		const free = this.#free.pop();
		if (free) return free;
		const block = Buffer.allocUnsafeSlow(BLOCK);
		this.#blocks.add(block.buffer);
		return block;
	}

	/** A copy of the bytes from `start` up to but not including `end`. */
	copy(bytes: Buffer, start: number, end: number): Buffer {
		const length = end - start;
		if (length < LARGE_PIECE || length > BLOCK) return ownedCopy(bytes, start, end);
		const block = this.block();
		bytes.copy(block, 0, start, end);
		return length === BLOCK ? block : block.subarray(0, length);
	}

	/** Takes a piece back that nobody looks at any more; one that is in no block is left to the collector. */
	giveBack(piece: Uint8Array): void {
		const { buffer } = piece;
		if (piece.length < LARGE_PIECE || !this.#blocks.has(buffer) || this.#free.length >= KEPT) return;
		this.#free.push(piece.length === BLOCK ? (piece as Buffer) : Buffer.from(buffer as ArrayBuffer));
	}
}
