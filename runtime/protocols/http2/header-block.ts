/** A header block that is split into several frames (RFC 9113 §4.3, §6.10). */
import { MAX_CONTINUATIONS } from './limits.ts';

/** The header block being received: a HEADERS frame followed by CONTINUATION frames. */
export class HeaderBlock {
	readonly streamId: number;
	readonly endStream: boolean;
	readonly #maxBytes: number;
	readonly #parts: Buffer[] = [];
	#byteCount = 0;

	/** @param maxBytes Maximum number of bytes of the block. */
	constructor(streamId: number, endStream: boolean, maxBytes: number) {
		this.streamId = streamId;
		this.endStream = endStream;
		this.#maxBytes = maxBytes;
	}

	/** Adds a copy of a fragment. Returns false if the block has become too large, or has too many fragments. */
	add(bytes: Buffer, start: number, end: number): boolean {
		this.#byteCount += end - start;
		if (this.#byteCount > this.#maxBytes || this.#parts.length > MAX_CONTINUATIONS) return false;
		this.#parts.push(Buffer.from(bytes.subarray(start, end)));
		return true;
	}

	/** Returns the complete block. */
	toBytes(): Buffer {
		return Buffer.concat(this.#parts, this.#byteCount);
	}
}
