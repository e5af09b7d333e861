/** Bytes that have come in and are not yet a whole head, trailer section or message. */
import { ownedCopy } from './owned-copy.ts';

const LF = 10;
/** Bytes that may be added to an incomplete head, its line unfinished, before it is looked at again. */
const PARSE_STEP = 256;

/** Held bytes. Adding costs what is added, however small the pieces are in which they come. */
export class PendingBytes {
	#bytes: Buffer;
	#length: number;
	#unread = 0;

	/** Holds a copy: a few bytes must not keep the large block alive that they were read into. */
	constructor(bytes: Buffer, start: number, end: number) {
		this.#bytes = ownedCopy(bytes, start, end);
		this.#length = end - start;
	}

	/** Bytes held. */
	get length(): number {
		return this.#length;
	}

	/** The bytes held. They must not be kept once more are added. */
	get bytes(): Buffer {
		return this.#bytes.subarray(0, this.#length);
	}

	/**
	 * Adds bytes; true when a head or trailer section that was incomplete without them has to be looked at again. Looked at after
	 * each byte, a long one would cost the square of its length.
	 */
	add(bytes: Buffer): boolean {
		const length = this.#length + bytes.length;
		if (length > this.#bytes.length) {
			const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
			this.#bytes.copy(larger, 0, 0, this.#length);
			this.#bytes = larger;
		}
		bytes.copy(this.#bytes, this.#length);
		this.#length = length;
		this.#unread += bytes.length;
		if (this.#unread < PARSE_STEP && !bytes.includes(LF)) return false;
		this.#unread = 0;
		return true;
	}
}
