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

/** Maximum folders watched by a thread: the system limits their number per user. */
const MAX_FOLDERS = 256;

/** True on Linux. Other systems do not report the names of changed entries reliably. */
const TELLS_NAMES = process.platform === 'linux';

/** Watches folders and reports changes in them. Does not keep the process alive. */
class FolderWatches {
	readonly #watchers = new Map<string, FSWatcher>();
	readonly #changed: (path: string) => void;
	readonly #unclear: () => void;

	/**
	 * @param changed Called with the path of an entry that was created, changed, renamed or removed in a watched folder.
	 * @param unclear Called if more than one entry may have changed: the folder itself, another watched folder, or something unknown.
	 */
	constructor(changed: (path: string) => void, unclear: () => void) {
		this.#changed = changed;
		this.#unclear = unclear;
	}

	/** Watches a folder, if possible. Without a watch, changes are found by checking the files. */
	add(folder: string): void {
		if (!TELLS_NAMES || this.#watchers.has(folder) || this.#watchers.size >= MAX_FOLDERS) return;
		try {
			const own = folder.slice(folder.lastIndexOf('/') + 1);
			const watcher = watch(folder, { persistent: false }, (_, name) => {
				// Events of the folder itself are reported under its own name.
				const path = name === null ? undefined : `${folder === '/' ? '' : folder}/${name}`;
				if (path !== undefined && name !== own && !this.#watchers.has(path)) this.#changed(path);
				else this.#lost();
			});
			watcher.on('error', () => this.#lost());
			this.#watchers.set(folder, watcher);
		} catch {
			// Watching is not permitted, or the system's limit has been reached.
		}
	}

	/** Ends all watches, because the names of folders may now refer to other folders. */
	#lost(): void {
		for (const watcher of this.#watchers.values()) watcher.close();
		this.#watchers.clear();
		this.#unclear();
	}
}

/** A large file is kept open if it is requested again within this many milliseconds. */
const REOPEN_WINDOW_MS = 10_000;

/** Maximum bytes of file contents per thread. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Maximum cached files per thread, however small. */
const MAX_FILES = 8192;
/** Maximum open descriptors per thread. */
const MAX_OPEN = 256;
/** Idle descriptors are closed after this many milliseconds; a deleted file would otherwise keep its disk space. */
const OPEN_IDLE_MS = 10_000;
/** Maximum large files remembered that were requested once. */
const MAX_SEEN = 4096;
/**
 * Admission: a new file replaces cached ones only if it is at least {@link ADMISSION_RATIO} times as popular as each of up to
 * {@link ADMISSION_SAMPLE} candidates. Without this, a working set larger than the cache would only churn.
 */
const ADMISSION_SAMPLE = 32;
const ADMISSION_RATIO = 2;
/** After this many consecutive rejections, most new files are not considered for admission: this many are skipped for each one considered. */
const MAX_REJECTIONS = 15;
/** Cached metadata is trusted for this many milliseconds. Changes reported by the kernel take effect at once. */
const REVALIDATE_MS = 1000;
/** Files modified less than this many seconds ago are not cached: two writes within one clock tick have the same mtime. */
const SETTLED_SECONDS = 2;

/** A cached file, with the facts that must be unchanged for it to be valid. Closing it has no effect. */
abstract class CachedFile implements OpenFile {
	/** Hash of the root and path under which it was requested. */
	readonly hash: number;
	readonly root: string;
	readonly path: string;
	readonly relativePath: string;
	readonly noLinkFollowed: boolean;
	readonly size: number;
	readonly identity: FileIdentity;
	/** Time of the last check. It starts as "never", because the file may have changed before its folder was watched. */
	checked = Number.NEGATIVE_INFINITY;
	/** True if the file was requested since memory was last short. */
	used = true;

	constructor(hash: number, below: string, file: OpenedFile) {
		this.hash = hash;
		this.root = file.root;
		this.path = file.path;
		this.relativePath = below;
		this.noLinkFollowed = file.noLinkFollowed;
		this.size = file.size;
		this.identity = file.identity;
	}

	get modified(): FileTime {
		return this.identity;
	}

	is(root: string, path: string): boolean {
		return this.relativePath === path && this.root === root;
	}

	abstract readonly source: 'memory' | 'held';
	/** Number of bytes of memory that the file uses. */
	abstract readonly weight: number;
	abstract body(start: number, end: number): Body;
	/** Reports whether the file is unchanged, as far as this can be seen without its path. */
	abstract isSame(): boolean;
	/** Releases the file. Bodies being sent continue. */
	abstract forget(): void;
	close(): void {}
}

/** A small file, without a descriptor. */
class FileInMemory extends CachedFile {
	readonly source = 'memory';
	readonly bytes: Uint8Array;

	constructor(hash: number, below: string, file: OpenedFile) {
		super(hash, below, file);
		this.bytes = file.whole();
	}

	get weight(): number {
		return this.size;
	}

	body(start: number, end: number): Uint8Array {
		return start === 0 && end === this.size ? this.bytes : this.bytes.subarray(start, end);
	}

	isSame(): boolean {
		return true;
	}

	forget(): void {}
}

/** A large file, whose contents are in the page cache. */
class FileHeldOpen extends CachedFile {
	readonly source = 'held';
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;

	constructor(hash: number, below: string, file: OpenedFile, calls: SystemCalls | undefined) {
		super(hash, below, file);
		this.#descriptor = file.share();
		this.#descriptor.hold();
		this.#calls = calls;
	}

	get weight(): number {
		return 0;
	}

	body(start: number, end: number): Body {
		return new FileBody(this.#descriptor, start, end, this.#calls);
	}

	/** Compares the file's identity, because its contents are not in our memory: a file that was overwritten must not be sent with its old entity tag. */
	isSame(): boolean {
		return isSameFile(identityOfOpen(this.#descriptor.number, this.#calls), this.identity);
	}

	forget(): void {
		this.#descriptor.letGo();
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
	readonly #files = new Map<number, CachedFile>();
	/** The files among them that are kept open. */
	readonly #large = new Map<number, CachedFile>();
	/** Popularity of each file, cached or not. */
	readonly #uses = new UseSketch();
	/** Time of the last request for large files that are not cached. */
	readonly #seen = new Map<number, number>();
	#bytes = 0;
	/** Number of consecutive rejections of new small files. */
	#refused = 0;
	/** Number of new small files that are still to be skipped. */
	#passing = 0;
	#sweeps: NodeJS.Timeout | undefined = undefined;
	readonly #watches = new FolderWatches(
		path => this.#drop(hashOf(path, 0)),
		() => {
			for (const hash of this.#files.keys()) this.#drop(hash);
		},
	);
	/** Iterates over candidates for replacement. */
	#candidates = this.#files.values();
	/** The last requested root. */
	#root = '';
	/** Hash of the last requested root. */
	#rootHash = 0;

	/** @param counters The thread's counter row. */
	constructor(calls: SystemCalls | undefined, counters: Float64Array) {
		this.#calls = calls;
		this.#counters = counters;
	}

	/** Returns the file at a path if it is not known to have changed and was checked within the last second. */
	get(root: string, path: string): OpenFile | undefined {
		const hash = this.#hash(root, path);
		this.#uses.add(hash);
		const file = this.#files.get(hash);
		if (file === undefined || !file.is(root, path) || performance.now() - file.checked >= REVALIDATE_MS)
			return undefined;
		if (!file.isSame()) {
			this.#drop(hash);
			return undefined;
		}
		file.used = true;
		this.#counters[FILE_SLOT[file.source]]!++;
		return file;
	}

	/**
	 * Considers caching a file that was opened at `path` without links below its root, after `get` did not return one. If the file is
	 * cached, now or unchanged from before, closes the opened file and returns the cached one; otherwise returns the opened file. Throws
	 * FileError.
	 */
	take(opened: OpenedFile, path: string): OpenFile {
		const { root } = opened;
		const hash = this.#hash(root, path);
		const known = this.#files.get(hash);
		if (known !== undefined) {
			if (!known.is(root, path)) return opened;
			if (isSameFile(known.identity, opened.identity)) {
				known.checked = performance.now();
				known.used = true;
				opened.close();
				return known;
			}
			this.#drop(hash);
		}
		const isSmall = opened.size <= MAX_SMALL_FILE_BYTES;
		if (isSmall && this.#passing > 0) {
			this.#passing--;
			return opened;
		}
		if (!(isSmall ? this.#uses.of(hash) > 1 : this.#wasRequestedRecently(hash)) || !isSettled(opened.identity))
			return opened;
		if (isSmall && !this.#makeRoom(hash, opened.size)) {
			this.#refused = Math.min(this.#refused + 1, MAX_REJECTIONS);
			this.#passing = this.#refused;
			return opened;
		}
		this.#refused = 0;
		const file = isSmall ? new FileInMemory(hash, path, opened) : new FileHeldOpen(hash, path, opened, this.#calls);
		if (!opened.noLinkFollowed && opened.path !== root + path) this.#watchLinks(root);
		this.#watch(root, path);
		this.#keep(file);
		this.#forgetLarge();
		opened.close();
		return file;
	}

	/** Reports whether a large file was requested recently. If not, remembers this request. */
	#wasRequestedRecently(hash: number): boolean {
		const now = performance.now();
		const seen = this.#seen.get(hash);
		if (seen !== undefined && now - seen < REOPEN_WINDOW_MS) return true;
		if (this.#seen.size >= MAX_SEEN) this.#seen.clear();
		this.#seen.set(hash, now);
		return false;
	}

	/** Watches every folder from the root's parent to the file's: replacing any of them replaces the file. */
	#watch(root: string, below: string): void {
		const parent = root.slice(0, root.lastIndexOf('/'));
		if (parent !== '') this.#watches.add(parent);
		for (let at = 0; at !== -1; at = below.indexOf('/', at + 1)) {
			this.#watches.add(root === '/' ? below.slice(0, at) || '/' : root + below.slice(0, at));
		}
	}

	/** Watches the folders above the root, where a link on the path to it (`current -> releases/7`) may change. */
	#watchLinks(root: string): void {
		for (let end = root.lastIndexOf('/'); end > 0; end = root.lastIndexOf('/', end - 1)) {
			this.#watches.add(root.slice(0, end));
		}
	}

	#keep(file: CachedFile): void {
		this.#files.set(file.hash, file);
		if (file.size > MAX_SMALL_FILE_BYTES) {
			this.#seen.delete(file.hash);
			this.#large.set(file.hash, file);
			this.#sweeps ??= setInterval(() => this.#sweep(), OPEN_IDLE_MS).unref();
		}
		this.#bytes += file.weight;
		this.#tell();
	}

	#sweep(): void {
		const limit = performance.now() - OPEN_IDLE_MS;
		for (const [hash, { checked }] of this.#large) if (checked < limit) this.#drop(hash);
		if (this.#large.size > 0) return;
		clearInterval(this.#sweeps);
		this.#sweeps = undefined;
	}

	#tell(): void {
		this.#counters[FILE_SLOT.keptBytes] = this.#bytes;
		this.#counters[FILE_SLOT.heldOpen] = this.#large.size;
	}

	#drop(hash: number): void {
		const file = this.#files.get(hash);
		if (file === undefined) return;
		this.#files.delete(hash);
		this.#large.delete(hash);
		this.#bytes -= file.weight;
		this.#tell();
		file.forget();
	}

	/**
	 * Makes room for a small file if the files to be evicted have not been requested since the last pass and are less popular.
	 */
	#makeRoom(hash: number, size: number): boolean {
		const uses = this.#uses.of(hash);
		for (let weighed = 0; this.#bytes + size > MAX_BYTES || this.#files.size >= MAX_FILES; weighed++) {
			const next = this.#nextCandidate();
			if (weighed === ADMISSION_SAMPLE || next === undefined) return false;
			if (next.used) next.used = false;
			else if (this.#uses.of(next.hash) + ADMISSION_RATIO > uses) return false;
			else this.#drop(next.hash);
		}
		return true;
	}

	/** Returns the next candidate, cycling from the oldest to the newest. */
	#nextCandidate(): CachedFile | undefined {
		const next = this.#candidates.next();
		if (!next.done) return next.value;
		this.#candidates = this.#files.values();
		return this.#candidates.next().value;
	}

	/** Closes descriptors not used since the last pass, oldest first, until few enough are left. */
	#forgetLarge(): void {
		for (const file of this.#large.values()) {
			if (this.#large.size <= MAX_OPEN) return;
			if (file.used) {
				file.used = false;
				// Moves the file to the end, so that files not used since the last pass come first.
				this.#large.delete(file.hash);
				this.#large.set(file.hash, file);
			} else this.#drop(file.hash);
		}
	}

	/** Returns the hash of the whole path. */
	#hash(root: string, path: string): number {
		if (root !== this.#root) {
			this.#root = root;
			this.#rootHash = root === '/' ? 0 : hashOf(root, 0);
		}
		return hashOf(path, this.#rootHash);
	}
}

/** Continues a hash with another string. */
function hashOf(text: string, before: number): number {
	let hash = before;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

function identityOfOpen(descriptor: number, calls: SystemCalls | undefined): FileIdentity {
	return calls?.identity(descriptor) ?? toFileIdentity(fstatSync(descriptor, { bigint: true }));
}

function isSettled({ changeSeconds, changeNanoseconds, seconds, nanoseconds }: FileIdentity): boolean {
	const limit = Date.now() / 1000 - SETTLED_SECONDS;
	return changeSeconds + changeNanoseconds / 1e9 < limit && seconds + nanoseconds / 1e9 < limit;
}
