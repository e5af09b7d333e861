/** Decodes header blocks (HPACK, RFC 7541). Each connection has its own decoder, because blocks depend on previous ones. */
import { DecodedField } from './field.ts';
import { huffmanDecode } from './huffman.ts';
import { STATIC_COUNT, STATIC_FIELDS } from './static-table.ts';

/** Receives the fields of a block in order. */
export interface FieldSink {
	field(field: DecodedField): void;
}

/** Maximum bytes of the dynamic table. It is the protocol's default, which our SETTINGS do not change. */
const TABLE_SIZE = 4096;
/** Maximum entries of the dynamic table. Each entry counts for at least 32 bytes. */
const TABLE_ENTRIES: number = TABLE_SIZE / 32;
/** Larger integers are rejected. No valid length or index is that large. */
const MAX_INTEGER = 1 << 24;

const STATIC: readonly DecodedField[] = Array.from(
	{ length: STATIC_COUNT },
	(_, i) => new DecodedField(STATIC_FIELDS[i * 2]!, STATIC_FIELDS[i * 2 + 1]!),
);

/** Memory for decoded strings, shared by all decoders of one thread. */
export class StringMemory {
	readonly bytes: Buffer;

	/** `size` is the maximum bytes of a string. */
	constructor(size: number) {
		// Some additional room is needed, because the Huffman decoder stops before the end of the memory.
		this.bytes = Buffer.allocUnsafeSlow(size + 4);
	}
}

/** The decoder of one connection. */
export class HpackDecoder {
	readonly #memory: StringMemory;
	/** The dynamic table as a ring buffer: the newest entry is before `next`. Created with the first entry. */
	#ring: (DecodedField | undefined)[] | undefined = undefined;
	#next = 0;
	#count = 0;
	#size = 0;
	#capacity = TABLE_SIZE;
	/** The current position in the input. */
	#at = 0;

	constructor(memory: StringMemory) {
		this.#memory = memory;
	}

	/** Decodes a complete block. Returns false if it is malformed, which is a connection error (RFC 9113 §4.3). */
	decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
		this.#at = start;
		let updates = 0;
		let begun = false;
		while (this.#at < end) {
			const first = bytes[this.#at]!;
			if (first >= 128) {
				const index = this.#integer(bytes, end, 7);
				const field = index > 0 ? this.#entry(index) : undefined;
				if (field === undefined) return false;
				sink.field(field);
				begun = true;
			} else if (first >= 32 && first < 64) {
				// Size updates are allowed only at the start of a block, at most two: one down and one up again (RFC 7541 §4.2).
				const size = this.#integer(bytes, end, 5);
				if (begun || size < 0 || size > TABLE_SIZE || ++updates > 2) return false;
				this.#capacity = size;
				this.#evict(size);
			} else {
				const field = this.#literal(bytes, end, first >= 64 ? 6 : 4);
				if (field === undefined) return false;
				if (first >= 64) this.#add(field);
				sink.field(field);
				begun = true;
			}
		}
		return true;
	}

	#literal(bytes: Buffer, end: number, prefix: number): DecodedField | undefined {
		const index = this.#integer(bytes, end, prefix);
		if (index < 0) return undefined;
		if (index > 0) {
			const known = this.#entry(index);
			const value = known && this.#string(bytes, end);
			return value === undefined ? undefined : new DecodedField(known!.name, value, known!.kind);
		}
		const name = this.#string(bytes, end);
		const value = name === undefined ? undefined : this.#string(bytes, end);
		return value === undefined ? undefined : new DecodedField(name!, value);
	}

	#entry(index: number): DecodedField | undefined {
		if (index <= STATIC_COUNT) return STATIC[index - 1];
		const back = index - STATIC_COUNT;
		if (back > this.#count) return undefined;
		return this.#ring![(this.#next - back + TABLE_ENTRIES) % TABLE_ENTRIES];
	}

	#add(field: DecodedField): void {
		// Adding an entry that is larger than the table empties the table (RFC 7541 §4.4).
		this.#evict(this.#capacity - field.size);
		if (field.size > this.#capacity) return;
		this.#ring ??= new Array(TABLE_ENTRIES).fill(undefined);
		this.#ring[this.#next] = field;
		this.#next = (this.#next + 1) % TABLE_ENTRIES;
		this.#count++;
		this.#size += field.size;
	}

	/** Evicts the oldest entries until the table has at most `size` bytes. */
	#evict(size: number): void {
		while (this.#count > 0 && this.#size > size) {
			const oldest = (this.#next - this.#count + TABLE_ENTRIES) % TABLE_ENTRIES;
			this.#size -= this.#ring![oldest]!.size;
			this.#ring![oldest] = undefined;
			this.#count--;
		}
	}

	/** Decodes an integer with a prefix of this many bits (RFC 7541 §5.1). Returns −1 if it is malformed or too large. */
	#integer(bytes: Buffer, end: number, prefix: number): number {
		const mask = (1 << prefix) - 1;
		let value = bytes[this.#at++]! & mask;
		if (value < mask) return value;
		for (let shift = 0; shift <= 21; shift += 7) {
			if (this.#at >= end) return -1;
			const byte = bytes[this.#at++]!;
			value += (byte & 127) << shift;
			if (byte < 128) return value > MAX_INTEGER ? -1 : value;
		}
		return -1;
	}

	#string(bytes: Buffer, end: number): string | undefined {
		if (this.#at >= end) return undefined;
		const coded = bytes[this.#at]! >= 128;
		const length = this.#integer(bytes, end, 7);
		const start = this.#at;
		if (length < 0 || length > end - start) return undefined;
		this.#at = start + length;
		if (!coded) return bytes.toString('latin1', start, this.#at);
		const memory = this.#memory.bytes;
		const decoded = huffmanDecode(bytes, start, this.#at, memory);
		return decoded < 0 ? undefined : memory.toString('latin1', 0, decoded);
	}
}
