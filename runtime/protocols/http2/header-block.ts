/** A header block that comes in several frames (RFC 9113 §4.3, §6.10). */
import { MAX_CONTINUATIONS } from './limits.ts';

/** The block under way: HEADERS without its end, and what CONTINUATION frames add. */
export class HeaderBlock {
	readonly stream: number;
	readonly endStream: boolean;
	readonly #most: number;
	readonly #parts: Buffer[] = [];
	#length = 0;

	/** `most` is bytes of a whole block. */
	constructor(stream: number, endStream: boolean, most: number) {
		this.stream = stream;
		this.endStream = endStream;
		this.#most = most;
	}

	/** Adds a fragment, copied; false when it makes the block larger or more chopped than any client needs. */
	add(bytes: Buffer, start: number, end: number): boolean {
		this.#length += end - start;
		if (this.#length > this.#most || this.#parts.length > MAX_CONTINUATIONS) return false;
		this.#parts.push(Buffer.from(bytes.subarray(start, end)));
		return true;
	}

	/** The whole block. */
	bytes(): Buffer {
		return Buffer.concat(this.#parts, this.#length);
	}
}
