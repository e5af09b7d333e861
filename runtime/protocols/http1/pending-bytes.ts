/** Received bytes that do not yet form a complete head, trailer section or message. */
import { ownedCopy } from './owned-copy.ts';

const LF = 10;
/** An incomplete head is parsed again after a line end, or after this many new bytes without one. */
const PARSE_STEP_BYTES = 256;

/** A growing buffer. The cost of adding bytes is proportional to the number of bytes, even if they arrive one by one. */
export class PendingBytes {
	#bytes: Buffer;
	#length: number;
	#unparsedByteCount = 0;

	/** Copies the bytes, so that a few of them do not keep a large read buffer alive. */
	constructor(bytes: Buffer, start: number, end: number) {
		this.#bytes = ownedCopy(bytes, start, end);
		this.#length = end - start;
	}

	/** Number of bytes held. */
	get length(): number {
		return this.#length;
	}

	/** The bytes held, valid until more are added. */
	get bytes(): Buffer {
		return this.#bytes.subarray(0, this.#length);
	}

	/**
	 * Adds bytes. Returns true if the incomplete head or trailer section must be parsed again. Parsing it after every byte would
	 * have quadratic cost.
	 */
	add(bytes: Buffer): boolean {
		const newLength = this.#length + bytes.length;
		if (newLength > this.#bytes.length) {
			const largerBuffer = Buffer.allocUnsafeSlow(Math.max(newLength, this.#bytes.length * 2));
			this.#bytes.copy(largerBuffer, 0, 0, this.#length);
			this.#bytes = largerBuffer;
		}
		bytes.copy(this.#bytes, this.#length);
		this.#length = newLength;
		this.#unparsedByteCount += bytes.length;
		if (this.#unparsedByteCount < PARSE_STEP_BYTES && !bytes.includes(LF)) return false;
		this.#unparsedByteCount = 0;
		return true;
	}
}
