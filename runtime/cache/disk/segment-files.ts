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
/** Segments that are open at once, beside the one that is being written. */
const MOST_OPEN = 32;

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
	/** The folder itself has it, even after a crash of the machine. */
	isNamed: boolean;
	/** Something was appended that may not have reached the disk. */
	isDirty: boolean;
}

/** The segments of one folder, which no other process touches. */
export class SegmentFiles {
	/** Bytes of a segment beyond which another is begun. */
	readonly segmentBytes: number;
	readonly #folder: string;
	readonly #size: number;
	readonly #dropped: (segment: number) => void | Promise<void>;
	readonly #segments = new Map<number, Segment>();
	/** Those that are open, the one that was read last at the end. */
	readonly #open = new Set<Segment>();
	/** Files that are to be removed, oldest first, with their bytes. */
	readonly #leftOver = new Map<string, number>();
	readonly #failed: (error: Error) => void;
	#current: Segment | undefined;
	#rows: CatalogRow[] = [];
	#last = 0;

	/** `size` bytes at most; `dropped` hears of segments that go, `failed` of files that cannot be removed or written beside. */
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
		this.segmentBytes = Math.min(LONGEST_SEGMENT, Math.max(LEAST_SEGMENT, Math.floor(size / SEGMENTS)));
	}

	/** Bytes of all segments, those that could not be removed included. */
	get bytes(): number {
		let sum = 0;
		for (const { bytes } of this.#segments.values()) sum += bytes;
		for (const bytes of this.#leftOver.values()) sum += bytes;
		return sum;
	}

	/** Files that should be gone are still there. */
	get isLeftOver(): boolean {
		return this.#leftOver.size > 0;
	}

	/** Files that are open. */
	get descriptors(): number {
		return this.#open.size + (this.#current === undefined ? 0 : 1);
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

	/** Reaches the disk with everything that was appended. Rejects when it does not. */
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
				// What is gone takes nothing back.
				if (!segment.dropped) throw error;
			}
		}
	}

	/** Ends the segment that is being written: its catalog says what is in it. */
	async seal(): Promise<void> {
		const segment = this.#current;
		const rows = this.#rows;
		this.#current = undefined;
		this.#rows = [];
		if (segment === undefined || segment.dropped) return;
		this.#keepOpen(segment);
		// Without one the segment itself is read.
		await writeFile(this.#file(segment.id, 'catalog'), encodeCatalog(rows), { mode: 0o600 }).catch(this.#failed);
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
		try {
			const bytes = Buffer.allocUnsafe(length);
			const { bytesRead } = await this.#reading(segment, handle => handle.read(bytes, 0, length, offset));
			return bytesRead === length ? bytes : undefined;
		} catch {
			return undefined;
		}
	}

	/** Removes the oldest segment; false when there is none but the one that is being written. */
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

	/** Removes everything; true when nothing of it is left, even after a crash of the machine. */
	async dropAll(): Promise<boolean> {
		this.#current = undefined;
		this.#rows = [];
		while (await this.dropOldest());
		return this.dropLeftOver();
	}

	/** Tries again to remove what could not be removed; true when nothing of it is left. */
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
	 * Removes files in their order: while an older one is left those after it stay, since they say what of it was taken away.
	 * False when any is left.
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

	/** Does something with a segment's file, which is not closed meanwhile. */
	async #reading<T>(segment: Segment, use: (handle: FileHandle) => Promise<T>): Promise<T> {
		segment.readers++;
		try {
			// What cannot be opened now, for want of descriptors for one, may be opened another time.
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

	/** Closes files that nobody reads, where too many are open. */
	#closeSome(): void {
		for (const oldest of this.#open) {
			if (this.#open.size <= MOST_OPEN) return;
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

/** What was made or removed in a folder stays so after a crash of the machine. */
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
