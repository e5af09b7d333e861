/**
 * The index of responses on disk: hashes and positions in flat arrays, 56 bytes per response. No operation becomes slower as their
 * number grows: tables have their final size from the start, rows are added page by page, and scans are divided into slices.
 */
import { MAX_VARIANTS } from '../shared-cache.ts';

/** Words of a row. */
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
	 * The next rows, counted from 1, in the row's buckets of the tables of keys, URLs and paths. In a free row, `byKey` is the next
	 * free row.
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

/** A response on disk. */
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
const PAGE_ROWS = 2 ** PAGE_BITS;
/** Minimum and maximum number of buckets, and bytes of disk per bucket. */
const MIN_BUCKETS = 1024;
const MAX_BUCKETS = 2 ** 22;
const BYTES_PER_BUCKET = 8192;
/** Number of rows scanned before the thread does other work. */
const ROWS_PER_SLICE = 8192;

/** The index of one folder. The caller limits its size by dropping segments. */
export class DiskIndex {
	readonly #onChange: (a: number, change: 1 | -1) => void;
	readonly #pages: Int32Array[] = [];
	readonly #mask: number;
	readonly #keys: Int32Array;
	readonly #urls: Int32Array;
	readonly #paths: Int32Array;
	/** The first row of each segment's list. Includes dropped segments until all their rows have been removed. */
	readonly #segments = new Map<number, number>();
	readonly #droppedSegments = new Set<number>();
	#usedRows = 0;
	#firstFreeRow = 0;
	#rowCount = 0;

	/**
	 * @param maxDiskBytes Maximum size of the folder in bytes.
	 * @param onChange Called for every row added or removed, with half of the hash of the row's key.
	 */
	constructor(maxDiskBytes: number, onChange: (a: number, change: 1 | -1) => void) {
		this.#onChange = onChange;
		const idealBuckets = 2 ** Math.ceil(Math.log2(Math.max(1, maxDiskBytes / BYTES_PER_BUCKET)));
		const buckets = Math.min(MAX_BUCKETS, Math.max(MIN_BUCKETS, idealBuckets));
		this.#mask = buckets - 1;
		this.#keys = new Int32Array(buckets);
		this.#urls = new Int32Array(buckets);
		this.#paths = new Int32Array(buckets);
	}

	/** Number of responses. */
	get size(): number {
		return this.#rowCount;
	}

