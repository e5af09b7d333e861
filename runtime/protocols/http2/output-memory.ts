/** Memory that frames are gathered in before they are written: one piece for all connections of a thread. */
import { OUTPUT_SIZE } from './limits.ts';

/** A connection whose frames are gathered. */
export interface OutputOwner {
	/** Writes what is gathered for it. */
	flush(): void;
}

/** Free pieces that are kept: 1 MiB. */
const KEPT = 16;

/** The memory. What it holds is one connection's at a time. */
export class OutputMemory {
	bytes: Buffer = Buffer.allocUnsafeSlow(OUTPUT_SIZE);
	/** Where the next frame goes. */
	at = 0;
	owner: OutputOwner | undefined = undefined;
	readonly #free: Buffer[] = [];

	/** Makes room for so many bytes, at most OUTPUT_SIZE; they go into `bytes` from `at` on, which the caller raises. */
	reserve(owner: OutputOwner, length: number): void {
		if (this.owner !== owner) {
			this.owner?.flush();
			this.owner = owner;
		} else if (this.at + length > OUTPUT_SIZE) {
			owner.flush();
			this.owner = owner;
		}
	}

	/** The piece in use is the socket's until it is given back. */
	replace(): void {
		this.bytes = this.#free.pop() ?? Buffer.allocUnsafeSlow(OUTPUT_SIZE);
	}

	giveBack(bytes: Buffer): void {
		if (this.#free.length < KEPT) this.#free.push(bytes);
	}
}
