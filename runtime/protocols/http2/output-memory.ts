/** The buffer in which frames are gathered before they are written, shared by all connections of a thread. */
import { OUTPUT_BUFFER_BYTES } from './limits.ts';

/** A connection whose frames are gathered. */
export interface OutputOwner {
	/** Writes the connection's gathered frames. */
	flush(): void;
}

/** Maximum number of free buffers that are kept, which have 1 MiB in total. */
const MAX_FREE_BUFFERS = 16;

/** Memory for gathered frames. At any time, its contents belong to one connection, the `owner`. */
export class OutputMemory {
	bytes: Buffer = Buffer.allocUnsafeSlow(OUTPUT_BUFFER_BYTES);
	/** Index in `bytes` at which the next frame will be written. */
	writeIndex = 0;
	owner: OutputOwner | undefined = undefined;
	readonly #freeBuffers: Buffer[] = [];

	/**
	 * Reserves up to `OUTPUT_BUFFER_BYTES` bytes at `writeIndex`. The caller writes to `bytes` and advances
	 * `writeIndex`.
	 */
	reserve(owner: OutputOwner, byteCount: number): void {
		if (this.owner !== owner) {
			this.owner?.flush();
			this.owner = owner;
		} else if (this.writeIndex + byteCount > OUTPUT_BUFFER_BYTES) {
			owner.flush();
			this.owner = owner;
		}
	}

	/** Replaces the current buffer, which belongs to the socket until `giveBack` is called. */
	replaceBuffer(): void {
		this.bytes = this.#freeBuffers.pop() ?? Buffer.allocUnsafeSlow(OUTPUT_BUFFER_BYTES);
	}

	giveBack(bytes: Buffer): void {
		if (this.#freeBuffers.length < MAX_FREE_BUFFERS) this.#freeBuffers.push(bytes);
	}
}