	/** Adds a response, which replaces one with the same key and variant. If a key has too many variants, the oldest is removed. */
	add(response: IndexedResponse): void {
		let otherVariants = 0;
		let oldest = 0;
		for (const row of this.#rowsOfKey(response.a, response.b)) {
			if (this.#get(row, ROW.variant) === response.variant) this.#remove(row);
			else {
				otherVariants++;
				if (oldest === 0 || this.#isBefore(row, oldest)) oldest = row;
			}
		}
		if (otherVariants >= MAX_VARIANTS) this.#remove(oldest);
		const row = this.#allocateRow();
		const page = this.#pages[row >> PAGE_BITS]!;
		const wordIndex = (row & (PAGE_ROWS - 1)) * ROW.length;
		page[wordIndex + ROW.a] = response.a;
		page[wordIndex + ROW.b] = response.b;
		page[wordIndex + ROW.variant] = response.variant;
		page[wordIndex + ROW.url] = response.url;
		page[wordIndex + ROW.path] = response.path;
		page[wordIndex + ROW.segment] = response.segment;
		page[wordIndex + ROW.offset] = response.offset;
		page[wordIndex + ROW.headBytes] = response.headBytes;
		page[wordIndex + ROW.bodyBytes] = response.bodyBytes;
		this.#link(this.#keys, response.a, row, ROW.byKey);
		this.#link(this.#urls, response.url, row, ROW.byUrl);
		this.#link(this.#paths, response.path, row, ROW.byPath);
		const firstRow = this.#segments.get(response.segment) ?? 0;
		page[wordIndex + ROW.next] = firstRow;
		page[wordIndex + ROW.previous] = 0;
		if (firstRow !== 0) this.#set(firstRow, ROW.previous, row);
		this.#segments.set(response.segment, row);
		this.#rowCount++;
		this.#onChange(response.a, 1);
	}

	/** Returns the responses of a key. */
	find(a: number, b: number): readonly IndexedResponse[] {
		return this.#rowsOfKey(a, b)
			.map(row => this.#readRow(row))
			.filter(({ segment }) => !this.#droppedSegments.has(segment));
	}

	/** Reports whether exactly this response is still in the index. */
	has({ a, b, segment, offset }: IndexedResponse): boolean {
		return this.find(a, b).some(found => found.segment === segment && found.offset === offset);
	}

	/** Removes a key. Returns the number of removed responses. */
	forgetKey(a: number, b: number): number {
		return this.#removeAll(this.#rowsOfKey(a, b));
	}

	/** Removes one variant of a key. Returns the number of removed responses. */
	forgetVariant(a: number, b: number, variant: number): number {
		return this.#removeAll(this.#rowsOfKey(a, b).filter(row => this.#get(row, ROW.variant) === variant));
	}

	forgetUrl(url: number): number {
		return this.#removeAll(this.#rowsWith(this.#urls, url, ROW.url, ROW.byUrl));
	}

	forgetPath(path: number): number {
		return this.#removeAll(this.#rowsWith(this.#paths, path, ROW.path, ROW.byPath));
	}

	/** Removes keys by half of their hash. Returns the removed keys. */
	forgetHash(a: number): readonly (readonly [a: number, b: number])[] {
		const rows = this.#rowsWith(this.#keys, a, ROW.a, ROW.byKey);
		const keys = rows.map(row => [a, this.#get(row, ROW.b)] as const);
		this.#removeAll(rows);
		return keys;
	}

	/** Removes all keys whose hash matches, in slices. Returns the removed keys. */
	async forgetWhere(matches: (a: number) => boolean): Promise<readonly (readonly [a: number, b: number])[]> {
		const keys: (readonly [a: number, b: number])[] = [];
		for (let row = 1; row <= this.#usedRows; row++) {
			const a = this.#get(row, ROW.a);
			if (this.#get(row, ROW.segment) !== 0 && matches(a)) keys.push(...this.forgetHash(a));
			if (row % ROWS_PER_SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		return keys;
	}

	/** Hides all responses of a segment at once, and removes their rows in slices. Resolves when the rows have been removed. */
	async forgetSegment(segment: number): Promise<void> {
		if (!this.#segments.has(segment)) return;
		this.#droppedSegments.add(segment);
		for (let count = 1; ; count++) {
			const row = this.#segments.get(segment);
			if (row === undefined) break;
			this.#remove(row);
			if (count % ROWS_PER_SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		this.#droppedSegments.delete(segment);
	}

	#isBefore(row: number, otherRow: number): boolean {
		const segmentDifference = this.#get(row, ROW.segment) - this.#get(otherRow, ROW.segment);
		return (
			segmentDifference < 0 || (segmentDifference === 0 && this.#get(row, ROW.offset) < this.#get(otherRow, ROW.offset))
		);
	}

	#removeAll(rows: readonly number[]): number {
		for (const row of rows) this.#remove(row);
		return rows.length;
	}

	#rowsOfKey(a: number, b: number): number[] {
		return this.#rowsWith(this.#keys, a, ROW.a, ROW.byKey).filter(row => this.#get(row, ROW.b) === b);
	}

	/** Returns all rows in a bucket of `table` whose `word` has this value. */
	#rowsWith(table: Int32Array, value: number, word: number, link: Link): number[] {
		const rows: number[] = [];
		for (let row = table[value & this.#mask]!; row !== 0; row = this.#get(row, link)) {
			if (this.#get(row, word) === value) rows.push(row);
		}
		return rows;
	}

	#remove(row: number): void {
		const a = this.#get(row, ROW.a);
		this.#unlink(this.#keys, a, row, ROW.byKey);
		this.#unlink(this.#urls, this.#get(row, ROW.url), row, ROW.byUrl);
		this.#unlink(this.#paths, this.#get(row, ROW.path), row, ROW.byPath);
		const next = this.#get(row, ROW.next);
		const previous = this.#get(row, ROW.previous);
		const segment = this.#get(row, ROW.segment);
		if (next !== 0) this.#set(next, ROW.previous, previous);
		if (previous !== 0) this.#set(previous, ROW.next, next);
		else if (next !== 0) this.#segments.set(segment, next);
		else this.#segments.delete(segment);
		this.#set(row, ROW.segment, 0);
		this.#set(row, ROW.byKey, this.#firstFreeRow);
		this.#firstFreeRow = row;
		this.#rowCount--;
		this.#onChange(a, -1);
	}

	#readRow(row: number): IndexedResponse {
		const wordIndex = (row & (PAGE_ROWS - 1)) * ROW.length;
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
			this.#firstFreeRow = this.#get(row, ROW.byKey);
			return row;
		}
		const row = ++this.#usedRows;
		if (row >> PAGE_BITS >= this.#pages.length) this.#pages.push(new Int32Array(PAGE_ROWS * ROW.length));
		return row;
	}

	#get(row: number, word: number): number {
		return this.#pages[row >> PAGE_BITS]![(row & (PAGE_ROWS - 1)) * ROW.length + word]!;
	}

	#set(row: number, word: number, value: number): void {
		this.#pages[row >> PAGE_BITS]![(row & (PAGE_ROWS - 1)) * ROW.length + word] = value;
	}

	#link(table: Int32Array, value: number, row: number, link: Link): void {
		const bucket = value & this.#mask;
		this.#set(row, link, table[bucket]!);
		table[bucket] = row;
	}

	#unlink(table: Int32Array, value: number, row: number, link: Link): void {
		const bucket = value & this.#mask;
		let previousRow = 0;
		for (let current = table[bucket]!; current !== row; current = this.#get(current, link)) previousRow = current;
		const next = this.#get(row, link);
		if (previousRow === 0) table[bucket] = next;
		else this.#set(previousRow, link, next);
	}
}
