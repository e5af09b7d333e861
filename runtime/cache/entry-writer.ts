/** Writes a response into an entry of the shared memory, block by block. */
import type { CacheWriter } from '../../compiler/exchange/response-cache.ts';
import type { CacheMemory } from './cache-memory.ts';
import { BLOCK_BYTES, ENTRY_WORD } from './memory-layout.ts';

/** Writes a response into the cache. */
export class EntryWriter implements CacheWriter {
	readonly #memory: CacheMemory;
	readonly #entry: number;
	readonly #serial: number;
	readonly #most: number;
	readonly #publish: () => boolean;
	#size = 0;
	/** The last block. */
	#block = 0;
	/** Number of bytes in use in the last block. */
	#used = BLOCK_BYTES;
	#over = false;

	/** @param publish Called when the body is complete. Returns false if the response is no longer wanted. */
	constructor(memory: CacheMemory, entry: number, most: number, publish: () => boolean) {
		this.#memory = memory;
		this.#entry = entry;
		this.#serial = memory.serial(entry);
		this.#most = most;
		this.#publish = publish;
	}

	write(bytes: Uint8Array): boolean {
		if (this.#over) return false;
		if (this.#size + bytes.byteLength > this.#most || !this.#append(bytes)) {
			this.abandon();
			return false;
		}
		return true;
	}

	commit(): boolean {
		if (this.#over || !this.#isMine()) return false;
		const memory = this.#memory;
		memory.words[memory.at(this.#entry) + ENTRY_WORD.bodyLength] = this.#size;
		if (this.#publish()) {
			this.#over = true;
			return true;
		}
		this.abandon();
		return false;
	}

	abandon(): void {
		if (this.#over) return;
		this.#over = true;
		const memory = this.#memory;
		memory.locked(() => {
			if (this.#isMine()) memory.remove(this.#entry);
		});
	}

	/** Returns false after a reset of the store, because the memory may belong to another entry. */
	#isMine(): boolean {
		return this.#memory.serial(this.#entry) === this.#serial;
	}

	#append(bytes: Uint8Array): boolean {
		const { blocks } = this.#memory;
		const count = Math.ceil((bytes.byteLength - (BLOCK_BYTES - this.#used)) / BLOCK_BYTES);
		const taken = count > 0 ? this.#take(count) : [];
		if (taken === undefined || !this.#isMine()) return false;
		let done = 0;
		let next = 0;
		while (done < bytes.byteLength) {
			if (this.#used === BLOCK_BYTES) {
				this.#block = taken[next++]!;
				this.#used = 0;
			}
			const left = bytes.byteLength - done;
			const first = this.#block;
			const from = this.#used;
			let room = BLOCK_BYTES - from;
			// Adjacent blocks are written together.
			while (room < left && taken[next] === this.#block + 1) {
				this.#block = taken[next++]!;
				room += BLOCK_BYTES;
			}
			const size = Math.min(room, left);
			blocks.write(first, from, size === bytes.byteLength ? bytes : bytes.subarray(done, done + size));
			this.#used = BLOCK_BYTES - (room - size);
			done += size;
		}
		this.#size += bytes.byteLength;
		return true;
	}

	/** Allocates blocks; undefined if there is no room. */
	#take(count: number): readonly number[] | undefined {
		const memory = this.#memory;
		return memory.locked(() => {
			const taken: number[] = [];
			while (taken.length < count && this.#isMine()) {
				const block = memory.grow(this.#entry);
				if (block === 0) return undefined;
				taken.push(block);
			}
			return taken.length === count ? taken : undefined;
		});
	}
}
