/**
 * The files of the disk tier: segments that are written from their beginning to their end and never changed, the oldest
 * of which goes when room is needed; and beside each whole one a catalog of what is in it.
 */
import { type FileHandle, mkdir, open, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import type { DiskRecord } from './disk-record.ts';

/** Bytes of a segment at least and at most; between them a share of the whole. */
const LEAST_SEGMENT = 1024 * 1024;
const LONGEST_SEGMENT = 256 * 1024 * 1024;
const SEGMENTS = 32;

/** A record and where it stands in its segment. */
export interface CatalogRow extends Omit<DiskRecord, 'headSum' | 'bodySum'> {
	readonly offset: number;
}

/** Words of a catalog's row. */
const ROW_WORDS = 10;

interface Segment {
	readonly id: number;
	/** Opened when it is first needed. */
	handle: Promise<FileHandle> | undefined;
	bytes: number;
	/** Reads under way: the file is closed after the last of them. */
	readers: number;
	dropped: boolean;
}

/** The segments of one folder, which no other process touches. */
export class SegmentFiles {
	/** Bytes of a segment beyond which another is begun. */
	readonly segmentBytes: number;
	readonly #folder: string;
	readonly #size: number;
	readonly #dropped: (segment: number) => void;
	readonly #segments = new Map<number, Segment>();
	#current: Segment | undefined;
	#rows: CatalogRow[] = [];
	#last = 0;

	/** `size` bytes at most; `dropped` hears of segments that go. */
	constructor(folder: string, size: number, dropped: (segment: number) => void) {
		this.#folder = folder;
		this.#size = size;
		this.#dropped = dropped;
		this.segmentBytes = Math.min(LONGEST_SEGMENT, Math.max(LEAST_SEGMENT, Math.floor(size / SEGMENTS)));
	}

	/** Bytes of all segments. */
	get bytes(): number {
		let sum = 0;
		for (const { bytes } of this.#segments.values()) sum += bytes;
		return sum;
	}

	/** The place behind everything that was written. */
	get end(): { readonly segment: number; readonly offset: number } {
		return { segment: this.#last, offset: this.#segments.get(this.#last)?.bytes ?? 0 };
	}

	/** Finds the segments that there are, oldest first. */
	async list(): Promise<readonly number[]> {
		await mkdir(this.#folder, { recursive: true, mode: 0o700 });
		const ids: number[] = [];
		for (const name of await readdir(this.#folder)) {
			const id = Number(/^(\d{1,9})\.segment$/.exec(name)?.[1] ?? 0);
			if (id > 0) ids.push(id);
		}
		ids.sort((a, b) => a - b);
		for (const id of ids) {
			const { size } = await stat(this.#file(id));
			this.#segments.set(id, { id, handle: undefined, bytes: size, readers: 0, dropped: false });
			this.#last = id;
		}
		return ids;
	}

	/** Bytes of a segment. */
	sizeOf(segment: number): number {
		return this.#segments.get(segment)?.bytes ?? 0;
	}

	/** Writes what belongs together; resolves to where. Rejects when it cannot be written: another segment is begun then. */
	async append(pieces: readonly Uint8Array[]): Promise<{ readonly segment: number; readonly offset: number }> {
		const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
		if (this.#current !== undefined && this.#current.bytes + bytes > this.segmentBytes) await this.seal();
		this.#current ??= await this.#begin(bytes);
		const segment = this.#current;
		const offset = segment.bytes;
		// Of what fails some may stand there all the same.
		segment.bytes += bytes;
		try {
			const { bytesWritten } = await (await segment.handle!).writev(pieces as Uint8Array[], offset);
			if (bytesWritten !== bytes) throw new Error(`${bytesWritten} of ${bytes} bytes were written.`);
		} catch (error) {
			this.#current = undefined;
			this.#rows = [];
			await this.#cutOff(segment, offset);
			throw error;
		}
		return { segment: segment.id, offset };
	}

	/** What of a failed write stands there is nobody's: no purge knows of it, and the next start must not find it. */
	async #cutOff(segment: Segment, offset: number): Promise<void> {
		try {
			await (await segment.handle!).truncate(offset);
			segment.bytes = offset;
		} catch {
			// Without this segment nothing says any more what of the older ones was taken away.
			await this.dropAll();
		}
	}

	/** Notes a record that was appended. */
	note(row: CatalogRow): void {
		this.#rows.push(row);
	}

	/** Reaches the disk with everything that was appended. */
	async sync(): Promise<void> {
		await (await this.#current?.handle)?.datasync();
	}

	/** Ends the segment that is being written: its catalog says what is in it. */
	async seal(): Promise<void> {
		const segment = this.#current;
		const rows = this.#rows;
		this.#current = undefined;
		this.#rows = [];
		if (segment === undefined || segment.dropped) return;
		await writeFile(this.#file(segment.id, 'catalog'), encodeCatalog(rows), { mode: 0o600 }).catch(() => {});
	}

	/** The catalog of a segment; undefined when it has none that is whole. */
	async catalog(segment: number): Promise<readonly CatalogRow[] | undefined> {
		const bytes = await readFile(this.#file(segment, 'catalog')).catch(() => undefined);
		return bytes && decodeCatalog(bytes);
	}

	/** Reads from a segment; undefined when it has not so many bytes, or is gone. */
	async read(id: number, offset: number, length: number): Promise<Buffer | undefined> {
		const segment = this.#segments.get(id);
		if (segment === undefined || offset + length > segment.bytes) return undefined;
		segment.readers++;
		try {
			// What cannot be opened now, for want of descriptors for one, may be opened another time.
			segment.handle ??= open(this.#file(id), 'r').catch(error => {
				segment.handle = undefined;
				throw error;
			});
			const bytes = Buffer.allocUnsafe(length);
			const { bytesRead } = await (await segment.handle).read(bytes, 0, length, offset);
			return bytesRead === length ? bytes : undefined;
		} catch {
			return undefined;
		} finally {
			segment.readers--;
			if (segment.dropped) this.#close(segment);
		}
	}

	/** Removes the oldest segment; false when there is none but the one that is being written. */
	async dropOldest(): Promise<boolean> {
		for (const segment of this.#segments.values()) {
			if (segment === this.#current) continue;
			this.#segments.delete(segment.id);
			segment.dropped = true;
			this.#dropped(segment.id);
			this.#close(segment);
			await unlink(this.#file(segment.id, 'catalog')).catch(() => {});
			await unlink(this.#file(segment.id)).catch(() => {});
			return true;
		}
		return false;
	}

	/** Removes everything. */
	async dropAll(): Promise<void> {
		this.#current = undefined;
		this.#rows = [];
		while (await this.dropOldest());
	}

	async close(): Promise<void> {
		await this.seal();
		await Promise.all([...this.#segments.values()].map(({ handle }) => closed(handle)));
		this.#segments.clear();
	}

	async #begin(bytes: number): Promise<Segment> {
		while (this.bytes + Math.max(bytes, this.segmentBytes) > this.#size && (await this.dropOldest()));
		const id = ++this.#last;
		const handle = await open(this.#file(id), 'wx+', 0o600);
		const segment: Segment = { id, handle: Promise.resolve(handle), bytes: 0, readers: 0, dropped: false };
		this.#segments.set(id, segment);
		return segment;
	}

	#close(segment: Segment): void {
		if (segment.readers > 0) return;
		const { handle } = segment;
		segment.handle = undefined;
		void closed(handle);
	}

	#file(segment: number, kind: 'segment' | 'catalog' = 'segment'): string {
		return path.join(this.#folder, `${segment}.${kind}`);
	}
}

async function closed(handle: Promise<FileHandle> | undefined): Promise<void> {
	await handle?.then(one => one.close()).catch(() => {});
}

function encodeCatalog(rows: readonly CatalogRow[]): Buffer {
	const words = new Int32Array(rows.length * ROW_WORDS);
	for (const [i, row] of rows.entries()) {
		const { kind, a, b, variant, url, path: of, offset, headBytes, bodyBytes, keepUntil } = row;
		words.set([kind, a, b, variant, url, of, offset, headBytes, bodyBytes, keepUntil | 0], i * ROW_WORDS);
	}
	const bytes = Buffer.from(words.buffer);
	const sum = Buffer.alloc(8);
	sum.writeUInt32LE(crc32(bytes), 0);
	sum.writeUInt32LE(rows.length, 4);
	return Buffer.concat([sum, bytes]);
}

function decodeCatalog(bytes: Buffer): readonly CatalogRow[] | undefined {
	if (bytes.byteLength < 8) return undefined;
	const count = bytes.readUInt32LE(4);
	const rest = bytes.subarray(8);
	if (rest.byteLength !== count * ROW_WORDS * 4 || crc32(rest) !== bytes.readUInt32LE(0)) return undefined;
	return Array.from({ length: count }, (_, i) => {
		const word = (at: number): number => rest.readInt32LE((i * ROW_WORDS + at) * 4);
		return {
			...{ kind: word(0), a: word(1), b: word(2), variant: word(3), url: word(4), path: word(5) },
			...{ offset: word(6), headBytes: word(7), bodyBytes: word(8), keepUntil: word(9) >>> 0 },
		};
	});
}
