/**
 * Reads the segments that an earlier process left in a folder: from their catalogs or, without a catalog, from the record
 * headers.
 */
import { crc32 } from 'node:zlib';
import { type DiskRecord, decodeRecord, RECORD_HEADER_BYTES, recordBytes } from './disk-record.ts';
import type { CatalogRow, SegmentFiles } from './segment-files.ts';

/** Number of bytes read at a time when searching for headers. */
const WINDOW_BYTES = 256 * 1024;
/** Number of rows processed before the thread does other work. */
const ROWS_PER_TURN = 4096;

/** Calls `onRecord` for each record of a segment, in order, until an incomplete one. */
export async function recoverSegment(
	files: SegmentFiles,
	segment: number,
	onRecord: (row: CatalogRow) => void | Promise<void>,
): Promise<void> {
	const catalog = await files.readCatalog(segment);
	if (catalog === undefined) {
		await scanSegment(files, segment, onRecord);
		return;
	}
	for (const [i, row] of catalog.entries()) {
		await onRecord(row);
		if (i % ROWS_PER_TURN === ROWS_PER_TURN - 1) await new Promise(resolve => setImmediate(resolve));
	}
}

async function scanSegment(
	files: SegmentFiles,
	segment: number,
	onRecord: (row: CatalogRow) => void | Promise<void>,
): Promise<void> {
	const segmentSize = files.sizeOf(segment);
	let windowStart = 0;
	let window: Buffer = Buffer.alloc(0);
	for (let recordOffset = 0; recordOffset + RECORD_HEADER_BYTES <= segmentSize; ) {
		if (recordOffset < windowStart || recordOffset + RECORD_HEADER_BYTES > windowStart + window.byteLength) {
			const chunk = await files.read(segment, recordOffset, Math.min(WINDOW_BYTES, segmentSize - recordOffset));
			if (chunk === undefined) return;
			window = chunk;
			windowStart = recordOffset;
		}
		const record = decodeRecord(window, recordOffset - windowStart);
		if (record === undefined || recordOffset + recordBytes(record) > segmentSize) return;
		await onRecord({ ...record, offset: recordOffset });
		recordOffset += recordBytes(record);
	}
}

/**
 * Reads a record: its header, its head and its body. The body is not verified. Returns undefined if the header or the head is
 * damaged.
 */
export async function readRecord(
	files: SegmentFiles,
	{ segment, offset, headBytes, bodyBytes }: { segment: number; offset: number; headBytes: number; bodyBytes: number },
): Promise<{ readonly record: DiskRecord; readonly head: Buffer; readonly body: Buffer } | undefined> {
	const bytes = await files.read(segment, offset, RECORD_HEADER_BYTES + headBytes + bodyBytes);
	const record = bytes && decodeRecord(bytes);
	if (record === undefined || record.headBytes !== headBytes || record.bodyBytes !== bodyBytes) return undefined;
	const head = bytes!.subarray(RECORD_HEADER_BYTES, RECORD_HEADER_BYTES + headBytes);
	if (crc32(head) !== record.headSum) return undefined;
	return { record, head, body: bytes!.subarray(RECORD_HEADER_BYTES + headBytes) };
}
