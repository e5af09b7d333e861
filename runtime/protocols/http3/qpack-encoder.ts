/** Encodes field sections of responses, using only the static table (QPACK, RFC 9204 §4.5). */
import { huffmanEncode, huffmanLength } from '../http2/huffman.ts';
import { type FieldLineFormat, writeDigits, writeInteger } from '../http2/response-fields.ts';
import { QPACK_STATIC_COUNT, QPACK_STATIC_FIELDS } from './qpack-static-table.ts';

const INDEXED_STATIC = 0xc0;
/** A literal field whose name is that of a static entry, and the flag that forbids intermediaries to index it. */
const LITERAL_NAMED = 0x50;
const NEVER_NAMED = 0x20;
const LITERAL = 0x20;
const NEVER = 0x10;
const HUFFMAN = 0x08;
const STATUS = 24;
const CONTENT_LENGTH = 4;

/** Maximum bytes written by `writeSectionStart` and `writeSectionLength` together. */
export const MAX_SECTION_START_BYTES = 32;

/** For each name in the static table, the index of its first entry. */
const NAMES: ReadonlyMap<string, number> = staticNames();
const STATUSES: readonly number[] = statusIndexes();

/** The format in which QPACK writes a field. */
export const QPACK_FIELD_FORMAT: FieldLineFormat = {
	names: NAMES,
	writeName(to, at, name, index, sensitive) {
		// Entry 0 is `:authority`, which responses do not have.
		if (index > 0) return writeInteger(to, at, LITERAL_NAMED | (sensitive ? NEVER_NAMED : 0), 4, index);
		const form = LITERAL | (sensitive ? NEVER : 0);
		const coded = huffmanLength(name);
		if (coded < name.length) return huffmanEncode(name, to, writeInteger(to, at, form | HUFFMAN, 3, coded));
		const next = writeInteger(to, at, form, 3, name.length);
		return next + to.write(name, next, 'latin1');
	},
};

/** Starts a section without a dynamic table, with a status if one is given. Returns the index after it. */
export function writeSectionStart(to: Buffer, at: number, status: number | undefined): number {
	to[at] = 0;
	to[at + 1] = 0;
	const next = at + 2;
	if (status === undefined) return next;
	const index = STATUSES[status];
	if (index !== undefined) return writeInteger(to, next, INDEXED_STATIC, 6, index);
	const value = writeInteger(to, next, LITERAL_NAMED, 4, STATUS);
	to[value] = 3;
	return writeDigits(to, value + 1, status, 3);
}

/** Adds a `Content-Length`. Returns the index after it. */
export function writeSectionLength(to: Buffer, at: number, length: number): number {
	const next = writeInteger(to, at, LITERAL_NAMED, 4, CONTENT_LENGTH);
	let digits = 1;
	for (let rest = length; rest >= 10; rest = Math.floor(rest / 10)) digits++;
	to[next] = digits;
	return writeDigits(to, next + 1, length, digits);
}

function staticNames(): Map<string, number> {
	const names = new Map<string, number>();
	for (let i = QPACK_STATIC_COUNT - 1; i >= 0; i--) names.set(QPACK_STATIC_FIELDS[i * 2]!, i);
	return names;
}

function statusIndexes(): number[] {
	const indexes: number[] = [];
	for (let i = 0; i < QPACK_STATIC_COUNT; i++) {
		if (QPACK_STATIC_FIELDS[i * 2] === ':status') indexes[Number(QPACK_STATIC_FIELDS[i * 2 + 1])] = i;
	}
	return indexes;
}
