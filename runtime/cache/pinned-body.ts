/** A long body in a cache's shared memory, pinned there until its last byte has been sent. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import type { BlockChains } from './block-chains.ts';
import { BLOCK_BYTES } from './memory-layout.ts';

/** Number of bytes copied at a time if the blocks are not contiguous. */
const MAX_COPY_BYTES = 65_536;
/** Minimum number of bytes copied at a time for a consumer that asks for less. */
const MIN_COPY_BYTES = 1024;
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
	#copyBuffer: Buffer | undefined = undefined;
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
		this.#copyBuffer = undefined;
	}

	pull(maxBytes: number = MAX_COPY_BYTES): Uint8Array | null {
		const bytesLeft = this.length - this.#sentBytes;
		if (this.#isDone || bytesLeft === 0) {
			this.cancel();
			return null;
		}
		const contiguousRun = this.#blocks.contiguousBytes(
			this.#block,
			this.#blockOffset,
			Math.min(MAX_RUN_BYTES, bytesLeft),
		);
		if (contiguousRun.byteLength >= MIN_RUN_BYTES || contiguousRun.byteLength === bytesLeft) {
			this.#advance(contiguousRun.byteLength);
			return contiguousRun;
		}
		// The previous chunk has been sent, so its memory can be reused.
		const copyBytes = Math.min(MAX_COPY_BYTES, Math.max(maxBytes, MIN_COPY_BYTES), bytesLeft);
		if (this.#copyBuffer === undefined || this.#copyBuffer.byteLength < copyBytes)
			this.#copyBuffer = Buffer.allocUnsafeSlow(copyBytes);
		this.#blocks.copyBytes(this.#block, this.#blockOffset, copyBytes, this.#copyBuffer.subarray(0, copyBytes));
		this.#advance(copyBytes);
		return this.#copyBuffer.subarray(0, copyBytes);
	}

	#advance(size: number): void {
		this.#block = this.#blocks.blockAfter(this.#block, this.#blockOffset + size);
		this.#blockOffset = (this.#blockOffset + size) % BLOCK_BYTES;
		this.#sentBytes += size;
	}

	cancel(): void {
		if (this.#isDone) return;
		this.#isDone = true;
		this.#copyBuffer = undefined;
		this.#release();
	}
}
