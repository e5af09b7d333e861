/**
 * The index of responses on disk: hashes and positions in flat arrays, 56 bytes per response. No operation becomes slower as their
 * number grows: tables have their final size from the start, rows are added page by page, and scans are divided into slices.
 */
import { MAX_VARIANTS } from '../shared-cache.ts';

/** Words of a row. */
const ROW = {
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
	 * The next row, counted from 1, in the same bucket: of keys, of URLs, and of paths. In free rows, `byKey` is the next free row.
	 */
	byKey: 9,
	byUrl: 10,
	byPath: 11,
	/** The neighbors in the list of the segment's rows. */
	next: 12,
	previous: 13,
	length: 14,
} as const;

/** One of a row's bucket lists. */
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
const BYTES_A_BUCKET = 8192;
/** Number of rows scanned before other work of the thread gets its turn. */
const SLICE = 8192;

/** The index of one folder. The caller bounds it by dropping segments. */
export class DiskIndex {
	readonly #changed: (a: number, by: 1 | -1) => void;
	readonly #pages: Int32Array[] = [];
	readonly #mask: number;
	readonly #keys: Int32Array;
	readonly #urls: Int32Array;
	readonly #paths: Int32Array;
	/** First row of each segment. Includes dropped segments until all their rows have been removed. */
	readonly #segments = new Map<number, number>();
	readonly #gone = new Set<number>();
	#used = 0;
	#free = 0;
	#size = 0;

	/** @param disk Maximum size in bytes. @param changed Called for every row added or removed, with half of its key's hash. */
	constructor(disk: number, changed: (a: number, by: 1 | -1) => void) {
		this.#changed = changed;
		const wanted = 2 ** Math.ceil(Math.log2(Math.max(1, disk / BYTES_A_BUCKET)));
		const buckets = Math.min(MAX_BUCKETS, Math.max(MIN_BUCKETS, wanted));
		this.#mask = buckets - 1;
		this.#keys = new Int32Array(buckets);
		this.#urls = new Int32Array(buckets);
		this.#paths = new Int32Array(buckets);
	}

	/** Number of responses. */
	get size(): number {
		return this.#size;
	}

