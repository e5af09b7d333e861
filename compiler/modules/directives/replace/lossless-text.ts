/**
 * Converts bytes to text and back without loss. Bytes that are not UTF-8 become the unpaired surrogates U+DC80 to U+DCFF, which
 * UTF-8 cannot contain.
 */
import { isUtf8 } from 'node:buffer';

/** Added to a byte that is not part of valid UTF-8. The sum is the unpaired surrogate that represents the byte. */
const SURROGATE_BASE = 0xdc00;
/** Maximum number of UTF-16 code units that are passed to one call of `String.fromCharCode`. */
const MAX_CODE_UNITS_PER_CALL = 4096;

/** Decodes bytes that arrive in pieces, without loss. */
export class LosslessDecoder {
	/** The first bytes of a character whose other bytes have not arrived yet; at most three. */
	#incompleteBytes: Uint8Array = new Uint8Array(0);

	/** Decodes the next bytes. `isLast` is true if no more bytes follow. */
	decode(bytes: Uint8Array, isLast: boolean): string {
		const allBytes = this.#incompleteBytes.length > 0 ? Buffer.concat([this.#incompleteBytes, bytes]) : bytes;
		const completeEnd = isLast ? allBytes.length : allBytes.length - incompleteByteCount(allBytes);
		// Copied, because the next piece will reuse the memory of this one.
		this.#incompleteBytes = Uint8Array.prototype.slice.call(allBytes, completeEnd);
		return decodeText(allBytes.subarray(0, completeEnd));
	}
}

/** Encodes any text, including the surrogates that {@link LosslessDecoder} returns for bytes that are not UTF-8. */
export function encodeLossless(text: string): Buffer {
	if (text.isWellFormed()) return Buffer.from(text);
	const chunks: Buffer[] = [];
	let start = 0;
	for (const { index, 0: escapedText } of text.matchAll(/[\udc80-\udcff]+/gu)) {
		chunks.push(Buffer.from(text.slice(start, index)));
		const bytes = Buffer.allocUnsafe(escapedText.length);
		for (let i = 0; i < escapedText.length; i++) bytes[i] = escapedText.charCodeAt(i) - SURROGATE_BASE;
		chunks.push(bytes);
		start = index + escapedText.length;
	}
	chunks.push(Buffer.from(text.slice(start)));
	return Buffer.concat(chunks);
}

/** Returns the number of bytes at the end of `bytes` that may be the start of an incomplete character, from 0 to 3. */
function incompleteByteCount(bytes: Uint8Array): number {
	for (let length = 1; length <= 3 && length <= bytes.length; length++) {
		const byte = bytes[bytes.length - length]!;
		if (byte < 0x80) return 0;
		if (byte < 0xc0) continue;
		const neededLength = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf8 ? 4 : 1;
		return neededLength > length ? length : 0;
	}
	return 0;
}

function decodeText(bytes: Uint8Array): string {
	const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	if (isUtf8(buffer)) return buffer.toString('utf8');
	let text = '';
	let codeUnits: number[] = [];
	for (let offset = 0; offset < bytes.length; ) {
		const length = characterLength(bytes, offset);
		if (length === 0) codeUnits.push(SURROGATE_BASE + bytes[offset++]!);
		else {
			const codePoint = decodeCharacter(bytes, offset, length);
			if (codePoint > 0xffff) codeUnits.push(0xd7c0 + (codePoint >> 10), 0xdc00 + (codePoint & 0x3ff));
			else codeUnits.push(codePoint);
			offset += length;
		}
		if (codeUnits.length >= MAX_CODE_UNITS_PER_CALL) {
			text += String.fromCharCode(...codeUnits);
			codeUnits = [];
		}
	}
	return text + String.fromCharCode(...codeUnits);
}

/**
 * Returns the number of bytes of the UTF-8 character at an offset; 0 if the bytes there are not valid UTF-8 (Unicode 3.9, table
 * 3-7).
 */
function characterLength(bytes: Uint8Array, offset: number): number {
	const firstByte = bytes[offset]!;
	if (firstByte < 0x80) return 1;
	if (firstByte < 0xc2 || firstByte > 0xf4) return 0;
	const length = firstByte < 0xe0 ? 2 : firstByte < 0xf0 ? 3 : 4;
	if (offset + length > bytes.length) return 0;
	const secondByte = bytes[offset + 1]!;
	const minSecondByte = firstByte === 0xe0 ? 0xa0 : firstByte === 0xf0 ? 0x90 : 0x80;
	const maxSecondByte = firstByte === 0xed ? 0x9f : firstByte === 0xf4 ? 0x8f : 0xbf;
	if (secondByte < minSecondByte || secondByte > maxSecondByte) return 0;
	for (let i = 2; i < length; i++) if ((bytes[offset + i]! & 0xc0) !== 0x80) return 0;
	return length;
}

function decodeCharacter(bytes: Uint8Array, offset: number, length: number): number {
	if (length === 1) return bytes[offset]!;
	let codePoint = bytes[offset]! & (0xff >> (length + 1));
	for (let i = 1; i < length; i++) codePoint = (codePoint << 6) | (bytes[offset + i]! & 0x3f);
	return codePoint;
}
