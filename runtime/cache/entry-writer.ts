/** Writes a response into an entry of the shared memory, block by block. */
import type { CacheWriter } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import { BLOCK_BYTES, ENTRY_WORD } from './memory-layout.ts';

/** Writes a response into the cache. */
export class EntryWriter implements CacheWriter {
	readonly #memory: CacheMemory;
	readonly #entry: number;
	readonly #serial: number;
	readonly #maxBytes: number;
	readonly #publish: () => boolean;
	#writtenBytes = 0;
	/** The last block of the body. */
	#block = 0;
	/** Number of bytes in use in the last block. */
	#usedBytes = BLOCK_BYTES;
	#isDone = false;

	/** @param publish Called when the body is complete. Returns false if the response is no longer wanted. */
	constructor(memory: CacheMemory, entry: number, maxBytes: number, publish: () => boolean) {
		this.#memory = memory;
		this.#entry = entry;
		this.#serial = memory.serial(entry);
		this.#maxBytes = maxBytes;
		this.#publish = publish;
	}

	write(bytes: Uint8Array): boolean {
		if (this.#isDone) return false;
		if (this.#writtenBytes + bytes.byteLength > this.#maxBytes || !this.#append(bytes)) {
			this.abandon();
			return false;
		}
		return true;
	}

	commit(): boolean {
		if (this.#isDone || !this.#isMine()) return false;
		const memory = this.#memory;
		memory.words[memory.entryIndex(this.#entry) + ENTRY_WORD.bodyLength] = this.#writtenBytes;
		if (this.#publish()) {
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
			if (this.#isMine()) memory.remove(this.#entry);
		});
	}

	/** Writes bytes of the body. Returns false after a reset of the store, because the memory may then belong to another entry. */
	#isMine(): boolean {
		return this.#memory.serial(this.#entry) === this.#serial;
	}

	#append(bytes: Uint8Array): boolean {
		const { blocks } = this.#memory;
		const count = Math.ceil((bytes.byteLength - (BLOCK_BYTES - this.#usedBytes)) / BLOCK_BYTES);
		const newBlocks = count > 0 ? this.#allocateBlocks(count) : [];
		if (newBlocks === undefined || !this.#isMine()) return false;
		let doneBytes = 0;
		let nextBlock = 0;
		while (doneBytes < bytes.byteLength) {
			if (this.#usedBytes === BLOCK_BYTES) {
				this.#block = newBlocks[nextBlock++]!;
				this.#usedBytes = 0;
			}
			const bytesLeft = bytes.byteLength - doneBytes;
			const firstBlock = this.#block;
			const firstOffset = this.#usedBytes;
			let room = BLOCK_BYTES - firstOffset;
			// Adjacent blocks are written together.
			while (room < bytesLeft && newBlocks[nextBlock] === this.#block + 1) {
				this.#block = newBlocks[nextBlock++]!;
				room += BLOCK_BYTES;
			}
			const size = Math.min(room, bytesLeft);
			blocks.write(
				firstBlock,
				firstOffset,
				size === bytes.byteLength ? bytes : bytes.subarray(doneBytes, doneBytes + size),
			);
			this.#usedBytes = BLOCK_BYTES - (room - size);
			doneBytes += size;
		}
		this.#writtenBytes += bytes.byteLength;
		return true;
	}

	/** Allocates blocks; undefined if there is no room. */
	#allocateBlocks(count: number): readonly number[] | undefined {
		const memory = this.#memory;
		return memory.withLock(() => {
			const newBlocks: number[] = [];
			while (newBlocks.length < count && this.#isMine()) {
				const block = memory.appendBlock(this.#entry);
				if (block === 0) return undefined;
				newBlocks.push(block);
			}
			return newBlocks.length === count ? newBlocks : undefined;
		});
	}
}
