/** Encodes response heads from the fields that handlers set. The protocol itself controls some fields (RFC 9113 §8.2.2, RFC 7541). */
import { encodeFieldText, fieldValueKind, isToken, trimBlanks } from '../../../compiler/exchange/field-syntax.ts';
import type { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { STATIC_FIELDS } from './static-table.ts';

/** For each name in the static table, the index of its first entry. */
const STATIC_NAMES: ReadonlyMap<string, number> = staticNames();
const STATUS_INDEX: readonly number[] = statusIndexes();
const CONTENT_LENGTH = 28;
const STATUS = 8;

/** Literal fields are not added to any table. With NEVER_INDEXED, intermediaries must not add them either (RFC 7541 §6.2.2, §6.2.3). */
const LITERAL = 0x00;
const NEVER_INDEXED = 0x10;
/** A dynamic table size update to zero, because our encoding never uses the client's dynamic table. */
const NO_TABLE = 0x20;

/** Fields whose values are secret, so they are never indexed. */
const SENSITIVE: ReadonlySet<string> = new Set(['set-cookie', 'authorization', 'proxy-authorization']);

/** An encoded list of fields. */
export interface EncodedFields {
	readonly bytes: Uint8Array;
	/** True if handlers set `Date`. */
	readonly hasDate: boolean;
	/** The `Content-Length` set by handlers; −1 if there is none or it is not a number. It is not part of the bytes. */
	readonly contentLength: number;
}

interface Remembered extends EncodedFields {
	readonly items: readonly string[];
}

/** Number of cached field lists. They use at most 64 KiB per thread. */
const REMEMBERED = 64;
/** Maximum length of a cached field list. */
const REMEMBERED_LENGTH = 1024;
/** Maximum total bytes of a head's fields. Fields beyond it are dropped. */
const MAX_BYTES = 262_144;

/** The format in which a protocol writes one field: HPACK or QPACK. */
export interface FieldLineFormat {
	/** Indexes of names in the static table. A name that is missing or has index 0 is written as a literal. */
	readonly names: ReadonlyMap<string, number>;
	/** Writes a field's name, with the flag that says whether the field may be indexed. Returns the index where the value follows. */
	writeName(to: Buffer, at: number, name: string, index: number, sensitive: boolean): number;
}

const HPACK: FieldLineFormat = {
	names: STATIC_NAMES,
	writeName(to, at, name, index, sensitive) {
		const next = writeInteger(to, at, sensitive ? NEVER_INDEXED : LITERAL, 4, index);
		return index === 0 ? writeString(to, next, name) : next;
	},
};

/** Encodes response heads. One per thread: it uses no dynamic table, so its output is valid for all connections. */
export class ResponseFields {
	readonly #invalid: () => void;
	readonly #remembered: (Remembered | undefined)[] = new Array(REMEMBERED).fill(undefined);
	#memory: Buffer = Buffer.allocUnsafeSlow(4096);
	#at = 0;
	/** True if a field was dropped. Such a list is not cached, so that every occurrence is counted. */
	#dropped = false;
	#date: Uint8Array = new Uint8Array(0);
	#dateUntil = 0;

	readonly #coding: FieldLineFormat;

	/** `invalid` is called for each field that is dropped because it cannot be sent. */
	constructor(invalid: () => void, coding: FieldLineFormat = HPACK) {
		this.#invalid = invalid;
		this.#coding = coding;
	}

	/** Encodes fields as a part of a block. The bytes are valid until the next call. */
	encode(headers: HeaderList): EncodedFields {
		const size = headers.size;
		if (size === 0) return this.#encode(headers);
		const slot = (size * 31 + headers.valueAt(0).length * 7 + headers.valueAt(size - 1).length) % REMEMBERED;
		const known = this.#remembered[slot];
		if (known !== undefined && holds(headers, known.items)) return known;
		const made = this.#encode(headers);
		if (made.bytes.length <= REMEMBERED_LENGTH && !this.#dropped) {
			const items: string[] = [];
			for (let i = 0; i < size; i++) items.push(headers.nameAt(i), headers.valueAt(i));
			this.#remembered[slot] = { ...made, bytes: new Uint8Array(made.bytes), items };
		}
		return made;
	}

	/** Returns the encoded `Date` field. `now` is from `performance.now()`, at most a second old. */
	date(now: number): Uint8Array {
		if (now >= this.#dateUntil) {
			const date = Date.now();
			this.#at = 0;
			this.#field('date', new Date(date).toUTCString());
			this.#date = new Uint8Array(this.#memory.subarray(0, this.#at));
			this.#dateUntil = now + 1000 - (date % 1000);
		}
		return this.#date;
	}

	#encode(headers: HeaderList): EncodedFields {
		this.#at = 0;
		this.#dropped = false;
		let hasDate = false;
		let contentLength = -1;
		for (let i = 0, size = headers.size; i < size; i++) {
			const given = headers.nameAt(i);
			const name = given.toLowerCase();
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
			const kind = isToken(name) ? fieldValueKind(value) : 'invalid';
			if (kind === 'invalid') {
				this.#drop();
				continue;
			}
			if (kind === 'text') value = encodeFieldText(value);
			// HTTP/1.1 strips whitespace around a value. Here, it would make the message malformed (RFC 9113 §8.2.1).
			this.#field(name, trimBlanks(value));
		}
		return { bytes: this.#memory.subarray(0, this.#at), hasDate, contentLength };
	}

	#drop(): void {
		this.#invalid();
		this.#dropped = true;
	}

	#field(name: string, value: string): void {
		const needed = this.#at + name.length + value.length + 16;
		if (needed > this.#memory.length) {
			if (needed > MAX_BYTES) {
				this.#drop();
				return;
			}
			const larger = Buffer.allocUnsafeSlow(needed * 2);
			this.#memory.copy(larger, 0, 0, this.#at);
			this.#memory = larger;
		}
		const memory = this.#memory;
		const { names, writeName } = this.#coding;
		const at = writeName(memory, this.#at, name, names.get(name) ?? 0, SENSITIVE.has(name));
		this.#at = writeString(memory, at, value);
	}
}

