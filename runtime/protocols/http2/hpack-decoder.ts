/** Decodes header blocks (HPACK, RFC 7541). Each connection has its own decoder, because blocks depend on previous ones. */
import { DecodedField } from './field.ts';
import { huffmanDecode } from './huffman.ts';
import { STATIC_ENTRY_COUNT, STATIC_FIELDS } from './static-table.ts';

/** Receives the fields of a block in order. */
export interface FieldSink {
	onField(field: DecodedField): void;
}

/** Maximum bytes of the dynamic table. It is the protocol's default, which our SETTINGS do not change. */
const MAX_TABLE_BYTES = 4096;
/** Maximum entries of the dynamic table, in which each entry takes up at least 32 bytes (RFC 7541 §4.1). */
const MAX_TABLE_ENTRIES: number = MAX_TABLE_BYTES / 32;
/** Maximum value of an integer. No valid length or index is larger. */
const MAX_INTEGER = 1 << 24;

const STATIC_ENTRIES: readonly DecodedField[] = Array.from(
	{ length: STATIC_ENTRY_COUNT },
	(_, i) => new DecodedField(STATIC_FIELDS[i * 2]!, STATIC_FIELDS[i * 2 + 1]!),
);

/** Memory for decoded strings, shared by all decoders of one thread. */
export class StringMemory {
	readonly bytes: Buffer;

	/** @param maxBytes Maximum number of bytes of a string. */
	constructor(maxBytes: number) {
		// Some additional room is needed, because the Huffman decoder stops before the end of the memory.
		this.bytes = Buffer.allocUnsafeSlow(maxBytes + 4);
	}
}

/** The decoder of one connection. */
export class HpackDecoder {
	readonly #stringMemory: StringMemory;
	/** The dynamic table as a ring buffer, in which the newest entry is before `#nextIndex`. Created for the first entry. */
	#dynamicTable: (DecodedField | undefined)[] | undefined = undefined;
	#nextIndex = 0;
	#entryCount = 0;
	#tableBytes = 0;
	#capacityBytes = MAX_TABLE_BYTES;
	/** The current position in the input. */
	#readIndex = 0;

	constructor(memory: StringMemory) {
		this.#stringMemory = memory;
	}

	/** Decodes a complete block. Returns false if it is malformed, which is a connection error (RFC 9113 §4.3). */
	decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
		this.#readIndex = start;
		let sizeUpdateCount = 0;
		let hasFields = false;
		while (this.#readIndex < end) {
			const firstByte = bytes[this.#readIndex]!;
			if (firstByte >= 128) {
				const index = this.#readInteger(bytes, end, 7);
				const field = index > 0 ? this.#entryAt(index) : undefined;
				if (field === undefined) return false;
				sink.onField(field);
				hasFields = true;
			} else if (firstByte >= 32 && firstByte < 64) {
				// Size updates are allowed only at the start of a block, at most two: one down and one up again (RFC 7541 §4.2).
				const newCapacity = this.#readInteger(bytes, end, 5);
				if (hasFields || newCapacity < 0 || newCapacity > MAX_TABLE_BYTES || ++sizeUpdateCount > 2) return false;
				this.#capacityBytes = newCapacity;
				this.#evict(newCapacity);
			} else {
				const field = this.#readLiteral(bytes, end, firstByte >= 64 ? 6 : 4);
				if (field === undefined) return false;
				if (firstByte >= 64) this.#addEntry(field);
				sink.onField(field);
				hasFields = true;
			}
		}
		return true;
	}

	#readLiteral(bytes: Buffer, end: number, prefixBits: number): DecodedField | undefined {
		const index = this.#readInteger(bytes, end, prefixBits);
		if (index < 0) return undefined;
		if (index > 0) {
			const namedEntry = this.#entryAt(index);
			const value = namedEntry && this.#readString(bytes, end);
			return value === undefined ? undefined : new DecodedField(namedEntry!.name, value, namedEntry!.kind);
		}
		const name = this.#readString(bytes, end);
		const value = name === undefined ? undefined : this.#readString(bytes, end);
		return value === undefined ? undefined : new DecodedField(name!, value);
	}

	#entryAt(index: number): DecodedField | undefined {
		if (index <= STATIC_ENTRY_COUNT) return STATIC_ENTRIES[index - 1];
		const dynamicIndex = index - STATIC_ENTRY_COUNT;
		if (dynamicIndex > this.#entryCount) return undefined;
		return this.#dynamicTable![(this.#nextIndex - dynamicIndex + MAX_TABLE_ENTRIES) % MAX_TABLE_ENTRIES];
	}

	#addEntry(field: DecodedField): void {
		// Adding an entry that is larger than the table empties the table (RFC 7541 §4.4).
		this.#evict(this.#capacityBytes - field.countedBytes);
		if (field.countedBytes > this.#capacityBytes) return;
		this.#dynamicTable ??= new Array(MAX_TABLE_ENTRIES).fill(undefined);
		this.#dynamicTable[this.#nextIndex] = field;
		this.#nextIndex = (this.#nextIndex + 1) % MAX_TABLE_ENTRIES;
		this.#entryCount++;
		this.#tableBytes += field.countedBytes;
	}

	/** Evicts the oldest entries until the table has at most `maxBytes` bytes. */
	#evict(maxBytes: number): void {
		while (this.#entryCount > 0 && this.#tableBytes > maxBytes) {
			const oldestIndex = (this.#nextIndex - this.#entryCount + MAX_TABLE_ENTRIES) % MAX_TABLE_ENTRIES;
			this.#tableBytes -= this.#dynamicTable![oldestIndex]!.countedBytes;
			this.#dynamicTable![oldestIndex] = undefined;
			this.#entryCount--;
		}
	}

	/** Decodes an integer with a prefix of this many bits (RFC 7541 §5.1). Returns −1 if it is malformed or too large. */
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

	#readString(bytes: Buffer, end: number): string | undefined {
		if (this.#readIndex >= end) return undefined;
		const isHuffmanCoded = bytes[this.#readIndex]! >= 128;
		const length = this.#readInteger(bytes, end, 7);
		const start = this.#readIndex;
		if (length < 0 || length > end - start) return undefined;
		this.#readIndex = start + length;
		if (!isHuffmanCoded) return bytes.toString('latin1', start, this.#readIndex);
		const memory = this.#stringMemory.bytes;
		const decodedLength = huffmanDecode(bytes, start, this.#readIndex, memory);
		return decodedLength < 0 ? undefined : memory.toString('latin1', 0, decodedLength);
	}
}
