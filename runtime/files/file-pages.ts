/** Memory that small files are read into, with room in front for the head of a message: one piece then leaves the process. */

/** Bytes in front of a file's. */
export const HEAD_ROOM: number = 4096;
/** Pages that are kept for the next file; more are in use only while clients are slow to take what was read. */
const MOST_FREE = 4;

/** One of them. */
export interface FilePage {
	/** Room for a head, then for the largest small file. */
	readonly memory: Buffer;
	/** Where the file's bytes begin in the memory of the process; 0 where nobody asks. */
	readonly address: bigint;
}

/** The pages of one thread. */
export class FilePages {
	readonly #bytes: number;
	readonly #addressOf: ((memory: Buffer) => bigint) | undefined;
	readonly #free: FilePage[] = [];

	/** Pages for files of so many bytes at most. `addressOf` says where memory begins. */
	constructor(bytes: number, addressOf: ((memory: Buffer) => bigint) | undefined) {
		this.#bytes = bytes;
		this.#addressOf = addressOf;
	}

	/** A page, of whoever takes it. */
	take(): FilePage {
		const free = this.#free.pop();
		if (free !== undefined) return free;
		const memory = Buffer.allocUnsafeSlow(HEAD_ROOM + this.#bytes);
		const start = this.#addressOf?.(memory);
		return { memory, address: start === undefined ? 0n : start + BigInt(HEAD_ROOM) };
	}

	/** Gives a page back that nobody uses any more. One that is never given back is only made anew. */
	giveBack(page: FilePage): void {
		if (this.#free.length < MOST_FREE) this.#free.push(page);
	}
}
