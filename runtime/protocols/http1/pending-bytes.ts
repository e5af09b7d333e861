/** Received bytes that are not yet a complete head, trailer section or message. */
import { ownedCopy } from './owned-copy.ts';

const LF = 10;
/** Bytes without a line end that may be added to an incomplete head before it is parsed again. */
const PARSE_STEP = 256;

/** A growing buffer. The cost of adding is proportional to what is added, however small the pieces. */
export class PendingBytes {
	#bytes: Buffer;
	#length: number;
	#unread = 0;

	/** Copies the bytes, because a few of them must not keep a large read buffer alive. */
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
	 * Adds bytes; returns true if an incomplete head or trailer section must be parsed again. Parsing after every byte would have
	 * quadratic cost.
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
