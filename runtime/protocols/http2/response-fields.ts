/**
 * Encodes response heads from the fields that handlers set. The protocol itself controls some fields (RFC 9113 §8.2.2, RFC 7541).
 */
import { encodeFieldText, fieldValueKind, isToken, trimBlanks } from '../../../compiler/exchange/field-syntax.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { STATIC_FIELDS } from './static-table.ts';

/** For each name in the static table, the index of its first entry. */
const STATIC_INDEX_BY_NAME: ReadonlyMap<string, number> = buildStaticIndexes();
const INDEX_BY_STATUS: readonly number[] = buildStatusIndexes();
/** Indexes in HPACK's static table (RFC 7541 Appendix A). */
const CONTENT_LENGTH_INDEX = 28;
const STATUS_NAME_INDEX = 8;

/**
 * Literal fields are not added to any table. With NEVER_INDEXED, intermediaries must not add them either (RFC 7541 §6.2.2,
 * §6.2.3).
 */
const LITERAL_PREFIX = 0x00;
const NEVER_INDEXED_PREFIX = 0x10;
/** A dynamic table size update to zero, because our encoding never uses the client's dynamic table. */
const CLEAR_TABLE_UPDATE = 0x20;

/** Fields whose values are secret, so they are never indexed. */
const SENSITIVE_NAMES: ReadonlySet<string> = new Set(['set-cookie', 'authorization', 'proxy-authorization']);

/** The result of {@link ResponseFields.encode}. */
export interface EncodedFields {
	readonly bytes: Uint8Array;
	/** True if handlers set `Date`. */
	readonly hasDate: boolean;
	/** The `Content-Length` set by handlers; −1 if there is none or it is not a number. It is not part of the bytes. */
	readonly contentLength: number;
}

interface CachedFields extends EncodedFields {
	readonly items: readonly string[];
}

/** Number of cached field lists. They use at most 64 KiB per thread. */
const CACHED_LIST_COUNT = 64;
/** Maximum encoded bytes of a cached field list. */
const MAX_CACHED_LIST_BYTES = 1024;
/** Maximum total bytes of the fields of a head. Any further fields are dropped. */
const MAX_FIELDS_BYTES = 262_144;

/** The format in which a protocol writes one field: HPACK or QPACK. */
export interface FieldLineFormat {
	/** Indexes of names in the static table. A name that is missing or has index 0 is written as a literal. */
	readonly nameIndexes: ReadonlyMap<string, number>;
	/**
	 * Writes the name of a field. `isSensitive` marks a field that must not be indexed. Returns the index at which
	 * the value must be written.
	 */
	writeName(target: Buffer, at: number, name: string, index: number, isSensitive: boolean): number;
}

const HPACK_FIELD_FORMAT: FieldLineFormat = {
	nameIndexes: STATIC_INDEX_BY_NAME,
	writeName(target, at, name, index, isSensitive) {
		const valueStart = writeInteger(target, at, isSensitive ? NEVER_INDEXED_PREFIX : LITERAL_PREFIX, 4, index);
		return index === 0 ? writeString(target, valueStart, name) : valueStart;
	},
};

/** Encodes response heads. One per thread: it uses no dynamic table, so its output is valid for all connections. */
export class ResponseFields {
	readonly #onInvalidField: () => void;
	readonly #cachedLists: (CachedFields | undefined)[] = new Array(CACHED_LIST_COUNT).fill(undefined);
	#buffer: Buffer = Buffer.allocUnsafeSlow(4096);
	#writeIndex = 0;
	/** True if a field of the current list was dropped. Such a list is not cached, so that the drop is counted in every response. */
	#hasDropped = false;
	#encodedDate: Uint8Array = new Uint8Array(0);
	#dateValidUntil = 0;

	readonly #format: FieldLineFormat;

	/** `onInvalidField` is called for each field that is dropped because it cannot be sent. */
	constructor(onInvalidField: () => void, format: FieldLineFormat = HPACK_FIELD_FORMAT) {
		this.#onInvalidField = onInvalidField;
		this.#format = format;
	}

