/** Writes a response into an entry of the shared memory, block by block. */
import type { CacheWriter } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import { BLOCK_BYTES, ENTRY_WORD } from './memory-layout.ts';

export class EntryWriter implements CacheWriter {
	readonly #memory: CacheMemory;
	readonly #entry: number;
	readonly #serial: number;
	readonly #maxBytes: number;
	readonly #onComplete: () => boolean;
	#writtenBytes = 0;
	/** The last block of the body. */
	#lastBlock = 0;
	/** Number of bytes in use in the last block. */
	#usedBytes = BLOCK_BYTES;
	#isDone = false;

	/** @param onComplete Called when the body is complete. Returns false if the response is no longer wanted. */
	constructor(memory: CacheMemory, entry: number, maxBytes: number, onComplete: () => boolean) {
		this.#memory = memory;
		this.#entry = entry;
		this.#serial = memory.entrySerial(entry);
		this.#maxBytes = maxBytes;
		this.#onComplete = onComplete;
	}

	write(bytes: Uint8Array): boolean {
		if (this.#isDone) return false;
		if (this.#writtenBytes + bytes.byteLength > this.#maxBytes || !this.#appendBytes(bytes)) {
			this.abandon();
			return false;
		}
		return true;
	}

	commit(): boolean {
		if (this.#isDone || !this.#ownsEntry()) return false;
		const memory = this.#memory;
		memory.words[memory.entryIndex(this.#entry) + ENTRY_WORD.bodyLength] = this.#writtenBytes;
		if (this.#onComplete()) {
			this.#isDone = true;
			return true;
		}
		this.abandon();
		return false;
	}

	abandon(): void {
		if (this.#isDone) return;
		this.#isDone = true;
		const memory = this.#memory;
		memory.withLock(() => {
			if (this.#ownsEntry()) memory.remove(this.#entry);
		});
	}

	/** Reports whether the entry still belongs to this writer. After a reset of the store, it may hold another response. */
	#ownsEntry(): boolean {
		return this.#memory.entrySerial(this.#entry) === this.#serial;
	}

	/** Appends bytes to the body. Returns false if there is no room, or if the store has been reset. */
	#appendBytes(bytes: Uint8Array): boolean {
		const { blocks } = this.#memory;
		const newBlockCount = Math.ceil((bytes.byteLength - (BLOCK_BYTES - this.#usedBytes)) / BLOCK_BYTES);
		const newBlocks = newBlockCount > 0 ? this.#allocateBlocks(newBlockCount) : [];
		if (newBlocks === undefined || !this.#ownsEntry()) return false;
		let appendedBytes = 0;
		let nextBlock = 0;
		while (appendedBytes < bytes.byteLength) {
			if (this.#usedBytes === BLOCK_BYTES) {
				this.#lastBlock = newBlocks[nextBlock++]!;
				this.#usedBytes = 0;
			}
			const bytesLeft = bytes.byteLength - appendedBytes;
			const firstBlock = this.#lastBlock;
			const firstOffset = this.#usedBytes;
			let roomBytes = BLOCK_BYTES - firstOffset;
			// Adjacent blocks are written together.
			while (roomBytes < bytesLeft && newBlocks[nextBlock] === this.#lastBlock + 1) {
				this.#lastBlock = newBlocks[nextBlock++]!;
				roomBytes += BLOCK_BYTES;
			}
			const size = Math.min(roomBytes, bytesLeft);
			blocks.write(
				firstBlock,
				firstOffset,
				size === bytes.byteLength ? bytes : bytes.subarray(appendedBytes, appendedBytes + size),
			);
			this.#usedBytes = BLOCK_BYTES - (roomBytes - size);
			appendedBytes += size;
		}
		this.#writtenBytes += bytes.byteLength;
		return true;
	}

	/** Allocates blocks; undefined if there is no room. */
	#allocateBlocks(count: number): readonly number[] | undefined {
		const memory = this.#memory;
		return memory.withLock(() => {
			const newBlocks: number[] = [];
			while (newBlocks.length < count && this.#ownsEntry()) {
				const block = memory.appendBlock(this.#entry);
				if (block === 0) return undefined;
				newBlocks.push(block);
			}
			return newBlocks.length === count ? newBlocks : undefined;
		});
	}
}