/** Maximum bytes written by `writeStatus` and `writeLength` together. */
export const MAX_STATUS_AND_LENGTH_BYTES = 32;

/** Starts a block with a status. `first` is true for the first block of a connection. Returns the index after it. */
export function writeStatus(to: Buffer, at: number, status: number, first: boolean): number {
	let i = at;
	if (first) to[i++] = NO_TABLE;
	const index = STATUS_INDEX[status];
	if (index !== undefined) {
		to[i++] = 0x80 | index;
		return i;
	}
	to[i++] = LITERAL | STATUS;
	to[i++] = 3;
	return writeDigits(to, i, status, 3);
}

/** Adds a `Content-Length`. Returns the index after it. */
export function writeLength(to: Buffer, at: number, length: number): number {
	let digits = 1;
	for (let rest = length; rest >= 10; rest = Math.floor(rest / 10)) digits++;
	const i = writeInteger(to, at, LITERAL, 4, CONTENT_LENGTH);
	to[i] = digits;
	return writeDigits(to, i + 1, length, digits);
}

/** Writes a number in decimal, with the given number of digits. Returns the index after it. */
export function writeDigits(to: Buffer, at: number, value: number, digits: number): number {
	let rest = value;
	for (let i = at + digits - 1; i >= at; i--) {
		to[i] = 48 + (rest % 10);
		rest = Math.floor(rest / 10);
	}
	return at + digits;
}

/** Writes an integer with a prefix of `prefix` bits, below the flags in `first` (RFC 7541 §5.1). Returns the index after it. */
export function writeInteger(to: Buffer, at: number, first: number, prefix: number, value: number): number {
	const mask = (1 << prefix) - 1;
	let i = at;
	if (value < mask) {
		to[i++] = first | value;
		return i;
	}
	to[i++] = first | mask;
	let rest = value - mask;
	while (rest >= 128) {
		to[i++] = (rest & 127) | 128;
		rest >>>= 7;
	}
	to[i++] = rest;
	return i;
}

/** Writes a string, Huffman-coded if that is shorter (RFC 7541 §5.2). Returns the index after it. */
export function writeString(to: Buffer, at: number, text: string): number {
	const coded = huffmanLength(text);
	if (coded < text.length) return huffmanEncode(text, to, writeInteger(to, at, 0x80, 7, coded));
	const i = writeInteger(to, at, 0, 7, text.length);
	return i + to.write(text, i, 'latin1');
}

function holds(headers: HeaderList, items: readonly string[]): boolean {
	const size = headers.size;
	if (items.length !== size * 2) return false;
	for (let i = 0; i < size; i++) {
		if (headers.valueAt(i) !== items[i * 2 + 1] || headers.nameAt(i) !== items[i * 2]) return false;
	}
	return true;
}

function staticNames(): Map<string, number> {
	const names = new Map<string, number>();
	for (let i = STATIC_FIELDS.length - 2; i >= 0; i -= 2) names.set(STATIC_FIELDS[i]!, i / 2 + 1);
	return names;
}

function statusIndexes(): number[] {
	const indexes: number[] = [];
	for (let i = 0; i < STATIC_FIELDS.length; i += 2) {
		if (STATIC_FIELDS[i] === ':status') indexes[Number(STATIC_FIELDS[i + 1])] = i / 2 + 1;
	}
	return indexes;
}
