/**
 * The files of the disk tier: append-only segments, the oldest of which is deleted when space is needed, and a catalog for each
 * complete segment.
 */
import { type FileHandle, mkdir, open, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import type { DiskRecord } from './disk-record.ts';

/** Minimum size of a segment in bytes. */
const MIN_SEGMENT = 1024 * 1024;
/** Maximum size of a segment in bytes. The size is a fraction of the maximum size of the tier. */
const MAX_SEGMENT = 256 * 1024 * 1024;
const SEGMENTS = 32;
/** Maximum open segments, besides the one being written. */
const MAX_OPEN = 32;

/** A record with its offset in the segment. */
export interface CatalogRow extends Omit<DiskRecord, 'headSum' | 'bodySum'> {
	readonly offset: number;
}

/** Number of words in a catalog row. */
const ROW_WORDS = 10;

interface Segment {
	readonly id: number;
	/** The open file; undefined until it is needed. */
	handle: Promise<FileHandle> | undefined;
	bytes: number;
	/** Number of reads in progress. The file is closed after the last one. */
	readers: number;
	dropped: boolean;
	/** True if the file's entry in the folder survives a crash of the machine. */
	isNamed: boolean;
	/** True if something was appended that may not have reached the disk. */
	isDirty: boolean;
}

/** The segments of one folder. No other process changes them. */
export class SegmentFiles {
	/** Size in bytes after which a new segment is started. */
	readonly segmentBytes: number;
	readonly #folder: string;
	readonly #size: number;
	readonly #dropped: (segment: number) => void | Promise<void>;
	readonly #segments = new Map<number, Segment>();
	/** Segments with open files, ordered by the time of their last read. */
	readonly #open = new Set<Segment>();
	/** Files to be deleted, oldest first, with their sizes. */
	readonly #leftOver = new Map<string, number>();
	readonly #failed: (error: Error) => void;
	#current: Segment | undefined;
	#rows: CatalogRow[] = [];
	#last = 0;

	/** @param size Maximum size in bytes. @param dropped Called for deleted segments. @param failed Called for files that cannot be deleted or written. */
	constructor(
		folder: string,
		size: number,
		dropped: (segment: number) => void | Promise<void>,
		failed: (error: Error) => void = () => {},
	) {
		this.#folder = folder;
		this.#size = size;
		this.#dropped = dropped;
		this.#failed = failed;
		this.segmentBytes = Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, Math.floor(size / SEGMENTS)));
	}

	/** Size of all segments in bytes, including those that could not be deleted. */
	get bytes(): number {
		let sum = 0;
		for (const { bytes } of this.#segments.values()) sum += bytes;
		for (const bytes of this.#leftOver.values()) sum += bytes;
		return sum;
	}

	/** True if files that should have been deleted still exist. */
	get isLeftOver(): boolean {
		return this.#leftOver.size > 0;
	}

	/** Number of open files. */
	get descriptors(): number {
		return this.#open.size + (this.#current === undefined ? 0 : 1);
	}

	/** The position after everything written. */
	get end(): { readonly segment: number; readonly offset: number } {
		return { segment: this.#last, offset: this.#segments.get(this.#last)?.bytes ?? 0 };
	}

	/** Finds the existing segments, oldest first. */
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
			this.#segments.set(id, {
				id,
				handle: undefined,
				bytes: size,
				readers: 0,
				dropped: false,
				isNamed: true,
				isDirty: false,
			});
			this.#last = id;
		}
		return ids;
	}

	/** Returns the size of a segment in bytes. */
	sizeOf(segment: number): number {
		return this.#segments.get(segment)?.bytes ?? 0;
	}

	/** Appends data contiguously and resolves to its position. If writing fails, rejects and starts a new segment. */
	async append(pieces: readonly Uint8Array[]): Promise<{ readonly segment: number; readonly offset: number }> {
		const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
		if (this.#current !== undefined && this.#current.bytes + bytes > this.segmentBytes) await this.seal();
		this.#current ??= await this.#begin(bytes);
		const segment = this.#current;
		const offset = segment.bytes;
		// A failed write may have written a part of the data.
		segment.bytes += bytes;
		segment.isDirty = true;
		try {
			const { bytesWritten } = await (await segment.handle!).writev(pieces as Uint8Array[], offset);
			if (bytesWritten !== bytes) throw new Error(`${bytesWritten} of ${bytes} bytes were written.`);
		} catch (error) {
			this.#current = undefined;
			this.#rows = [];
			this.#keepOpen(segment);
			await this.#cutOff(segment, offset);
			throw error;
		}
		return { segment: segment.id, offset };
	}

	/** Truncates the remains of a failed write. Purges do not know of it, so the next start must not find it. */
	async #cutOff(segment: Segment, offset: number): Promise<void> {
		try {
			await (await segment.handle!).truncate(offset);
			segment.bytes = offset;
		} catch {
			// The records of removals in this segment are lost, so the older segments must be deleted as well.
			await this.dropAll();
		}
	}

	/** Adds an appended record to the catalog. */
	note(row: CatalogRow): void {
		this.#rows.push(row);
	}

	/** Flushes everything appended to the disk. Rejects on failure. */
	async sync(): Promise<void> {
		for (const segment of [...this.#segments.values()]) {
			if (!segment.isDirty) continue;
			segment.isDirty = false;
			try {
				await this.#reading(segment, handle => handle.datasync());
				if (!segment.isNamed) await syncFolder(this.#folder);
				segment.isNamed = true;
			} catch (error) {
				segment.isDirty = true;
				// An error with a deleted segment is ignored, because the segment cannot bring responses back.
				if (!segment.dropped) throw error;
			}
		}
	}

	/** Completes the current segment, and writes its catalog. */
	async seal(): Promise<void> {
		const segment = this.#current;
		const rows = this.#rows;
		this.#current = undefined;
		this.#rows = [];
		if (segment === undefined || segment.dropped) return;
		this.#keepOpen(segment);
		// A failure is ignored, because a segment without a catalog is read itself.
		await writeFile(this.#file(segment.id, 'catalog'), encodeCatalog(rows), { mode: 0o600 }).catch(this.#failed);
	}

	/** Returns the catalog of a segment; undefined if it is missing or damaged. */
	async catalog(segment: number): Promise<readonly CatalogRow[] | undefined> {
		const bytes = await readFile(this.#file(segment, 'catalog')).catch(() => undefined);
		return bytes && decodeCatalog(bytes);
	}

	/** Reads from a segment; undefined if it is too short or deleted. */
	async read(id: number, offset: number, length: number): Promise<Buffer | undefined> {
		const segment = this.#segments.get(id);
		if (segment === undefined || offset + length > segment.bytes) return undefined;
		try {
			const bytes = Buffer.allocUnsafe(length);
			const { bytesRead } = await this.#reading(segment, handle => handle.read(bytes, 0, length, offset));
			return bytesRead === length ? bytes : undefined;
		} catch {
			return undefined;
		}
	}

	/** Deletes the oldest segment; returns false if only the current one is left. */
	async dropOldest(): Promise<boolean> {
		for (const segment of this.#segments.values()) {
			if (segment === this.#current) continue;
			this.#segments.delete(segment.id);
			segment.dropped = true;
			const forgotten = this.#dropped(segment.id);
			this.#close(segment);
			await forgotten;
			this.#leftOver.set(this.#file(segment.id, 'catalog'), 0);
			this.#leftOver.set(this.#file(segment.id), segment.bytes);
			await this.#remove();
			return true;
		}
		return false;
	}

	/** Deletes everything; resolves to true if nothing is left, even after a crash of the machine. */
	async dropAll(): Promise<boolean> {
		this.#current = undefined;
		this.#rows = [];
		while (await this.dropOldest());
		return this.dropLeftOver();
	}

	/** Retries failed deletions; resolves to true if nothing is left. */
	async dropLeftOver(): Promise<boolean> {
		if (!(await this.#remove())) return false;
		try {
			await syncFolder(this.#folder);
			return true;
		} catch (error) {
			this.#failed(error as Error);
			return false;
		}
	}

	async close(): Promise<void> {
		await this.seal();
		await Promise.all([...this.#segments.values()].map(({ handle }) => closed(handle)));
		this.#segments.clear();
		this.#open.clear();
	}

	/**
	 * Deletes files in order. If an older one cannot be deleted, newer ones are kept, because they contain records of removals from it.
	 * Returns false if any files are left.
	 */
	async #remove(): Promise<boolean> {
		for (const file of this.#leftOver.keys()) {
			try {
				await unlink(file);
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
					this.#failed(error as Error);
					return false;
				}
			}
			this.#leftOver.delete(file);
		}
		return true;
	}

	/** Calls a function with the segment's file, which stays open meanwhile. */
	async #reading<T>(segment: Segment, use: (handle: FileHandle) => Promise<T>): Promise<T> {
		segment.readers++;
		try {
			// Opening may fail temporarily, for example without free descriptors, and is retried with the next read.
			segment.handle ??= open(this.#file(segment.id), 'r').catch(error => {
				segment.handle = undefined;
				this.#open.delete(segment);
				throw error;
			});
			if (segment !== this.#current) this.#keepOpen(segment);
			return await use(await segment.handle);
		} finally {
			segment.readers--;
			if (segment.dropped) this.#close(segment);
			this.#closeSome();
		}
	}

	#keepOpen(segment: Segment): void {
		this.#open.delete(segment);
		this.#open.add(segment);
		this.#closeSome();
	}

	/** Closes unused files if too many are open. */
	#closeSome(): void {
		for (const oldest of this.#open) {
			if (this.#open.size <= MAX_OPEN) return;
			if (oldest.readers === 0) this.#close(oldest);
		}
	}

	async #begin(bytes: number): Promise<Segment> {
		while (this.bytes + Math.max(bytes, this.segmentBytes) > this.#size && (await this.dropOldest()));
		const id = ++this.#last;
		const handle = await open(this.#file(id), 'wx+', 0o600);
		const segment: Segment = {
			id,
			handle: Promise.resolve(handle),
			bytes: 0,
			readers: 0,
			dropped: false,
			isNamed: false,
			isDirty: false,
		};
		this.#segments.set(id, segment);
		return segment;
	}

	#close(segment: Segment): void {
		if (segment.readers > 0) return;
		const { handle } = segment;
		segment.handle = undefined;
		this.#open.delete(segment);
		void closed(handle);
	}

	#file(segment: number, kind: 'segment' | 'catalog' = 'segment'): string {
		return path.join(this.#folder, `${segment}.${kind}`);
	}
}

/** Makes created and deleted files of a folder survive a crash of the machine. */
export async function syncFolder(folder: string): Promise<void> {
	const handle = await open(folder, 'r');
	try {
		await handle.sync();
	} finally {
		await handle.close();
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