	/** Adds a response, which replaces one with the same key and variant. If a key has too many variants, the oldest is removed. */
	add(place: IndexedResponse): void {
		let others = 0;
		let oldest = 0;
		for (const row of this.#ofKey(place.a, place.b)) {
			if (this.#get(row, ROW.variant) === place.variant) this.#remove(row);
			else {
				others++;
				if (oldest === 0 || this.#isBefore(row, oldest)) oldest = row;
			}
		}
		if (others >= MAX_VARIANTS) this.#remove(oldest);
		const row = this.#take();
		const page = this.#pages[row >> PAGE_BITS]!;
		const at = (row & (PAGE_ROWS - 1)) * ROW.length;
		page[at + ROW.a] = place.a;
		page[at + ROW.b] = place.b;
		page[at + ROW.variant] = place.variant;
		page[at + ROW.url] = place.url;
		page[at + ROW.path] = place.path;
		page[at + ROW.segment] = place.segment;
		page[at + ROW.offset] = place.offset;
		page[at + ROW.headBytes] = place.headBytes;
		page[at + ROW.bodyBytes] = place.bodyBytes;
		this.#link(this.#keys, place.a, row, ROW.byKey);
		this.#link(this.#urls, place.url, row, ROW.byUrl);
		this.#link(this.#paths, place.path, row, ROW.byPath);
		const first = this.#segments.get(place.segment) ?? 0;
		page[at + ROW.next] = first;
		page[at + ROW.previous] = 0;
		if (first !== 0) this.#set(first, ROW.previous, row);
		this.#segments.set(place.segment, row);
		this.#size++;
		this.#changed(place.a, 1);
	}

	/** Returns the responses of a key. */
	find(a: number, b: number): readonly IndexedResponse[] {
		return this.#ofKey(a, b)
			.map(row => this.#place(row))
			.filter(({ segment }) => !this.#gone.has(segment));
	}

	/** Reports whether exactly this response is still in the index. */
	has({ a, b, segment, offset }: IndexedResponse): boolean {
		return this.find(a, b).some(one => one.segment === segment && one.offset === offset);
	}

	/** Removes a key. Returns the number of removed responses. */
	forgetKey(a: number, b: number): number {
		return this.#removeAll(this.#ofKey(a, b));
	}

	/** Removes one variant of a key. Returns the number of removed responses. */
	forgetVariant(a: number, b: number, variant: number): number {
		return this.#removeAll(this.#ofKey(a, b).filter(row => this.#get(row, ROW.variant) === variant));
	}

	forgetUrl(url: number): number {
		return this.#removeAll(this.#having(this.#urls, url, ROW.url, ROW.byUrl));
	}

	forgetPath(path: number): number {
		return this.#removeAll(this.#having(this.#paths, path, ROW.path, ROW.byPath));
	}

	/** Removes keys by half of their hash. Returns the removed keys. */
	forgetHash(a: number): readonly (readonly [a: number, b: number])[] {
		const rows = this.#having(this.#keys, a, ROW.a, ROW.byKey);
		const keys = rows.map(row => [a, this.#get(row, ROW.b)] as const);
		this.#removeAll(rows);
		return keys;
	}

	/** Like {@link forgetHash}, for all matching keys, in slices. */
	async forgetWhere(isMeant: (a: number) => boolean): Promise<readonly (readonly [a: number, b: number])[]> {
		const keys: (readonly [a: number, b: number])[] = [];
		for (let row = 1; row <= this.#used; row++) {
			const a = this.#get(row, ROW.a);
			if (this.#get(row, ROW.segment) !== 0 && isMeant(a)) keys.push(...this.forgetHash(a));
			if (row % SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		return keys;
	}

	/** Hides all responses of a segment at once, and removes their rows in slices. Resolves when that is done. */
	async forgetSegment(segment: number): Promise<void> {
		if (!this.#segments.has(segment)) return;
		this.#gone.add(segment);
		for (let count = 1; ; count++) {
			const row = this.#segments.get(segment);
			if (row === undefined) break;
			this.#remove(row);
			if (count % SLICE === 0) await new Promise(resolve => setImmediate(resolve));
		}
		this.#gone.delete(segment);
	}

	#isBefore(one: number, other: number): boolean {
		const segments = this.#get(one, ROW.segment) - this.#get(other, ROW.segment);
		return segments < 0 || (segments === 0 && this.#get(one, ROW.offset) < this.#get(other, ROW.offset));
	}

	#removeAll(rows: readonly number[]): number {
		for (const row of rows) this.#remove(row);
		return rows.length;
	}

	#ofKey(a: number, b: number): number[] {
		return this.#having(this.#keys, a, ROW.a, ROW.byKey).filter(row => this.#get(row, ROW.b) === b);
	}

	/** Returns all rows with this value in the word that a table indexes. */
	#having(table: Int32Array, value: number, word: number, link: Link): number[] {
		const found: number[] = [];
		for (let row = table[value & this.#mask]!; row !== 0; row = this.#get(row, link)) {
			if (this.#get(row, word) === value) found.push(row);
		}
		return found;
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
		this.#set(row, ROW.byKey, this.#free);
		this.#free = row;
		this.#size--;
		this.#changed(a, -1);
	}

	#place(row: number): IndexedResponse {
		const at = (row & (PAGE_ROWS - 1)) * ROW.length;
		const [a, b, variant, url, path, segment, offset, headBytes, bodyBytes] =
			this.#pages[row >> PAGE_BITS]!.subarray(at);
		return {
			...{ a: a!, b: b!, variant: variant!, url: url!, path: path! },
			...{ segment: segment!, offset: offset!, headBytes: headBytes!, bodyBytes: bodyBytes! },
		};
	}

	/** Returns an unused row. Row 0 means none. */
	#take(): number {
		if (this.#free !== 0) {
			const row = this.#free;
			this.#free = this.#get(row, ROW.byKey);
			return row;
		}
		const row = ++this.#used;
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
		let before = 0;
		for (let one = table[bucket]!; one !== row; one = this.#get(one, link)) before = one;
		const next = this.#get(row, link);
		if (before === 0) table[bucket] = next;
		else this.#set(before, link, next);
	}
}
