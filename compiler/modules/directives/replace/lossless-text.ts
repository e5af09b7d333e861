/**
 * Converts bytes to text and back without loss. Bytes that are not UTF-8 become the unpaired surrogates U+DC80 to U+DCFF, which
 * UTF-8 cannot contain.
 */
import { isUtf8 } from 'node:buffer';

/** Added to a byte that is not UTF-8. */
const ESCAPE = 0xdc00;
/** Number of characters that one call of `String.fromCharCode` receives. */
const PIECE = 4096;

/** Decodes bytes that arrive in pieces. */
export class LosslessDecoder {
	/** The beginning of a character whose other bytes have not arrived; at most three bytes. */
	#begun: Uint8Array = new Uint8Array(0);

	/** Decodes the next bytes. With `last`, no more follow. */
	decode(bytes: Uint8Array, last: boolean): string {
		const all = this.#begun.length > 0 ? Buffer.concat([this.#begun, bytes]) : bytes;
		const end = last ? all.length : all.length - begunLength(all);
		// The next piece reuses the memory of this one.
		this.#begun = Uint8Array.prototype.slice.call(all, end);
		return textOf(all.subarray(0, end));
	}
}

/** Encodes text that {@link LosslessDecoder} has returned, and other text. */
export function encodeLossless(text: string): Buffer {
	if (text.isWellFormed()) return Buffer.from(text);
	const parts: Buffer[] = [];
	let from = 0;
	for (const { index, 0: escaped } of text.matchAll(/[\udc80-\udcff]+/gu)) {
		parts.push(Buffer.from(text.slice(from, index)));
		const bytes = Buffer.allocUnsafe(escaped.length);
		for (let i = 0; i < escaped.length; i++) bytes[i] = escaped.charCodeAt(i) - ESCAPE;
		parts.push(bytes);
		from = index + escaped.length;
	}
	parts.push(Buffer.from(text.slice(from)));
	return Buffer.concat(parts);
}

/** Returns the number of bytes at the end that begin a character but do not complete it. */
function begunLength(bytes: Uint8Array): number {
	for (let length = 1; length <= 3 && length <= bytes.length; length++) {
		const byte = bytes[bytes.length - length]!;
		if (byte < 0x80) return 0;
		if (byte < 0xc0) continue;
		const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf8 ? 4 : 1;
		return needed > length ? length : 0;
	}
	return 0;
}

function textOf(bytes: Uint8Array): string {
	const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	if (isUtf8(buffer)) return buffer.toString('utf8');
	let text = '';
	let codes: number[] = [];
	for (let at = 0; at < bytes.length; ) {
		const length = characterLength(bytes, at);
		if (length === 0) codes.push(ESCAPE + bytes[at++]!);
		else {
			const code = codeAt(bytes, at, length);
			if (code > 0xffff) codes.push(0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
			else codes.push(code);
			at += length;
		}
		if (codes.length >= PIECE) {
			text += String.fromCharCode(...codes);
			codes = [];
		}
	}
	return text + String.fromCharCode(...codes);
}

/** Returns the number of bytes of the UTF-8 character at a position; 0 if there is none (Unicode 3.9, table 3-7). */
function characterLength(bytes: Uint8Array, at: number): number {
	const first = bytes[at]!;
	if (first < 0x80) return 1;
	if (first < 0xc2 || first > 0xf4) return 0;
	const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (at + length > bytes.length) return 0;
	const second = bytes[at + 1]!;
	const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
	const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
	if (second < low || second > high) return 0;
	for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
	return length;
}

function codeAt(bytes: Uint8Array, at: number, length: number): number {
	if (length === 1) return bytes[at]!;
	let code = bytes[at]! & (0xff >> (length + 1));
	for (let i = 1; i < length; i++) code = (code << 6) | (bytes[at + i]! & 0x3f);
	return code;
}
