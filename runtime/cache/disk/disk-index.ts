/**
 * The index of responses on disk: hashes and positions in flat arrays, 56 bytes per response. No operation becomes slower as their
 * number grows: tables have their final size from the start, rows are added page by page, and scans are divided into slices.
 */
import { MAX_VARIANTS } from '../shared-cache.ts';

/** Offsets of the words in a row. */
const ROW = {
	/** The two halves of the key's hash. */
	a: 0,
	b: 1,
	variant: 2,
	url: 3,
	path: 4,
	segment: 5,
	offset: 6,
	headBytes: 7,
	bodyBytes: 8,
	/**
	 * The next row, counted from 1, in the row's bucket of each table: of keys, of URLs and of paths. In a free row, `byKey` is the
	 * next free row.
	 */
	byKey: 9,
	byUrl: 10,
	byPath: 11,
	/** The neighbors of the row in the list of its segment's rows. */
	next: 12,
	previous: 13,
	length: 14,
} as const;

/** A word of a row that links it to the next row in a bucket. */
type Link = typeof ROW.byKey | typeof ROW.byUrl | typeof ROW.byPath;

/** A response on disk: its hashes, and the position and lengths of its record. */
export interface IndexedResponse {
	readonly a: number;
	readonly b: number;
	readonly variant: number;
	readonly url: number;
	readonly path: number;
	readonly segment: number;
	readonly offset: number;
	readonly headBytes: number;
	readonly bodyBytes: number;
}

/** Base-2 logarithm of the number of rows per page. */
const PAGE_BITS = 14;
const ROWS_PER_PAGE = 2 ** PAGE_BITS;
/** Minimum and maximum number of buckets in a table, and the bytes of disk for which one bucket is reserved. */
const MIN_BUCKETS = 1024;
const MAX_BUCKETS = 2 ** 22;
const BYTES_PER_BUCKET = 8192;
/** Number of rows scanned before the thread does other work. */
const ROWS_PER_SLICE = 8192;

/** The index of one folder. The caller limits its size by dropping segments. */
export class DiskIndex {
	readonly #onRowChange: (a: number, change: 1 | -1) => void;
	readonly #pages: Int32Array[] = [];
	readonly #bucketMask: number;
	readonly #keyBuckets: Int32Array;
	readonly #urlBuckets: Int32Array;
	readonly #pathBuckets: Int32Array;
	/** The first row of each segment's list of rows. A dropped segment stays included until all its rows have been removed. */
	readonly #firstRows = new Map<number, number>();
	readonly #droppedSegments = new Set<number>();
	#usedRowCount = 0;
	#firstFreeRow = 0;
	#rowCount = 0;

	/**
	 * @param maxDiskBytes Maximum size of the folder in bytes.
	 * @param onRowChange Called for every row added or removed, with the first half of the hash of the row's key.
	 */
	constructor(maxDiskBytes: number, onRowChange: (a: number, change: 1 | -1) => void) {
		this.#onRowChange = onRowChange;
		const idealBuckets = 2 ** Math.ceil(Math.log2(Math.max(1, maxDiskBytes / BYTES_PER_BUCKET)));
		const bucketCount = Math.min(MAX_BUCKETS, Math.max(MIN_BUCKETS, idealBuckets));
		this.#bucketMask = bucketCount - 1;
		this.#keyBuckets = new Int32Array(bucketCount);
		this.#urlBuckets = new Int32Array(bucketCount);
		this.#pathBuckets = new Int32Array(bucketCount);
	}

	get size(): number {
		return this.#rowCount;
	}

