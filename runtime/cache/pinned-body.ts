/** A long body in the shared memory, pinned there until its last byte has been sent. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { BlockChains } from './block-chains.ts';
import { BLOCK_BYTES } from './memory-layout.ts';

/** Number of bytes copied at a time if the blocks are not contiguous. */
const COPIED_BYTES = 65_536;
/** Minimum number of bytes copied at a time for a consumer that asks for less. */
const MIN_COPIED_BYTES = 1024;
/** Minimum number of contiguous bytes sent directly from the shared memory at a time. */
const MIN_RUN_BYTES = 16_384;
/** Maximum number of contiguous bytes sent directly from the shared memory at a time. */
const MAX_RUN_BYTES = 262_144;

/** Reads a pinned chain of blocks. */
export class PinnedBody implements BodySource {
	readonly length: number;
	readonly #blocks: BlockChains;
	readonly #release: () => void;
	/** The next block to be sent. */
	#block: number;
	/** Number of bytes of the next block that have been sent already. */
	#blockOffset: number;
	#sentBytes = 0;
	#piece: Buffer | undefined = undefined;
	#isDone = false;

	/** Reads `length` bytes, beginning at `start`. `release` is called when the bytes have been sent or are not needed. */
	constructor(blocks: BlockChains, firstBlock: number, start: number, length: number, release: () => void) {
		this.#blocks = blocks;
		this.#block = blocks.blockAfter(firstBlock, start);
		this.#blockOffset = start % BLOCK_BYTES;
		this.length = length;
		this.#release = release;
	}

	onIdle(): void {
		this.#piece = undefined;
	}

	pull(maxBytes: number = COPIED_BYTES): Uint8Array | null {
		const bytesLeft = this.length - this.#sentBytes;
		if (this.#isDone || bytesLeft === 0) {
			this.cancel();
			return null;
		}
		const run = this.#blocks.contiguousBytes(this.#block, this.#blockOffset, Math.min(MAX_RUN_BYTES, bytesLeft));
		if (run.byteLength >= MIN_RUN_BYTES || run.byteLength === bytesLeft) {
			this.#advance(run.byteLength);
			return run;
		}
		// The previous chunk has been sent, so its memory can be reused.
		const size = Math.min(COPIED_BYTES, Math.max(maxBytes, MIN_COPIED_BYTES), bytesLeft);
		if (this.#piece === undefined || this.#piece.byteLength < size) this.#piece = Buffer.allocUnsafeSlow(size);
		this.#blocks.copy(this.#block, this.#blockOffset, size, this.#piece.subarray(0, size));
		this.#advance(size);
		return this.#piece.subarray(0, size);
	}

	#advance(size: number): void {
		this.#block = this.#blocks.blockAfter(this.#block, this.#blockOffset + size);
		this.#blockOffset = (this.#blockOffset + size) % BLOCK_BYTES;
		this.#sentBytes += size;
	}

	cancel(): void {
		if (this.#isDone) return;
		this.#isDone = true;
		this.#piece = undefined;
		this.#release();
	}
}
