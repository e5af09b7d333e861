/** The open-file cache: contents of small, popular files and descriptors of large ones. */
import { type FSWatcher, fstatSync, watch } from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import type { FileTime, OpenFile } from '../../compiler/exchange/leases.ts';
import { FILE_SLOT } from '../metrics/file-counters.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import { type FileIdentity, isSameFile, toFileIdentity } from '../sockets/file-identity.ts';
import { FileBody } from './file-body.ts';
import type { OpenDescriptor } from './open-descriptor.ts';
import { MAX_SMALL_FILE_BYTES, type OpenedFile } from './opened-file.ts';
import { UseSketch } from './use-sketch.ts';

/** Maximum number of folders watched by a thread. The system limits the number of watches per user. */
const MAX_WATCHED_FOLDERS = 256;

/** True on Linux. Other systems do not report the names of changed entries reliably. */
const REPORTS_NAMES = process.platform === 'linux';

/** Watches folders and reports changes in them. Does not keep the process alive. */
class FolderWatches {
	readonly #watchers = new Map<string, FSWatcher>();
	readonly #onEntryChanged: (path: string) => void;
	readonly #onUnknownChange: () => void;

	/**
	 * @param onEntryChanged Called with the path of an entry that was created, changed, renamed or removed in a watched folder.
	 * @param onUnknownChange Called if any number of entries may have changed, because the watched folder itself or another watched
	 * folder has changed, or because the system does not say what has changed.
	 */
	constructor(onEntryChanged: (path: string) => void, onUnknownChange: () => void) {
		this.#onEntryChanged = onEntryChanged;
		this.#onUnknownChange = onUnknownChange;
	}

