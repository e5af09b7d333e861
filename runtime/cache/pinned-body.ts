/** A long body in the shared memory, pinned there until its last byte has been sent. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { BlockChains } from './block-chains.ts';
import { BLOCK_BYTES } from './memory-layout.ts';

/** Number of bytes copied at a time if the blocks are not contiguous. */
const COPIED = 65_536;
/** Minimum for a consumer that asks for less. */
const MIN_COPIED = 1024;
/** Minimum number of contiguous bytes sent directly from the shared memory at a time. */
const MIN_RUN = 16_384;
/** Maximum number of contiguous bytes sent directly from the shared memory at a time. */
const MAX_RUN = 262_144;

/** Reads a pinned chain of blocks. */
export class PinnedBody implements BodySource {
	readonly length: number;
	readonly #blocks: BlockChains;
	readonly #release: () => void;
	/** The next block. */
	#block: number;
	/** Number of its bytes that have been sent. */
	#skip: number;
	#sent = 0;
	#piece: Buffer | undefined = undefined;
	#over = false;

	/** Reads `length` bytes from `start` on. `release` is called when they have been sent or are not needed. */
	constructor(blocks: BlockChains, first: number, start: number, length: number, release: () => void) {
		this.#blocks = blocks;
		this.#block = blocks.forward(first, start);
		this.#skip = start % BLOCK_BYTES;
		this.length = length;
		this.#release = release;
	}

	onIdle(): void {
		this.#piece = undefined;
	}

	pull(most: number = COPIED): Uint8Array | null {
		const left = this.length - this.#sent;
		if (this.#over || left === 0) {
			this.cancel();
			return null;
		}
		const run = this.#blocks.run(this.#block, this.#skip, Math.min(MAX_RUN, left));
		if (run.byteLength >= MIN_RUN || run.byteLength === left) {
			this.#advance(run.byteLength);
			return run;
		}
		// The previous chunk has been sent, so its memory can be reused.
		const size = Math.min(COPIED, Math.max(most, MIN_COPIED), left);
		if (this.#piece === undefined || this.#piece.byteLength < size) this.#piece = Buffer.allocUnsafeSlow(size);
		this.#blocks.copy(this.#block, this.#skip, size, this.#piece.subarray(0, size));
		this.#advance(size);
		return this.#piece.subarray(0, size);
	}

	#advance(size: number): void {
		this.#block = this.#blocks.forward(this.#block, this.#skip + size);
		this.#skip = (this.#skip + size) % BLOCK_BYTES;
		this.#sent += size;
	}

	cancel(): void {
		if (this.#over) return;
		this.#over = true;
		this.#piece = undefined;
		this.#release();
	}
}
