/**
 * The files of the disk tier: append-only segments, the oldest of which is deleted when space is needed, and a catalog for each
 * complete segment.
 */
import { type FileHandle, mkdir, open, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import type { DiskRecord } from './disk-record.ts';
import { writePiecesFully } from './write-fully.ts';

/** Minimum size of a segment in bytes. */
const MIN_SEGMENT_BYTES = 1024 * 1024;
/** Maximum size of a segment in bytes. The size is a fraction of the maximum size of the tier. */
const MAX_SEGMENT_BYTES = 256 * 1024 * 1024;
const SEGMENTS_PER_TIER = 32;
/** Maximum number of open segments, besides the one being written. */
const MAX_OPEN_SEGMENTS = 32;

/** A record with its offset in the segment. */
export interface CatalogRow extends Omit<DiskRecord, 'headSum' | 'bodySum'> {
	readonly offset: number;
}

const CATALOG_ROW_WORDS = 10;

interface Segment {
	readonly id: number;
	/** The open file; undefined until it is needed. */
	handle: Promise<FileHandle> | undefined;
	bytes: number;
	/** Number of reads in progress. The file is closed after the last one. */
	readsInProgress: number;
	isDropped: boolean;
	/** True if the file's entry in the folder survives a crash of the machine. */
	isEntryDurable: boolean;
	/** True if something was appended that may not have reached the disk. */
	isDirty: boolean;
}

/** The segments of one folder. No other process changes them. */
export class SegmentFiles {
	/** Size in bytes after which a new segment is started. */
	readonly segmentBytes: number;
	readonly #folder: string;
	readonly #maxBytes: number;
	readonly #onDropped: (segment: number) => void | Promise<void>;
	readonly #segments = new Map<number, Segment>();
	/** Segments with open files, ordered by the time of their last read. */
	readonly #openSegments = new Set<Segment>();
	/** Files that are still to be deleted, oldest first, with their sizes in bytes. */
	readonly #pendingDeletions = new Map<string, number>();
	readonly #onFailure: (error: Error) => void;
	#currentSegment: Segment | undefined;
	#catalogRows: CatalogRow[] = [];
	#lastSegmentId = 0;

	/**
	 * @param maxBytes Maximum size in bytes.
	 * @param onDropped Called for deleted segments.
	 * @param onFailure Called for files that cannot be deleted or written.
	 */
	constructor(
		folder: string,
		maxBytes: number,
		onDropped: (segment: number) => void | Promise<void>,
		onFailure: (error: Error) => void = () => {},
	) {
		this.#folder = folder;
		this.#maxBytes = maxBytes;
		this.#onDropped = onDropped;
		this.#onFailure = onFailure;
		this.segmentBytes = Math.min(
			MAX_SEGMENT_BYTES,
			Math.max(MIN_SEGMENT_BYTES, Math.floor(maxBytes / SEGMENTS_PER_TIER)),
		);
	}

	/** Size of all segments in bytes, including those that could not be deleted. */
	get totalBytes(): number {
		let sum = 0;
		for (const { bytes } of this.#segments.values()) sum += bytes;
		for (const bytes of this.#pendingDeletions.values()) sum += bytes;
		return sum;
	}

	/** True if files that should have been deleted still exist. */
	get hasPendingDeletions(): boolean {
		return this.#pendingDeletions.size > 0;
	}

	get openFileCount(): number {
		return this.#openSegments.size + (this.#currentSegment === undefined ? 0 : 1);
	}

	/** The position after the last record that was written. */
	get endPosition(): { readonly segment: number; readonly offset: number } {
		return { segment: this.#lastSegmentId, offset: this.#segments.get(this.#lastSegmentId)?.bytes ?? 0 };
	}

	/** Finds the existing segments, oldest first. */
	async listSegments(): Promise<readonly number[]> {
		await mkdir(this.#folder, { recursive: true, mode: 0o700 });
		const ids: number[] = [];
		for (const name of await readdir(this.#folder)) {
			const id = Number(/^(\d{1,9})\.segment$/.exec(name)?.[1] ?? 0);
			if (id > 0) ids.push(id);
		}
		ids.sort((a, b) => a - b);
		for (const id of ids) {
			const { size } = await stat(this.#pathOf(id));
			this.#segments.set(id, {
				id,
				handle: undefined,
				bytes: size,
				readsInProgress: 0,
				isDropped: false,
				isEntryDurable: true,
				isDirty: false,
			});
			this.#lastSegmentId = id;
		}
		return ids;
	}

	/** Returns the size of a segment in bytes. */
	sizeOf(segment: number): number {
		return this.#segments.get(segment)?.bytes ?? 0;
	}

	/** Appends the pieces as contiguous data and resolves to its position. If writing fails, rejects and starts a new segment. */
	async appendPieces(pieces: readonly Uint8Array[]): Promise<{ readonly segment: number; readonly offset: number }> {
		const byteCount = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
		if (this.#currentSegment !== undefined && this.#currentSegment.bytes + byteCount > this.segmentBytes)
			await this.sealSegment();
		this.#currentSegment ??= await this.#startSegment(byteCount);
		const segment = this.#currentSegment;
		const offset = segment.bytes;
		// The bytes are counted before they are written, because a write that fails may have written some of them.
		segment.bytes += byteCount;
		segment.isDirty = true;
		try {
			await writePiecesFully(await segment.handle!, pieces, offset);
		} catch (error) {
			this.#currentSegment = undefined;
			this.#catalogRows = [];
			this.#keepOpen(segment);
			await this.#truncate(segment, offset);
			throw error;
		}
		return { segment: segment.id, offset };
	}

	/**
	 * Removes the remains of a failed write from the end of a segment. Otherwise, the next start could find records there
	 * although a purge has removed their responses.
	 */
	async #truncate(segment: Segment, offset: number): Promise<void> {
		try {
			await (await segment.handle!).truncate(offset);
			segment.bytes = offset;
		} catch {
			// The records of removals in this segment are lost, so the older segments must be deleted as well.
			await this.dropAll();
		}
	}

	/** Adds an appended record to the catalog. */
	addToCatalog(row: CatalogRow): void {
		this.#catalogRows.push(row);
	}

	/** Flushes everything appended to the disk. Rejects on failure. */
	async sync(): Promise<void> {
		for (const segment of [...this.#segments.values()]) {
			if (!segment.isDirty) continue;
			segment.isDirty = false;
			try {
				await this.#withOpenFile(segment, handle => handle.datasync());
				if (!segment.isEntryDurable) await syncFolder(this.#folder);
				segment.isEntryDurable = true;
			} catch (error) {
				segment.isDirty = true;
				// An error in a deleted segment is ignored, because its responses cannot reappear.
				if (!segment.isDropped) throw error;
			}
		}
	}

	/** Completes the current segment, and writes its catalog. */
	async sealSegment(): Promise<void> {
		const segment = this.#currentSegment;
		const rows = this.#catalogRows;
		this.#currentSegment = undefined;
		this.#catalogRows = [];
		if (segment === undefined || segment.isDropped) return;
		this.#keepOpen(segment);
		// A failure is reported but does not reject the promise: if there is no catalog, the segment itself is read.
		await writeFile(this.#pathOf(segment.id, 'catalog'), encodeCatalog(rows), { mode: 0o600 }).catch(this.#onFailure);
	}

	/** Returns the catalog of a segment; undefined if it is missing or damaged. */
	async readCatalog(segment: number): Promise<readonly CatalogRow[] | undefined> {
		const bytes = await readFile(this.#pathOf(segment, 'catalog')).catch(() => undefined);
		return bytes && decodeCatalog(bytes);
	}

	/** Reads `length` bytes of a segment. Resolves to undefined if the segment is too short or has been deleted. */
	async read(id: number, offset: number, length: number): Promise<Buffer | undefined> {
		const segment = this.#segments.get(id);
		if (segment === undefined || offset + length > segment.bytes) return undefined;
		try {
			const bytes = Buffer.allocUnsafe(length);
			const { bytesRead } = await this.#withOpenFile(segment, handle => handle.read(bytes, 0, length, offset));
			return bytesRead === length ? bytes : undefined;
		} catch {
			return undefined;
		}
	}

	/** Deletes the oldest segment; returns false if only the current one is left. */
	async dropOldest(): Promise<boolean> {
		for (const segment of this.#segments.values()) {
			if (segment === this.#currentSegment) continue;
			this.#segments.delete(segment.id);
			segment.isDropped = true;
			const indexUpdate = this.#onDropped(segment.id);
			this.#closeSegment(segment);
			await indexUpdate;
			this.#pendingDeletions.set(this.#pathOf(segment.id, 'catalog'), 0);
			this.#pendingDeletions.set(this.#pathOf(segment.id), segment.bytes);
			await this.#deletePending();
			return true;
		}
		return false;
	}

	/** Deletes all segments. Resolves to true if they are gone even after a crash of the machine, false if any could remain. */
	async dropAll(): Promise<boolean> {
		this.#currentSegment = undefined;
		this.#catalogRows = [];
		while (await this.dropOldest());
		return this.retryDeletions();
	}

	/** Retries failed deletions. Resolves to true if no file is left to delete. */
	async retryDeletions(): Promise<boolean> {
		if (!(await this.#deletePending())) return false;
		try {
			await syncFolder(this.#folder);
			return true;
		} catch (error) {
			this.#onFailure(error as Error);
			return false;
		}
	}

	async close(): Promise<void> {
		await this.sealSegment();
		await Promise.all([...this.#segments.values()].map(({ handle }) => closeHandle(handle)));
		this.#segments.clear();
		this.#openSegments.clear();
	}

	/**
	 * Deletes the pending files, oldest first. If a file cannot be deleted, newer files are kept, because they may record removals
	 * of responses in it. Resolves to false if any files are left.
	 */
	async #deletePending(): Promise<boolean> {
		for (const file of this.#pendingDeletions.keys()) {
			try {
				await unlink(file);
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
					this.#onFailure(error as Error);
					return false;
				}
			}
			this.#pendingDeletions.delete(file);
		}
		return true;
	}

	/** Calls a function with the segment's file, which stays open during the call. */
	async #withOpenFile<T>(segment: Segment, run: (handle: FileHandle) => Promise<T>): Promise<T> {
		segment.readsInProgress++;
		try {
			// Opening may fail temporarily, for example without free descriptors, and is retried with the next read.
			segment.handle ??= open(this.#pathOf(segment.id), 'r').catch(error => {
				segment.handle = undefined;
				this.#openSegments.delete(segment);
				throw error;
			});
			if (segment !== this.#currentSegment) this.#keepOpen(segment);
			return await run(await segment.handle);
		} finally {
			segment.readsInProgress--;
			if (segment.isDropped) this.#closeSegment(segment);
			this.#closeExcess();
		}
	}

	#keepOpen(segment: Segment): void {
		this.#openSegments.delete(segment);
		this.#openSegments.add(segment);
		this.#closeExcess();
	}

	/** Closes unused files if too many are open. */
	#closeExcess(): void {
		for (const segment of this.#openSegments) {
			if (this.#openSegments.size <= MAX_OPEN_SEGMENTS) return;
			if (segment.readsInProgress === 0) this.#closeSegment(segment);
		}
	}

	async #startSegment(neededBytes: number): Promise<Segment> {
		while (this.totalBytes + Math.max(neededBytes, this.segmentBytes) > this.#maxBytes && (await this.dropOldest()));
		const id = ++this.#lastSegmentId;
		const handle = await open(this.#pathOf(id), 'wx+', 0o600);
		const segment: Segment = {
			id,
			handle: Promise.resolve(handle),
			bytes: 0,
			readsInProgress: 0,
			isDropped: false,
			isEntryDurable: false,
			isDirty: false,
		};
		this.#segments.set(id, segment);
		return segment;
	}

	#closeSegment(segment: Segment): void {
		if (segment.readsInProgress > 0) return;
		const { handle } = segment;
		segment.handle = undefined;
		this.#openSegments.delete(segment);
		void closeHandle(handle);
	}

	#pathOf(segment: number, kind: 'segment' | 'catalog' = 'segment'): string {
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

async function closeHandle(handle: Promise<FileHandle> | undefined): Promise<void> {
	await handle?.then(openHandle => openHandle.close()).catch(() => {});
}

function encodeCatalog(rows: readonly CatalogRow[]): Buffer {
	const rowWords = new Int32Array(rows.length * CATALOG_ROW_WORDS);
	for (const [i, row] of rows.entries()) {
		const { kind, a, b, variant, url, path: pathHash, offset, headBytes, bodyBytes, keepUntil } = row;
		rowWords.set(
			[kind, a, b, variant, url, pathHash, offset, headBytes, bodyBytes, keepUntil | 0],
			i * CATALOG_ROW_WORDS,
		);
	}
	const bytes = Buffer.from(rowWords.buffer);
	const header = Buffer.alloc(8);
	header.writeUInt32LE(crc32(bytes), 0);
	header.writeUInt32LE(rows.length, 4);
	return Buffer.concat([header, bytes]);
}

function decodeCatalog(bytes: Buffer): readonly CatalogRow[] | undefined {
	if (bytes.byteLength < 8) return undefined;
	const rowCount = bytes.readUInt32LE(4);
	const rowBytes = bytes.subarray(8);
	if (rowBytes.byteLength !== rowCount * CATALOG_ROW_WORDS * 4 || crc32(rowBytes) !== bytes.readUInt32LE(0))
		return undefined;
	return Array.from({ length: rowCount }, (_, i) => {
		const readWord = (at: number): number => rowBytes.readInt32LE((i * CATALOG_ROW_WORDS + at) * 4);
		return {
			...{
				kind: readWord(0),
				a: readWord(1),
				b: readWord(2),
				variant: readWord(3),
				url: readWord(4),
				path: readWord(5),
			},
			...{ offset: readWord(6), headBytes: readWord(7), bodyBytes: readWord(8), keepUntil: readWord(9) >>> 0 },
		};
	});
}
