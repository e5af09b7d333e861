/** Encodes field sections of responses, using only the static table (QPACK, RFC 9204 §4.5). */
import { huffmanEncode, huffmanLength } from '../http2/huffman.ts';
import { type FieldLineFormat, writeDigits, writeInteger } from '../http2/response-fields.ts';
import { QPACK_STATIC_COUNT, QPACK_STATIC_FIELDS } from './qpack-static-table.ts';

const INDEXED_STATIC_PREFIX = 0xc0;
/** First byte of a literal field whose name is that of a static entry, and the flag that forbids intermediaries to index it. */
const LITERAL_NAMED_PREFIX = 0x50;
const NEVER_INDEXED_NAMED = 0x20;
const LITERAL_PREFIX = 0x20;
const NEVER_INDEXED_FLAG = 0x10;
const HUFFMAN_FLAG = 0x08;
/** Indexes in the static table. */
const STATUS_NAME_INDEX = 24;
const CONTENT_LENGTH_INDEX = 4;

/** Maximum bytes written by `writeSectionStart` and `writeSectionLength` together. */
export const MAX_SECTION_START_BYTES = 32;

/** For each name in the static table, the index of its first entry. */
const STATIC_INDEX_BY_NAME: ReadonlyMap<string, number> = buildStaticIndexes();
const INDEX_BY_STATUS: readonly number[] = buildStatusIndexes();

export const QPACK_FIELD_FORMAT: FieldLineFormat = {
	nameIndexes: STATIC_INDEX_BY_NAME,
	writeName(target, at, name, index, isSensitive) {
		// Entry 0 is `:authority`, which responses do not have.
		if (index > 0)
			return writeInteger(target, at, LITERAL_NAMED_PREFIX | (isSensitive ? NEVER_INDEXED_NAMED : 0), 4, index);
		const flags = LITERAL_PREFIX | (isSensitive ? NEVER_INDEXED_FLAG : 0);
		const codedLength = huffmanLength(name);
		if (codedLength < name.length)
			return huffmanEncode(name, target, writeInteger(target, at, flags | HUFFMAN_FLAG, 3, codedLength));
		const valueStart = writeInteger(target, at, flags, 3, name.length);
		return valueStart + target.write(name, valueStart, 'latin1');
	},
};

/** Writes the prefix of a section that uses no dynamic table, and the status if one is given. Returns the index after them. */
export function writeSectionStart(target: Buffer, at: number, status: number | undefined): number {
	target[at] = 0;
	target[at + 1] = 0;
	const lineStart = at + 2;
	if (status === undefined) return lineStart;
	const index = INDEX_BY_STATUS[status];
	if (index !== undefined) return writeInteger(target, lineStart, INDEXED_STATIC_PREFIX, 6, index);
	const valueIndex = writeInteger(target, lineStart, LITERAL_NAMED_PREFIX, 4, STATUS_NAME_INDEX);
	target[valueIndex] = 3;
	return writeDigits(target, valueIndex + 1, status, 3);
}

/** Adds a `Content-Length`. Returns the index after it. */
export function writeSectionLength(target: Buffer, at: number, length: number): number {
	const valueStart = writeInteger(target, at, LITERAL_NAMED_PREFIX, 4, CONTENT_LENGTH_INDEX);
	let digitCount = 1;
	for (let remaining = length; remaining >= 10; remaining = Math.floor(remaining / 10)) digitCount++;
	target[valueStart] = digitCount;
	return writeDigits(target, valueStart + 1, length, digitCount);
}

function buildStaticIndexes(): Map<string, number> {
	const indexByName = new Map<string, number>();
	for (let i = QPACK_STATIC_COUNT - 1; i >= 0; i--) indexByName.set(QPACK_STATIC_FIELDS[i * 2]!, i);
	return indexByName;
}

function buildStatusIndexes(): number[] {
	const indexes: number[] = [];
	for (let i = 0; i < QPACK_STATIC_COUNT; i++) {
		if (QPACK_STATIC_FIELDS[i * 2] === ':status') indexes[Number(QPACK_STATIC_FIELDS[i * 2 + 1])] = i;
	}
	return indexes;
}
