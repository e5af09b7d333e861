/** Variable-length integers (RFC 9000 §16). */

/** The largest integer supported, 2^53 − 1. The format allows up to 2^62 − 1, which a number cannot represent exactly. */
export const MAX_VARINT: number = Number.MAX_SAFE_INTEGER;

/** Returns the number of bytes in which an integer is encoded: 1, 2, 4 or 8. */
export function varintLength(value: number): number {
	return value < 64 ? 1 : value < 16_384 ? 2 : value < 1_073_741_824 ? 4 : 8;
}

/** Writes an integer. Returns the index after it. Throws a RangeError if `value` exceeds MAX_VARINT. */
export function writeVarint(target: Buffer, at: number, value: number): number {
	if (value > MAX_VARINT) throw new RangeError('The integer is too large to be written exactly.');
	if (value < 64) {
		target[at] = value;
		return at + 1;
	}
	if (value < 16_384) return target.writeUInt16BE(value | 0x4000, at);
	if (value < 1_073_741_824) return target.writeUInt32BE((value | 0x8000_0000) >>> 0, at);
	target.writeUInt32BE((Math.floor(value / 4_294_967_296) | 0xc000_0000) >>> 0, at);
	return target.writeUInt32BE((value % 4_294_967_296) >>> 0, at + 4);
}

/** Decodes integers byte by byte. */
export class VarintReader {
	/** The integer, once `push` has returned true. Integers beyond 2^53 are inexact. */
	value = 0;
	#bytesLeft = -1;

	/** Adds the next byte. Returns true if it completes an integer. */
	push(byte: number): boolean {
		if (this.#bytesLeft < 0) {
			this.#bytesLeft = (1 << (byte >> 6)) - 1;
			this.value = byte & 0x3f;
		} else {
			this.value = this.value * 256 + byte;
			this.#bytesLeft--;
		}
		if (this.#bytesLeft > 0) return false;
		this.#bytesLeft = -1;
		return true;
	}

	/** True if an integer has begun and is incomplete. */
	get isIncomplete(): boolean {
		return this.#bytesLeft >= 0;
	}
}
