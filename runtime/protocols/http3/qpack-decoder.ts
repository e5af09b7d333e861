/**
 * Decodes field sections (QPACK, RFC 9204). Clients may use only the static table. With a dynamic table, a lost packet would
 * delay every section that refers to its contents, each connection would need memory for a table, and the client's encoder stream
 * would need limits. All this would only shorten requests, which are small anyway. Therefore sections are decoded without state,
 * and a reference to a dynamic table is an error.
 */
import { DecodedField } from '../http2/field.ts';
import type { FieldSink, StringMemory } from '../http2/hpack-decoder.ts';
import { huffmanDecode } from '../http2/huffman.ts';
import { knownName } from '../http2/known-names.ts';
import { QPACK_STATIC_COUNT, QPACK_STATIC_FIELDS } from './qpack-static-table.ts';

/** Maximum value of an integer. No valid length or index is larger. */
const MAX_INTEGER = 1 << 24;

const STATIC_ENTRIES: readonly DecodedField[] = Array.from(
	{ length: QPACK_STATIC_COUNT },
	(_, i) => new DecodedField(QPACK_STATIC_FIELDS[i * 2]!, QPACK_STATIC_FIELDS[i * 2 + 1]!),
);

/** Decodes field sections. One decoder per thread is enough, because no section depends on previous ones. */
export class QpackDecoder {
	readonly #stringMemory: StringMemory;
	#readIndex = 0;
	/** The string that was decoded last is in `#stringBytes[#stringStart, #stringEnd)`. */
	#stringBytes: Buffer;
	#stringStart = 0;
	#stringEnd = 0;

	constructor(memory: StringMemory) {
		this.#stringMemory = memory;
		this.#stringBytes = memory.bytes;
	}

	/** Decodes a complete section. Returns false if it is malformed, which ends the connection (RFC 9204 §2.2). */
	decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
		this.#readIndex = start;
		// Required Insert Count and Base (RFC 9204 §4.5.1). The count must be 0, which means that the sign of Base must be positive.
		if (end - start < 2 || this.#readInteger(bytes, end, 8) !== 0 || this.#readIndex >= end) return false;
		if (bytes[this.#readIndex]! >= 128 || !this.#skipDeltaBase(bytes, end)) return false;
		while (this.#readIndex < end) {
			const field = this.#readLine(bytes, end);
			if (field === undefined) return false;
			sink.onField(field);
		}
		return true;
	}

	/** Skips Delta Base, which has no meaning without a dynamic table but may have any value of up to 62 bits (RFC 9204 §4.1.1). */
	#skipDeltaBase(bytes: Buffer, end: number): boolean {
		if (bytes[this.#readIndex++]! < 127) return true;
		const limit = Math.min(end, this.#readIndex + 9);
		while (this.#readIndex < limit) if (bytes[this.#readIndex++]! < 128) return true;
		return false;
	}

	#readLine(bytes: Buffer, end: number): DecodedField | undefined {
		const firstByte = bytes[this.#readIndex]!;
		if (firstByte >= 128) {
			// An indexed field line begins with the bits 1T. T must be set, which refers to the static table.
			if ((firstByte & 0x40) === 0) return undefined;
			return STATIC_ENTRIES[this.#readInteger(bytes, end, 6)];
		}
		if (firstByte >= 64) {
			// A literal field line with a name reference begins with the bits 01NT. T must be set, which refers to the static
			// table.
			if ((firstByte & 0x10) === 0) return undefined;
			const namedEntry = STATIC_ENTRIES[this.#readInteger(bytes, end, 4)];
			const value = namedEntry && this.#readString(bytes, end, 7);
			return value === undefined ? undefined : new DecodedField(namedEntry!.name, value, namedEntry!.kind);
		}
		// The post-Base forms 0001 and 0000 refer to the dynamic table.
		if (firstByte < 32) return undefined;
		if (!this.#findString(bytes, end, 3)) return undefined;
		const known = knownName(this.#stringBytes, this.#stringStart, this.#stringEnd);
		const name = known === undefined ? this.#foundString() : known.name;
		const value = this.#readString(bytes, end, 7);
		return value === undefined ? undefined : new DecodedField(name, value, known?.kind);
	}

	/** Decodes an integer with a prefix of `prefixBits` bits (RFC 7541 §5.1). Returns −1 if it is malformed or too large. */
	#readInteger(bytes: Buffer, end: number, prefixBits: number): number {
		const mask = (1 << prefixBits) - 1;
		let value = bytes[this.#readIndex++]! & mask;
		if (value < mask) return value;
		for (let shift = 0; shift <= 21; shift += 7) {
			if (this.#readIndex >= end) return -1;
			const byte = bytes[this.#readIndex++]!;
			value += (byte & 127) << shift;
			if (byte < 128) return value > MAX_INTEGER ? -1 : value;
		}
		return -1;
	}

	/** Decodes a string. Returns undefined if it is malformed. */
	#readString(bytes: Buffer, end: number, prefixBits: number): string | undefined {
		return this.#findString(bytes, end, prefixBits) ? this.#foundString() : undefined;
	}

	/**
	 * Decodes a string to `#stringBytes`. It begins with a bit that tells whether it is Huffman-coded, followed by its length, an
	 * integer with a prefix of `prefixBits` bits. Returns false if it is malformed.
	 */
	#findString(bytes: Buffer, end: number, prefixBits: number): boolean {
		if (this.#readIndex >= end) return false;
		const isHuffmanCoded = (bytes[this.#readIndex]! & (1 << prefixBits)) !== 0;
		const length = this.#readInteger(bytes, end, prefixBits);
		const start = this.#readIndex;
		if (length < 0 || length > end - start) return false;
		this.#readIndex = start + length;
		this.#stringBytes = bytes;
		this.#stringStart = start;
		this.#stringEnd = this.#readIndex;
		if (!isHuffmanCoded) return true;
		const memory = this.#stringMemory.bytes;
		const decodedLength = huffmanDecode(bytes, start, this.#readIndex, memory);
		this.#stringBytes = memory;
		this.#stringStart = 0;
		this.#stringEnd = decodedLength;
		return decodedLength >= 0;
	}

	#foundString(): string {
		return this.#stringBytes.toString('latin1', this.#stringStart, this.#stringEnd);
	}
}
