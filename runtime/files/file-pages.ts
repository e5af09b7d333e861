/** Buffers for small files, with room in front for a response head, so that both are sent in one write. */

/** Size, in bytes, of the space in front of the file's bytes. */
export const RESPONSE_HEAD_ROOM_BYTES: number = 4096;
/** Number of buffers kept for reuse. More are in use only while clients are slow. */
const MAX_FREE = 4;

/** A buffer for a small file. */
export interface FilePage {
	/** Space for a response head, followed by space for the largest small file. */
	readonly memory: Buffer;
	/** Memory address at which the file's bytes start; 0 if not needed. */
	readonly address: bigint;
}

/** The buffers of one thread. */
export class FilePages {
	readonly #bytes: number;
	readonly #addressOf: ((memory: Buffer) => bigint) | undefined;
	readonly #free: FilePage[] = [];

	/** @param bytes Maximum size of a file. @param addressOf Returns the address of a buffer. */
	constructor(bytes: number, addressOf: ((memory: Buffer) => bigint) | undefined) {
		this.#bytes = bytes;
		this.#addressOf = addressOf;
	}

	/** Takes a buffer. */
	take(): FilePage {
		const free = this.#free.pop();
		if (free !== undefined) return free;
		const memory = Buffer.allocUnsafeSlow(RESPONSE_HEAD_ROOM_BYTES + this.#bytes);
		const start = this.#addressOf?.(memory);
		return { memory, address: start === undefined ? 0n : start + BigInt(RESPONSE_HEAD_ROOM_BYTES) };
	}

	/** Returns an unused buffer to the pool. A buffer that is never returned is merely replaced by a new one. */
	giveBack(page: FilePage): void {
		if (this.#free.length < MAX_FREE) this.#free.push(page);
	}
}