	/** Watches a folder, if possible. Without a watch, changes are found by checking the files. */
	addFolder(folder: string): void {
		if (!REPORTS_NAMES || this.#watchers.has(folder) || this.#watchers.size >= MAX_WATCHED_FOLDERS) return;
		try {
			const folderName = folder.slice(folder.lastIndexOf('/') + 1);
			const watcher = watch(folder, { persistent: false }, (_, name) => {
				// For an event of the folder itself, the system reports the folder's own name instead of an entry's.
				const path = name === null ? undefined : `${folder === '/' ? '' : folder}/${name}`;
				if (path !== undefined && name !== folderName && !this.#watchers.has(path)) this.#onEntryChanged(path);
				else this.#endWatches();
			});
			watcher.on('error', () => this.#endWatches());
			this.#watchers.set(folder, watcher);
		} catch {
			// Watching the folder is not permitted, or the system's limit on watches has been reached.
		}
	}

	/** Ends all watches, because the names of folders may now refer to other folders. */
	#endWatches(): void {
		for (const watcher of this.#watchers.values()) watcher.close();
		this.#watchers.clear();
		this.#onUnknownChange();
	}
}

/** A large file is kept open if it is requested again within this many milliseconds. */
const REOPEN_WINDOW_MS = 10_000;

/** Maximum bytes of file contents per thread. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;
/** Maximum cached files per thread, however small. */
const MAX_CACHED_FILES = 8192;
/** Maximum open descriptors per thread. */
const MAX_OPEN_DESCRIPTORS = 256;
/** Idle descriptors are closed after this many milliseconds; a deleted file would otherwise keep its disk space. */
const DESCRIPTOR_IDLE_MS = 10_000;
/** Maximum number of large files that are remembered because they have been requested once so far. */
const MAX_REMEMBERED_LARGE_FILES = 4096;
/**
 * Admission: a new file replaces a cached one only if its recent uses exceed those of the cached one by at least
 * {@link MIN_USE_DIFFERENCE}. At most {@link ADMISSION_SAMPLE} candidates are considered. Without this rule, a working set larger
 * than the cache would only churn.
 */
const ADMISSION_SAMPLE = 32;
const MIN_USE_DIFFERENCE = 2;
/** After a rejection, as many new small files are skipped as have been rejected in a row, but at most this many. */
const MAX_SKIPPED_FILES = 15;
/** Cached metadata is trusted for this many milliseconds. Changes reported by the kernel take effect at once. */
const METADATA_LIFETIME_MS = 1000;
/** Files modified less than this many seconds ago are not cached: two writes within one clock tick have the same mtime. */
const SETTLED_SECONDS = 2;

/** A cached file, with the identity that the file on disk must still have. `close` has no effect, because the cache owns it. */
abstract class CachedFile implements OpenFile {
	/** Hash of the root and path under which the file was requested. */
	readonly hash: number;
	readonly root: string;
	readonly path: string;
	readonly relativePath: string;
	readonly noLinkFollowed: boolean;
	readonly size: number;
	readonly identity: FileIdentity;
	/**
	 * Time of the last check, from `performance.now()`. Initially, the file is treated as unchecked, because it may have changed
	 * before its folder was watched.
	 */
	checkedAt = Number.NEGATIVE_INFINITY;
	/** True if the file has been requested since it was last considered for eviction. */
	wasRequested = true;

	constructor(hash: number, relativePath: string, file: OpenedFile) {
		this.hash = hash;
		this.root = file.root;
		this.path = file.path;
		this.relativePath = relativePath;
		this.noLinkFollowed = file.noLinkFollowed;
		this.size = file.size;
		this.identity = file.identity;
	}

	get modified(): FileTime {
		return this.identity;
	}

	hasPath(root: string, path: string): boolean {
		return this.relativePath === path && this.root === root;
	}

	abstract readonly source: 'memory' | 'held';
	/** Number of bytes of memory that the file uses. */
	abstract readonly memoryBytes: number;
	abstract body(start: number, end: number): Body;
	/** Reports whether the file is unchanged, as far as the cache can tell without looking up its path. */
	abstract isUnchanged(): boolean;
	/** Releases the file's memory or descriptor. Bodies that are being sent are not interrupted. */
	abstract release(): void;
	close(): void {}
}

/** A small file, without a descriptor. */
class FileInMemory extends CachedFile {
	readonly source = 'memory';
	readonly bytes: Uint8Array;

	constructor(hash: number, relativePath: string, file: OpenedFile) {
		super(hash, relativePath, file);
		this.bytes = file.readAll();
	}

	get memoryBytes(): number {
		return this.size;
	}

	body(start: number, end: number): Uint8Array {
		return start === 0 && end === this.size ? this.bytes : this.bytes.subarray(start, end);
	}

	isUnchanged(): boolean {
		return true;
	}

	release(): void {}
}

/** A large file, of which only the descriptor is cached. Its contents are read from the kernel's page cache or the disk. */
class FileHeldOpen extends CachedFile {
	readonly source = 'held';
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;

	constructor(hash: number, relativePath: string, file: OpenedFile, calls: SystemCalls | undefined) {
		super(hash, relativePath, file);
		this.#descriptor = file.shareDescriptor();
		this.#descriptor.acquire();
		this.#calls = calls;
	}

	get memoryBytes(): number {
		return 0;
	}

	body(start: number, end: number): Body {
		return new FileBody(this.#descriptor, start, end, this.#calls);
	}

	/**
	 * Compares the file's identity, because its contents are not cached: a file that was overwritten must not be sent with its old
	 * entity tag.
	 */
	isUnchanged(): boolean {
		return isSameFile(readIdentity(this.#descriptor.number, this.#calls), this.identity);
	}

	release(): void {
		this.#descriptor.release();
	}
}

/** A thread's cached files, by path. Excludes files reached through links below their root, whose targets may change unnoticed. */
export class OpenFileCache {
	readonly #calls: SystemCalls | undefined;
	readonly #counters: Float64Array;
	/**
	 * Files by hash. Of two files with the same hash, only one is cached. If paths were the keys, the Map would first have to intern
	 * each requested path.
	 */
	readonly #filesByHash = new Map<number, CachedFile>();
	/** The cached files whose descriptors are kept open. */
	readonly #largeFiles = new Map<number, CachedFile>();
	/** Popularity of each file, cached or not. */
	readonly #popularity = new UseSketch();
	/** Time of the last request for each remembered large file that is not cached, by the file's hash. */
	readonly #requestTimes = new Map<number, number>();
	#cachedBytes = 0;
	/** Number of consecutive rejections of new small files. */
	#consecutiveRejections = 0;
	/** Number of new small files that are still to be skipped. */
	#skipsLeft = 0;
	#sweepTimer: NodeJS.Timeout | undefined = undefined;
	readonly #folderWatches = new FolderWatches(
		path => this.#removeFile(hashOf(path, 0)),
		() => {
			for (const hash of this.#filesByHash.keys()) this.#removeFile(hash);
		},
	);
	/** Iterates over the cached files that may be replaced. */
	#candidates = this.#filesByHash.values();
	#lastRoot = '';
	#lastRootHash = 0;

	/** @param counters The thread's counter row. */
	constructor(calls: SystemCalls | undefined, counters: Float64Array) {
		this.#calls = calls;
		this.#counters = counters;
	}

	/** Returns the cached file at a path, if it has been checked within the last second and is not known to have changed. */
	get(root: string, path: string): OpenFile | undefined {
		const hash = this.#hashPath(root, path);
		this.#popularity.add(hash);
		const file = this.#filesByHash.get(hash);
		if (file === undefined || !file.hasPath(root, path) || performance.now() - file.checkedAt >= METADATA_LIFETIME_MS)
			return undefined;
		if (!file.isUnchanged()) {
			this.#removeFile(hash);
			return undefined;
		}
		file.wasRequested = true;
		this.#counters[FILE_SLOT[file.source]]!++;
		return file;
	}

	/**
	 * Considers caching a file that was opened at `path` without links below its root, after `get` did not return one. If an
	 * unchanged copy was already cached, or the file is cached now, closes `openedFile` and returns the cached file. Otherwise
	 * returns `openedFile`. Throws FileError.
	 */
	considerCaching(openedFile: OpenedFile, path: string): OpenFile {
		const { root } = openedFile;
		const hash = this.#hashPath(root, path);
		const cachedFile = this.#filesByHash.get(hash);
		if (cachedFile !== undefined) {
			if (!cachedFile.hasPath(root, path)) return openedFile;
			if (isSameFile(cachedFile.identity, openedFile.identity)) {
				cachedFile.checkedAt = performance.now();
				cachedFile.wasRequested = true;
				openedFile.close();
				return cachedFile;
			}
			this.#removeFile(hash);
		}
		const isSmall = openedFile.size <= MAX_SMALL_FILE_BYTES;
		if (isSmall && this.#skipsLeft > 0) {
			this.#skipsLeft--;
			return openedFile;
		}
		if (
			!(isSmall ? this.#popularity.estimate(hash) > 1 : this.#wasRequestedRecently(hash)) ||
			!isSettled(openedFile.identity)
		)
			return openedFile;
		if (isSmall && !this.#makeRoom(hash, openedFile.size)) {
			this.#consecutiveRejections = Math.min(this.#consecutiveRejections + 1, MAX_SKIPPED_FILES);
			this.#skipsLeft = this.#consecutiveRejections;
			return openedFile;
		}
		this.#consecutiveRejections = 0;
		const file = isSmall
			? new FileInMemory(hash, path, openedFile)
			: new FileHeldOpen(hash, path, openedFile, this.#calls);
		if (!openedFile.noLinkFollowed && openedFile.path !== root + path) this.#watchFoldersAbove(root);
		this.#watchFolders(root, path);
		this.#addFile(file);
		this.#closeExcess();
		openedFile.close();
		return file;
	}

	/** Reports whether a large file was requested recently. If not, remembers this request. */
	#wasRequestedRecently(hash: number): boolean {
		const now = performance.now();
		const requestedAt = this.#requestTimes.get(hash);
		if (requestedAt !== undefined && now - requestedAt < REOPEN_WINDOW_MS) return true;
		if (this.#requestTimes.size >= MAX_REMEMBERED_LARGE_FILES) this.#requestTimes.clear();
		this.#requestTimes.set(hash, now);
		return false;
	}

	/** Watches every folder from the root's parent to the file's: replacing any of them replaces the file. */
	#watchFolders(root: string, relativePath: string): void {
		const parent = root.slice(0, root.lastIndexOf('/'));
		if (parent !== '') this.#folderWatches.addFolder(parent);
		for (let slashIndex = 0; slashIndex !== -1; slashIndex = relativePath.indexOf('/', slashIndex + 1)) {
			this.#folderWatches.addFolder(
				root === '/' ? relativePath.slice(0, slashIndex) || '/' : root + relativePath.slice(0, slashIndex),
			);
		}
	}

	/** Watches the folders above the root, because a link on the path to the root (`current -> releases/7`) may change. */
	#watchFoldersAbove(root: string): void {
		for (let folderEnd = root.lastIndexOf('/'); folderEnd > 0; folderEnd = root.lastIndexOf('/', folderEnd - 1)) {
			this.#folderWatches.addFolder(root.slice(0, folderEnd));
		}
	}

	#addFile(file: CachedFile): void {
		this.#filesByHash.set(file.hash, file);
		if (file.size > MAX_SMALL_FILE_BYTES) {
			this.#requestTimes.delete(file.hash);
			this.#largeFiles.set(file.hash, file);
			this.#sweepTimer ??= setInterval(() => this.#closeIdle(), DESCRIPTOR_IDLE_MS).unref();
		}
		this.#cachedBytes += file.memoryBytes;
		this.#updateCounters();
	}

	#closeIdle(): void {
		const idleBefore = performance.now() - DESCRIPTOR_IDLE_MS;
		for (const [hash, { checkedAt: checked }] of this.#largeFiles) if (checked < idleBefore) this.#removeFile(hash);
		if (this.#largeFiles.size > 0) return;
		clearInterval(this.#sweepTimer);
		this.#sweepTimer = undefined;
	}

	#updateCounters(): void {
		this.#counters[FILE_SLOT.keptBytes] = this.#cachedBytes;
		this.#counters[FILE_SLOT.heldOpen] = this.#largeFiles.size;
	}

	#removeFile(hash: number): void {
		const file = this.#filesByHash.get(hash);
		if (file === undefined) return;
		this.#filesByHash.delete(hash);
		this.#largeFiles.delete(hash);
		this.#cachedBytes -= file.memoryBytes;
		this.#updateCounters();
		file.release();
	}

	/**
	 * Makes room for a small file by evicting files that are less popular and have not been requested since they were last
	 * considered. Returns false if there are too few such files.
	 */
	#makeRoom(hash: number, size: number): boolean {
		const popularity = this.#popularity.estimate(hash);
		for (
			let candidateCount = 0;
			this.#cachedBytes + size > MAX_CACHED_BYTES || this.#filesByHash.size >= MAX_CACHED_FILES;
			candidateCount++
		) {
			const candidate = this.#nextCandidate();
			if (candidateCount === ADMISSION_SAMPLE || candidate === undefined) return false;
			if (candidate.wasRequested) candidate.wasRequested = false;
			else if (this.#popularity.estimate(candidate.hash) + MIN_USE_DIFFERENCE > popularity) return false;
			else this.#removeFile(candidate.hash);
		}
		return true;
	}

	/** Returns the next file that may be replaced, cycling from the oldest to the newest. */
	#nextCandidate(): CachedFile | undefined {
		const candidate = this.#candidates.next();
		if (!candidate.done) return candidate.value;
		this.#candidates = this.#filesByHash.values();
		return this.#candidates.next().value;
	}

	/**
	 * Closes descriptors of files that have not been requested since they were last considered, oldest first, until the number of
	 * open descriptors is within the limit.
	 */
	#closeExcess(): void {
		for (const file of this.#largeFiles.values()) {
			if (this.#largeFiles.size <= MAX_OPEN_DESCRIPTORS) return;
			if (file.wasRequested) {
				file.wasRequested = false;
				// Moves the file to the end, so that files that have not been requested come first.
				this.#largeFiles.delete(file.hash);
				this.#largeFiles.set(file.hash, file);
			} else this.#removeFile(file.hash);
		}
	}

	/** Returns the hash of the root and the path together. */
	#hashPath(root: string, path: string): number {
		if (root !== this.#lastRoot) {
			this.#lastRoot = root;
			this.#lastRootHash = root === '/' ? 0 : hashOf(root, 0);
		}
		return hashOf(path, this.#lastRootHash);
	}
}

/** Continues the hash of a path with another string. */
function hashOf(text: string, seed: number): number {
	let hash = seed;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

function readIdentity(descriptor: number, calls: SystemCalls | undefined): FileIdentity {
	return calls?.fileIdentity(descriptor) ?? toFileIdentity(fstatSync(descriptor, { bigint: true }));
}

function isSettled({ changeSeconds, changeNanoseconds, seconds, nanoseconds }: FileIdentity): boolean {
	const settledBefore = Date.now() / 1000 - SETTLED_SECONDS;
	return changeSeconds + changeNanoseconds / 1e9 < settledBefore && seconds + nanoseconds / 1e9 < settledBefore;
}
