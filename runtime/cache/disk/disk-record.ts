/**
 * The record format of the disk tier: a fixed-length header, then the head of a response as JSON, then its body. Checksums
 * cover everything and reveal incompletely written records.
 */
import { crc32 } from 'node:zlib';
import type { CachedHead } from '../../../compiler/exchange/response-cache.ts';

export const RECORD_HEADER_BYTES = 64;

export const RECORD_KIND = {
	/** The kind of a record that contains a response. */
	put: 1,
	/** The three kinds of records that remove responses: those of a key, those of a URL, and those of a path on any host. */
	forgetKey: 2,
	forgetUrl: 3,
	forgetPath: 4,
	/** The kind of a record that removes the responses selected by a purge. It contains the selection as JSON in place of a head. */
	purge: 5,
} as const;

/** The value of `keepUntil` in a record that does not become useless with time. */
export const NEVER_EXPIRES = 0xffff_ffff;

/** The first four bytes of a record, `svcC`, as a little-endian number. */
const RECORD_MAGIC = 0x4363_7673;
/** Incremented with every change of the format; records of other versions are ignored. */
const FORMAT_VERSION = 1;

/** The contents of a record's header. Hashes use the store's seed, which is kept in the folder. */
export interface DiskRecord {
	readonly kind: number;
	readonly a: number;
	readonly b: number;
	/** Hash of the values of the request fields that the response's `Vary` names. */
	readonly variant: number;
	readonly url: number;
	readonly path: number;
	readonly headBytes: number;
	readonly bodyBytes: number;
	readonly headSum: number;
	readonly bodySum: number;
	/** Time in seconds since 1970 after which the record is useless. */
	readonly keepUntil: number;
}

/** Encodes the header of a record. */
export function encodeRecord(record: DiskRecord): Buffer {
	const bytes = Buffer.alloc(RECORD_HEADER_BYTES);
	bytes.writeUInt32LE(RECORD_MAGIC, 0);
	bytes.writeUInt8(FORMAT_VERSION, 4);
	bytes.writeUInt8(record.kind, 5);
	bytes.writeInt32LE(record.a, 16);
	bytes.writeInt32LE(record.b, 20);
	bytes.writeInt32LE(record.variant, 24);
	bytes.writeInt32LE(record.url, 28);
	bytes.writeInt32LE(record.path, 32);
	bytes.writeUInt32LE(record.headBytes, 36);
	bytes.writeUInt32LE(record.bodyBytes, 40);
	bytes.writeUInt32LE(record.headSum, 44);
	bytes.writeUInt32LE(record.bodySum, 48);
	bytes.writeUInt32LE(record.keepUntil, 52);
	bytes.writeUInt32LE(crc32(bytes.subarray(0, RECORD_HEADER_BYTES - 4)), RECORD_HEADER_BYTES - 4);
	return bytes;
}

/** Decodes the header of a record. Returns undefined if it is missing or damaged. */
export function decodeRecord(bytes: Buffer, at: number = 0): DiskRecord | undefined {
	if (bytes.byteLength < at + RECORD_HEADER_BYTES || bytes.readUInt32LE(at) !== RECORD_MAGIC) return undefined;
	if (bytes.readUInt8(at + 4) !== FORMAT_VERSION) return undefined;
	const checksum = crc32(bytes.subarray(at, at + RECORD_HEADER_BYTES - 4));
	if (bytes.readUInt32LE(at + RECORD_HEADER_BYTES - 4) !== checksum) return undefined;
	return {
		kind: bytes.readUInt8(at + 5),
		a: bytes.readInt32LE(at + 16),
		b: bytes.readInt32LE(at + 20),
		variant: bytes.readInt32LE(at + 24),
		url: bytes.readInt32LE(at + 28),
		path: bytes.readInt32LE(at + 32),
		headBytes: bytes.readUInt32LE(at + 36),
		bodyBytes: bytes.readUInt32LE(at + 40),
		headSum: bytes.readUInt32LE(at + 44),
		bodySum: bytes.readUInt32LE(at + 48),
		keepUntil: bytes.readUInt32LE(at + 52),
	};
}

/** Returns the size of a complete record in bytes. */
export function recordBytes({ headBytes, bodyBytes }: { headBytes: number; bodyBytes: number }): number {
	return RECORD_HEADER_BYTES + headBytes + bodyBytes;
}

/** Returns the time, in seconds since 1970, after which a response can be neither served, served stale, nor validated. */
export function keepUntilOf(head: CachedHead): number {
	if (head.etag !== undefined || head.modified !== undefined) return NEVER_EXPIRES;
	const maxUsableMs = head.lifetime - head.initialAge + Math.max(head.staleWhileRevalidate, head.staleIfError);
	return Math.min(NEVER_EXPIRES, Math.max(0, Math.ceil((head.storedAt + maxUsableMs) / 1000)));
}

/** The position of a record. Positions are ordered by age. */
export interface RecordPosition {
	readonly segment: number;
	readonly offset: number;
}

/** Reports whether the record at `position` was written before the one at `otherPosition`. */
export function isOlderPosition(position: RecordPosition, otherPosition: RecordPosition): boolean {
	return (
		position.segment < otherPosition.segment ||
		(position.segment === otherPosition.segment && position.offset < otherPosition.offset)
	);
}
