/** Buffers for small files, with room in front for a response head, so that both are sent in one write. */

/** Size, in bytes, of the space in front of the file's bytes. */
export const RESPONSE_HEAD_ROOM_BYTES: number = 4096;
/** Maximum number of unused buffers kept for reuse. More buffers are needed only while clients are slow. */
const MAX_FREE_PAGES = 4;

/** A buffer for a small file and the response head in front of it. */
export interface FilePage {
	/** Space for a response head, followed by space for the largest small file. */
	readonly memory: Buffer;
	/** Memory address at which the file's bytes start; 0 if not needed. */
	readonly address: bigint;
}

/** The buffers of one thread. */
export class FilePages {
	readonly #maxFileBytes: number;
	readonly #addressOf: ((memory: Buffer) => bigint) | undefined;
	readonly #freePages: FilePage[] = [];

	/** @param maxFileBytes Maximum size of a file. @param addressOf Returns the address of a buffer. */
	constructor(maxFileBytes: number, addressOf: ((memory: Buffer) => bigint) | undefined) {
		this.#maxFileBytes = maxFileBytes;
		this.#addressOf = addressOf;
	}

	/** Returns a buffer from the pool, or a new one if the pool is empty. */
	takePage(): FilePage {
		const freePage = this.#freePages.pop();
		if (freePage !== undefined) return freePage;
		const memory = Buffer.allocUnsafeSlow(RESPONSE_HEAD_ROOM_BYTES + this.#maxFileBytes);
		const memoryAddress = this.#addressOf?.(memory);
		return { memory, address: memoryAddress === undefined ? 0n : memoryAddress + BigInt(RESPONSE_HEAD_ROOM_BYTES) };
	}

	/** Returns an unused buffer to the pool. A buffer that is never returned is merely replaced by a new one. */
	returnPage(page: FilePage): void {
		if (this.#freePages.length < MAX_FREE_PAGES) this.#freePages.push(page);
	}
}
