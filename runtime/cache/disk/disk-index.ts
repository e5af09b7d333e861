/** Where on disk which response is: hashes and places in a few flat arrays, some 50 bytes for each. */
import { MOST_VARIANTS } from '../shared-cache.ts';

/** Words of a row, and what stands in which. */
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
	/** Next row of the same bucket of keys, and of URLs; from 1. */
	byKey: 9,
	byUrl: 10,
	length: 11,
} as const;

/** A response on disk. */
export interface DiskPlace {
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

/** Rows at the beginning. */
const LEAST_ROWS = 1024;

/** The index of one folder. Bounded by the caller, who drops segments. */
export class DiskIndex {
	readonly #changed: (a: number, by: 1 | -1) => void;
	#rows = new Int32Array(LEAST_ROWS * ROW.length);
	#keys = new Int32Array(LEAST_ROWS);
	#urls = new Int32Array(LEAST_ROWS);
	#used = 0;
	#free = 0;
	#size = 0;

	/** `changed` hears of every row that comes or goes, by the first half of its key's hash. */
	constructor(changed: (a: number, by: 1 | -1) => void) {
		this.#changed = changed;
	}

	/** Responses. */
	get size(): number {
		return this.#size;
	}

	/** Adds a response, in place of one of the same key and variant; of more variants than memory keeps the oldest goes. */
	add(place: DiskPlace): void {
		let others = 0;
		let oldest = 0;
		for (const row of this.#ofKey(place.a, place.b)) {
			if (this.#rows[row * ROW.length + ROW.variant] === place.variant) this.#remove(row);
			else {
				others++;
				if (oldest === 0 || this.#isBefore(row, oldest)) oldest = row;
			}
		}
		if (others >= MOST_VARIANTS) this.#remove(oldest);
		if (this.#free === 0 && (this.#used + 1) * ROW.length >= this.#rows.length) this.#grow();
		// Row 0 is none.
		const row = this.#free === 0 ? ++this.#used : this.#free;
		const at = row * ROW.length;
		const rows = this.#rows;
		if (row === this.#free) this.#free = rows[at + ROW.byKey]!;
		rows[at + ROW.a] = place.a;
		rows[at + ROW.b] = place.b;
		rows[at + ROW.variant] = place.variant;
		rows[at + ROW.url] = place.url;
		rows[at + ROW.path] = place.path;
		rows[at + ROW.segment] = place.segment;
		rows[at + ROW.offset] = place.offset;
		rows[at + ROW.headBytes] = place.headBytes;
		rows[at + ROW.bodyBytes] = place.bodyBytes;
		this.#link(row);
		this.#size++;
		this.#changed(place.a, 1);
	}

	/** What there is of a key. */
	find(a: number, b: number): readonly DiskPlace[] {
		return this.#ofKey(a, b).map(row => this.#place(row));
	}

	/** True while this very response is there. */
	has({ a, b, segment, offset }: DiskPlace): boolean {
		return this.find(a, b).some(one => one.segment === segment && one.offset === offset);
	}

	/** Removes a key; how many responses that were. */
	forgetKey(a: number, b: number): number {
		return this.#removeAll(this.#ofKey(a, b));
	}

	/** Removes one variant of a key; how many responses that were. */
	forgetVariant(a: number, b: number, variant: number): number {
		return this.#removeAll(this.#ofKey(a, b).filter(row => this.#rows[row * ROW.length + ROW.variant] === variant));
	}

	/** Removes responses by the first half of their key's hash; the keys that they had. */
	forgetWhere(isMeant: (a: number) => boolean): readonly (readonly [a: number, b: number])[] {
		const rows: number[] = [];
		const keys: (readonly [number, number])[] = [];
		for (let row = 1; row <= this.#used; row++) {
			const at = row * ROW.length;
			const a = this.#rows[at + ROW.a]!;
			if (this.#rows[at + ROW.segment] === 0 || !isMeant(a)) continue;
			rows.push(row);
			keys.push([a, this.#rows[at + ROW.b]!]);
		}
		this.#removeAll(rows);
		return keys;
	}

	forgetUrl(url: number): number {
		const found: number[] = [];
		for (let row = this.#urls[url & (this.#urls.length - 1)]!; row !== 0; ) {
			const at = row * ROW.length;
			if (this.#rows[at + ROW.url] === url) found.push(row);
			row = this.#rows[at + ROW.byUrl]!;
		}
		return this.#removeAll(found);
	}

	forgetPath(path: number): number {
		return this.#removeAll(this.#having(ROW.path, path));
	}

	forgetSegment(segment: number): number {
		return this.#removeAll(this.#having(ROW.segment, segment));
	}

	#isBefore(one: number, other: number): boolean {
		const rows = this.#rows;
		const segments = rows[one * ROW.length + ROW.segment]! - rows[other * ROW.length + ROW.segment]!;
		return (
			segments < 0 || (segments === 0 && rows[one * ROW.length + ROW.offset]! < rows[other * ROW.length + ROW.offset]!)
		);
	}

	#removeAll(rows: readonly number[]): number {
		for (const row of rows) this.#remove(row);
		return rows.length;
	}

	#ofKey(a: number, b: number): number[] {
		const found: number[] = [];
		for (let row = this.#keys[a & (this.#keys.length - 1)]!; row !== 0; ) {
			const at = row * ROW.length;
			if (this.#rows[at + ROW.a] === a && this.#rows[at + ROW.b] === b) found.push(row);
			row = this.#rows[at + ROW.byKey]!;
		}
		return found;
	}

	/** Every row with this value: looks at all. */
	#having(word: number, value: number): number[] {
		const found: number[] = [];
		for (let row = 1; row <= this.#used; row++) {
			const at = row * ROW.length;
			// Segments are counted from 1: 0 is a row of nobody.
			if (this.#rows[at + word] === value && this.#rows[at + ROW.segment] !== 0) found.push(row);
		}
		return found;
	}

	#remove(row: number): void {
		const rows = this.#rows;
		const at = row * ROW.length;
		const a = rows[at + ROW.a]!;
		unlink(rows, this.#keys, a & (this.#keys.length - 1), row, ROW.byKey);
		unlink(rows, this.#urls, rows[at + ROW.url]! & (this.#urls.length - 1), row, ROW.byUrl);
		rows[at + ROW.segment] = 0;
		rows[at + ROW.byKey] = this.#free;
		this.#free = row;
		this.#size--;
		this.#changed(a, -1);
	}

	#place(row: number): DiskPlace {
		const [a, b, variant, url, path, segment, offset, headBytes, bodyBytes] = this.#rows.subarray(row * ROW.length);
		return {
			...{ a: a!, b: b!, variant: variant!, url: url!, path: path! },
			...{ segment: segment!, offset: offset!, headBytes: headBytes!, bodyBytes: bodyBytes! },
		};
	}

	#link(row: number): void {
		const at = row * ROW.length;
		const rows = this.#rows;
		const key = rows[at + ROW.a]! & (this.#keys.length - 1);
		rows[at + ROW.byKey] = this.#keys[key]!;
		this.#keys[key] = row;
		const url = rows[at + ROW.url]! & (this.#urls.length - 1);
		rows[at + ROW.byUrl] = this.#urls[url]!;
		this.#urls[url] = row;
	}

	/** Called when no row is free: all of them are linked anew. */
	#grow(): void {
		const rows = new Int32Array(this.#rows.length * 2);
		rows.set(this.#rows);
		this.#rows = rows;
		this.#keys = new Int32Array(this.#keys.length * 2);
		this.#urls = new Int32Array(this.#urls.length * 2);
		for (let row = 1; row <= this.#used; row++) this.#link(row);
	}
}

function unlink(rows: Int32Array, heads: Int32Array, bucket: number, row: number, link: number): void {
	let before = 0;
	for (let one = heads[bucket]!; one !== row; one = rows[one * ROW.length + link]!) before = one;
	const next = rows[row * ROW.length + link]!;
	if (before === 0) heads[bucket] = next;
	else rows[before * ROW.length + link] = next;
}