	/** Encodes fields as a part of a block. The bytes are valid until the next call. */
	encode(headers: HeaderList): EncodedFields {
		const size = headers.size;
		if (size === 0) return this.#encodeFields(headers);
		const slotIndex =
			(size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size - 1).length) % CACHED_LIST_COUNT;
		const cachedFields = this.#cachedLists[slotIndex];
		if (cachedFields !== undefined && hasSameFields(headers, cachedFields.items)) return cachedFields;
		const encodedFields = this.#encodeFields(headers);
		if (encodedFields.bytes.length <= MAX_CACHED_LIST_BYTES && !this.#hasDropped) {
			const items: string[] = [];
			for (let i = 0; i < size; i++) items.push(headers.nameAt(i), headers.valueAt(i));
			this.#cachedLists[slotIndex] = { ...encodedFields, bytes: new Uint8Array(encodedFields.bytes), items };
		}
		return encodedFields;
	}

	/** Returns the encoded `Date` field. `now` is from `performance.now()`, at most a second old. */
	encodeDate(now: number): Uint8Array {
		if (now >= this.#dateValidUntil) {
			const dateMs = Date.now();
			this.#writeIndex = 0;
			this.#writeField('date', new Date(dateMs).toUTCString());
			this.#encodedDate = new Uint8Array(this.#buffer.subarray(0, this.#writeIndex));
			this.#dateValidUntil = now + 1000 - (dateMs % 1000);
		}
		return this.#encodedDate;
	}

	#encodeFields(headers: HeaderList): EncodedFields {
		this.#writeIndex = 0;
		this.#hasDropped = false;
		let hasDate = false;
		let contentLength = -1;
		for (let i = 0, size = headers.size; i < size; i++) {
			const rawName = headers.nameAt(i);
			const name = rawName.toLowerCase();
			let value = headers.valueAt(i);
			switch (name.length) {
				case 4:
					if (name === 'date') hasDate = true;
					break;
				case 7:
					if (name === 'upgrade') continue;
					break;
				case 10:
					if (name === 'connection' || name === 'keep-alive') continue;
					break;
				case 14:
					if (name !== 'content-length') break;
					contentLength = /^[0-9]{1,15}$/.test(value) ? Number(value) : -1;
					continue;
				case 16:
					if (name === 'proxy-connection') continue;
					break;
				case 17:
					if (name === 'transfer-encoding') continue;
			}
			const valueKind = isToken(name) ? fieldValueKind(value) : 'invalid';
			if (valueKind === 'invalid') {
				this.#dropField();
				continue;
			}
			if (valueKind === 'text') value = encodeFieldText(value);
			// HTTP/1.1 strips whitespace around a value. Here, whitespace would make the message malformed (RFC 9113 §8.2.1).
			this.#writeField(name, trimBlanks(value));
		}
		return { bytes: this.#buffer.subarray(0, this.#writeIndex), hasDate, contentLength };
	}

	#dropField(): void {
		this.#onInvalidField();
		this.#hasDropped = true;
	}

	#writeField(name: string, value: string): void {
		const neededBytes = this.#writeIndex + name.length + value.length + 16;
		if (neededBytes > this.#buffer.length) {
			if (neededBytes > MAX_FIELDS_BYTES) {
				this.#dropField();
				return;
			}
			const largerBuffer = Buffer.allocUnsafeSlow(neededBytes * 2);
			this.#buffer.copy(largerBuffer, 0, 0, this.#writeIndex);
			this.#buffer = largerBuffer;
		}
		const memory = this.#buffer;
		const { nameIndexes: names, writeName } = this.#format;
		const at = writeName(memory, this.#writeIndex, name, names.get(name) ?? 0, SENSITIVE_NAMES.has(name));
		this.#writeIndex = writeString(memory, at, value);
	}
}

/** Maximum bytes written by `writeStatus` and `writeLength` together. */
export const MAX_STATUS_AND_LENGTH_BYTES = 32;

/**
 * Starts a block with a status. `isFirstBlock` is true for the first block of a connection. Returns the index after
 * the status.
 */
export function writeStatus(target: Buffer, at: number, status: number, isFirstBlock: boolean): number {
	let i = at;
	if (isFirstBlock) target[i++] = CLEAR_TABLE_UPDATE;
	const index = INDEX_BY_STATUS[status];
	if (index !== undefined) {
		target[i++] = 0x80 | index;
		return i;
	}
	target[i++] = LITERAL_PREFIX | STATUS_NAME_INDEX;
	target[i++] = 3;
	return writeDigits(target, i, status, 3);
}

/** Adds a `Content-Length`. Returns the index after it. */
export function writeLength(target: Buffer, at: number, length: number): number {
	let digitCount = 1;
	for (let remaining = length; remaining >= 10; remaining = Math.floor(remaining / 10)) digitCount++;
	const i = writeInteger(target, at, LITERAL_PREFIX, 4, CONTENT_LENGTH_INDEX);
	target[i] = digitCount;
	return writeDigits(target, i + 1, length, digitCount);
}

/** Writes a number in decimal, with the given number of digits. Returns the index after it. */
export function writeDigits(target: Buffer, at: number, value: number, digitCount: number): number {
	let remaining = value;
	for (let i = at + digitCount - 1; i >= at; i--) {
		target[i] = 48 + (remaining % 10);
		remaining = Math.floor(remaining / 10);
	}
	return at + digitCount;
}

/** Writes an integer with a prefix of `prefixBits`, below the bits of `flags` (RFC 7541 §5.1). Returns the index after it. */
export function writeInteger(target: Buffer, at: number, flags: number, prefixBits: number, value: number): number {
	const mask = (1 << prefixBits) - 1;
	let i = at;
	if (value < mask) {
		target[i++] = flags | value;
		return i;
	}
	target[i++] = flags | mask;
	let remaining = value - mask;
	while (remaining >= 128) {
		target[i++] = (remaining & 127) | 128;
		remaining >>>= 7;
	}
	target[i++] = remaining;
	return i;
}

/** Writes a string, Huffman-coded if that is shorter (RFC 7541 §5.2). Returns the index after it. */
export function writeString(target: Buffer, at: number, text: string): number {
	const codedLength = huffmanLength(text);
	if (codedLength < text.length) return huffmanEncode(text, target, writeInteger(target, at, 0x80, 7, codedLength));
	const i = writeInteger(target, at, 0, 7, text.length);
	return i + target.write(text, i, 'latin1');
}

function hasSameFields(headers: HeaderList, items: readonly string[]): boolean {
	const size = headers.size;
	if (items.length !== size * 2) return false;
	for (let i = 0; i < size; i++) {
		if (headers.valueAt(i) !== items[i * 2 + 1] || headers.nameAt(i) !== items[i * 2]) return false;
	}
	return true;
}

function buildStaticIndexes(): Map<string, number> {
	const indexByName = new Map<string, number>();
	for (let i = STATIC_FIELDS.length - 2; i >= 0; i -= 2) indexByName.set(STATIC_FIELDS[i]!, i / 2 + 1);
	return indexByName;
}

function buildStatusIndexes(): number[] {
	const indexes: number[] = [];
	for (let i = 0; i < STATIC_FIELDS.length; i += 2) {
		if (STATIC_FIELDS[i] === ':status') indexes[Number(STATIC_FIELDS[i + 1])] = i / 2 + 1;
	}
	return indexes;
}