	/**
	 * Adds a response, which replaces any with the same key and variant. If the key has too many variants, the oldest is removed.
	 */
	add(response: IndexedResponse): void {
		let otherVariantCount = 0;
		let oldestRow = 0;
		for (const row of this.#rowsOfKey(response.a, response.b)) {
			if (this.#readWord(row, ROW.variant) === response.variant) this.#removeRow(row);
			else {
				otherVariantCount++;
				if (oldestRow === 0 || this.#isBefore(row, oldestRow)) oldestRow = row;
			}
		}
		if (otherVariantCount >= MAX_VARIANTS) this.#removeRow(oldestRow);
		const row = this.#allocateRow();
		const page = this.#pages[row >> PAGE_BITS]!;
		const wordIndex = (row & (ROWS_PER_PAGE - 1)) * ROW.length;
		page[wordIndex + ROW.a] = response.a;
		page[wordIndex + ROW.b] = response.b;
		page[wordIndex + ROW.variant] = response.variant;
		page[wordIndex + ROW.url] = response.url;
		page[wordIndex + ROW.path] = response.path;
		page[wordIndex + ROW.segment] = response.segment;
		page[wordIndex + ROW.offset] = response.offset;
		page[wordIndex + ROW.headBytes] = response.headBytes;
		page[wordIndex + ROW.bodyBytes] = response.bodyBytes;
		this.#linkRow(this.#keyBuckets, response.a, row, ROW.byKey);
		this.#linkRow(this.#urlBuckets, response.url, row, ROW.byUrl);
		this.#linkRow(this.#pathBuckets, response.path, row, ROW.byPath);
		const firstRow = this.#firstRows.get(response.segment) ?? 0;
		page[wordIndex + ROW.next] = firstRow;
		page[wordIndex + ROW.previous] = 0;
		if (firstRow !== 0) this.#writeWord(firstRow, ROW.previous, row);
		this.#firstRows.set(response.segment, row);
		this.#rowCount++;
		this.#onRowChange(response.a, 1);
	}

	find(a: number, b: number): readonly IndexedResponse[] {
		return this.#rowsOfKey(a, b)
			.map(row => this.#readRow(row))
			.filter(({ segment }) => !this.#droppedSegments.has(segment));
	}

	/** Reports whether exactly this response is still in the index. */
	has({ a, b, segment, offset }: IndexedResponse): boolean {
		return this.find(a, b).some(response => response.segment === segment && response.offset === offset);
	}

	/** Removes all responses of a key. Returns their number. */
	forgetKey(a: number, b: number): number {
		return this.#removeRows(this.#rowsOfKey(a, b));
	}

	/** Removes the response for one variant of a key. Returns the number of removed responses. */
	forgetVariant(a: number, b: number, variant: number): number {
		return this.#removeRows(this.#rowsOfKey(a, b).filter(row => this.#readWord(row, ROW.variant) === variant));
	}

	forgetUrl(url: number): number {
		return this.#removeRows(this.#rowsWith(this.#urlBuckets, url, ROW.url, ROW.byUrl));
	}

	forgetPath(path: number): number {
		return this.#removeRows(this.#rowsWith(this.#pathBuckets, path, ROW.path, ROW.byPath));
	}

	/** Removes the responses of all keys whose hash has the first half `a`. Returns the hashes of these keys. */
	forgetHash(a: number): readonly (readonly [a: number, b: number])[] {
		const rows = this.#rowsWith(this.#keyBuckets, a, ROW.a, ROW.byKey);
		const keys = rows.map(row => [a, this.#readWord(row, ROW.b)] as const);
		this.#removeRows(rows);
		return keys;
	}

	/** Removes the responses of all keys whose first hash half matches, in slices. Returns the hashes of these keys. */
	async forgetWhere(matches: (a: number) => boolean): Promise<readonly (readonly [a: number, b: number])[]> {
		const keys: (readonly [a: number, b: number])[] = [];
		for (let row = 1; row <= this.#usedRowCount; row++) {
			const a = this.#readWord(row, ROW.a);
			if (this.#readWord(row, ROW.segment) !== 0 && matches(a)) keys.push(...this.forgetHash(a));
			if (row % ROWS_PER_SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		return keys;
	}

	/** Hides all responses of a segment at once, and removes their rows in slices. Resolves when the rows have been removed. */
	async forgetSegment(segment: number): Promise<void> {
		if (!this.#firstRows.has(segment)) return;
		this.#droppedSegments.add(segment);
		for (let removedCount = 1; ; removedCount++) {
			const row = this.#firstRows.get(segment);
			if (row === undefined) break;
			this.#removeRow(row);
			if (removedCount % ROWS_PER_SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		this.#droppedSegments.delete(segment);
	}

	#isBefore(row: number, otherRow: number): boolean {
		const segmentDifference = this.#readWord(row, ROW.segment) - this.#readWord(otherRow, ROW.segment);
		return (
			segmentDifference < 0 ||
			(segmentDifference === 0 && this.#readWord(row, ROW.offset) < this.#readWord(otherRow, ROW.offset))
		);
	}

	#removeRows(rows: readonly number[]): number {
		for (const row of rows) this.#removeRow(row);
		return rows.length;
	}

	#rowsOfKey(a: number, b: number): number[] {
		return this.#rowsWith(this.#keyBuckets, a, ROW.a, ROW.byKey).filter(row => this.#readWord(row, ROW.b) === b);
	}

	/** Returns the rows whose word `word` has this value. They are linked by `link` in the value's bucket of `table`. */
	#rowsWith(table: Int32Array, value: number, word: number, link: Link): number[] {
		const rows: number[] = [];
		for (let row = table[value & this.#bucketMask]!; row !== 0; row = this.#readWord(row, link)) {
			if (this.#readWord(row, word) === value) rows.push(row);
		}
		return rows;
	}

	#removeRow(row: number): void {
		const a = this.#readWord(row, ROW.a);
		this.#unlinkRow(this.#keyBuckets, a, row, ROW.byKey);
		this.#unlinkRow(this.#urlBuckets, this.#readWord(row, ROW.url), row, ROW.byUrl);
		this.#unlinkRow(this.#pathBuckets, this.#readWord(row, ROW.path), row, ROW.byPath);
		const nextRow = this.#readWord(row, ROW.next);
		const previousRow = this.#readWord(row, ROW.previous);
		const segment = this.#readWord(row, ROW.segment);
		if (nextRow !== 0) this.#writeWord(nextRow, ROW.previous, previousRow);
		if (previousRow !== 0) this.#writeWord(previousRow, ROW.next, nextRow);
		else if (nextRow !== 0) this.#firstRows.set(segment, nextRow);
		else this.#firstRows.delete(segment);
		this.#writeWord(row, ROW.segment, 0);
		this.#writeWord(row, ROW.byKey, this.#firstFreeRow);
		this.#firstFreeRow = row;
		this.#rowCount--;
		this.#onRowChange(a, -1);
	}

	#readRow(row: number): IndexedResponse {
		const wordIndex = (row & (ROWS_PER_PAGE - 1)) * ROW.length;
		const [a, b, variant, url, path, segment, offset, headBytes, bodyBytes] =
			this.#pages[row >> PAGE_BITS]!.subarray(wordIndex);
		return {
			...{ a: a!, b: b!, variant: variant!, url: url!, path: path! },
			...{ segment: segment!, offset: offset!, headBytes: headBytes!, bodyBytes: bodyBytes! },
		};
	}

	/** Returns an unused row. Row 0 means none. */
	#allocateRow(): number {
		if (this.#firstFreeRow !== 0) {
			const row = this.#firstFreeRow;
			this.#firstFreeRow = this.#readWord(row, ROW.byKey);
			return row;
		}
		const row = ++this.#usedRowCount;
		if (row >> PAGE_BITS >= this.#pages.length) this.#pages.push(new Int32Array(ROWS_PER_PAGE * ROW.length));
		return row;
	}

	#readWord(row: number, word: number): number {
		return this.#pages[row >> PAGE_BITS]![(row & (ROWS_PER_PAGE - 1)) * ROW.length + word]!;
	}

	#writeWord(row: number, word: number, value: number): void {
		this.#pages[row >> PAGE_BITS]![(row & (ROWS_PER_PAGE - 1)) * ROW.length + word] = value;
	}

	#linkRow(table: Int32Array, value: number, row: number, link: Link): void {
		const bucket = value & this.#bucketMask;
		this.#writeWord(row, link, table[bucket]!);
		table[bucket] = row;
	}

	#unlinkRow(table: Int32Array, value: number, row: number, link: Link): void {
		const bucket = value & this.#bucketMask;
		let previousRow = 0;
		for (let currentRow = table[bucket]!; currentRow !== row; currentRow = this.#readWord(currentRow, link))
			previousRow = currentRow;
		const nextRow = this.#readWord(row, link);
		if (previousRow === 0) table[bucket] = nextRow;
		else this.#writeWord(previousRow, link, nextRow);
	}
}
