/** Files at hand: the bytes of small ones that are asked for again and again, and large ones held open. */
import { fstatSync } from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import type { FileTime, OpenFile } from '../../compiler/exchange/leases.ts';
import { FILE_ROW } from '../metrics/file-counters.ts';
import type { SystemCalls } from '../sockets/file-calls.ts';
import { FileBody } from './file-body.ts';
import { type FileIdentity, identityOf, isSameFile } from './file-identity.ts';
import { FolderWatches } from './folder-watches.ts';
import type { OpenDescriptor } from './open-descriptor.ts';
import { type OpenedFile, SMALL } from './opened-file.ts';
import { UseSketch } from './use-sketch.ts';

/** Milliseconds within which a larger one must come again to be held open. */
const SOON = 10_000;

/** Bytes that one thread keeps. */
const CEILING = 16 * 1024 * 1024;
/** Files that one thread keeps, however small. */
const MOST_FILES = 8192;
/** Files that one thread holds open. */
const MOST_OPEN = 256;
/** Milliseconds without a look at one after which it is closed: removed unseen, it would go on taking room on its disk. */
const IDLE = 10_000;
/** Larger files remembered that were asked for once. */
const MOST_SEEN = 4096;
/**
 * Kept files that a new one is weighed against at most, and how many times more often than each of them it must have been
 * asked for. With more files than there is room for, each taking the place of another that comes as often would be work for nothing.
 */
const MOST_WEIGHED = 32;
const ADVANTAGE = 2;
/** New ones in a row that found no room after which most are not even weighed: so many for each that is. */
const MOST_PASSED_OVER = 15;
/** Milliseconds for which a file needs no look at it. Changes that the system tells of count at once. */
const LIFETIME = 1000;
/**
 * Seconds since a file's last change before it is kept. The system's clock has ticks: what changes twice within one has the
 * same time before and after.
 */
const SETTLED = 2;

/** A file, and what must be as it was for what is kept of it to be right. Closing it does nothing. */
abstract class CachedFile implements OpenFile {
	/** Of the root and the path that lead to it. */
	readonly hash: number;
	readonly root: string;
	readonly path: string;
	readonly below: string;
	readonly asNamed: boolean;
	readonly size: number;
	readonly identity: FileIdentity;
	/** When it was last looked at; never, at first: it may have changed before its folder was watched. */
	checked = Number.NEGATIVE_INFINITY;
	/** Whether it was asked for since the memory was last short. */
	used = true;

	constructor(hash: number, below: string, file: OpenedFile) {
		this.hash = hash;
		this.root = file.root;
		this.path = file.path;
		this.below = below;
		this.asNamed = file.asNamed;
		this.size = file.size;
		this.identity = file.identity;
	}

	get changed(): FileTime {
		return this.identity;
	}

	is(root: string, path: string): boolean {
		return this.below === path && this.root === root;
	}

	abstract readonly from: 'memory' | 'held';
	/** Bytes of memory that it takes. */
	abstract readonly weight: number;
	abstract body(start: number, end: number): Body;
	/** Whether it is still what `stat` says, as far as that is told without a look at its path. */
	abstract isSame(): boolean;
	/** It is kept no longer. Bodies of it that are being sent go on. */
	abstract forget(): void;
	close(): void {}
}

/** A small one. It holds no descriptor. */
class FileInMemory extends CachedFile {
	readonly from = 'memory';
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

/** A larger one, whose bytes the system has. */
class FileHeldOpen extends CachedFile {
	readonly from = 'held';
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

	/** Its bytes are not ours: written to in place, it must not be sent under the tag that it had. */
	isSame(): boolean {
		return isSameFile(identityOfOpen(this.#descriptor.number, this.#calls), this.identity);
	}

	forget(): void {
		this.#descriptor.letGo();
	}
}

/** The files that one thread keeps, by path. Only those that no link below their root leads to: what it means may change unseen. */
export class OpenFileCache {
	readonly #calls: SystemCalls | undefined;
	readonly #counters: Float64Array;
	/**
	 * By hash, and one for each: of two with the same hash one is not kept. A Map with the paths themselves would first look
	 * each up among all texts of the process.
	 */
	readonly #files = new Map<number, CachedFile>();
	/** Those of them that are held open. */
	readonly #large = new Map<number, CachedFile>();
	/** How often each is asked for, kept or not. */
	readonly #uses = new UseSketch();
	/** When a larger file was asked for that is not kept. */
	readonly #seen = new Map<number, number>();
	#bytes = 0;
	/** New small files that found no room since one did, and those that are still to be passed over. */
	#refused = 0;
	#passing = 0;
	#sweeps: NodeJS.Timeout | undefined = undefined;
	readonly #watches = new FolderWatches(
		path => this.#drop(hashOf(path, 0)),
		() => {
			for (const hash of this.#files.keys()) this.#drop(hash);
		},
	);
	/** Who is weighed next against a new one. */
	#weighing = this.#files.values();
	/** The root that was asked for last, and its hash. */
	#root = '';
	#rootHash = 0;

	/** `counters` is the counter row of the thread. */
	constructor(calls: SystemCalls | undefined, counters: Float64Array) {
		this.#calls = calls;
		this.#counters = counters;
	}

	/** The file at a path, when nothing says that it has changed and it was looked at within the last second. */
	get(root: string, path: string): OpenFile | undefined {
		const hash = this.#hash(root, path);
		this.#uses.add(hash);
		const file = this.#files.get(hash);
		if (file === undefined || !file.is(root, path) || performance.now() - file.checked >= LIFETIME) return undefined;
		if (!file.isSame()) {
			this.#drop(hash);
			return undefined;
		}
		file.used = true;
		this.#counters[FILE_ROW[file.from]]!++;
		return file;
	}

	/**
	 * Takes note of a file that was opened at `path` without links below its root, when `get` did not give it. The same file
	 * as it is kept when it is there and unchanged, or when it was asked for before and is kept from now on: then the opened one
	 * is closed. Otherwise the opened one. Throws FileError.
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
		const isSmall = opened.size <= SMALL;
		if (isSmall && this.#passing > 0) {
			this.#passing--;
			return opened;
		}
		if (!(isSmall ? this.#uses.of(hash) > 1 : this.#comesSoon(hash)) || !isSettled(opened.identity)) return opened;
		if (isSmall && !this.#makeRoom(hash, opened.size)) {
			this.#refused = Math.min(this.#refused + 1, MOST_PASSED_OVER);
			this.#passing = this.#refused;
			return opened;
		}
		this.#refused = 0;
		const file = isSmall ? new FileInMemory(hash, path, opened) : new FileHeldOpen(hash, path, opened, this.#calls);
		if (!opened.asNamed && opened.path !== root + path) this.#watchLinks(root);
		this.#watch(root, path);
		this.#keep(file);
		this.#forgetLarge();
		opened.close();
		return file;
	}

	/** Whether a larger file was asked for a moment ago; it is remembered if not. */
	#comesSoon(hash: number): boolean {
		const now = performance.now();
		const seen = this.#seen.get(hash);
		if (seen !== undefined && now - seen < SOON) return true;
		if (this.#seen.size >= MOST_SEEN) this.#seen.clear();
		this.#seen.set(hash, now);
		return false;
	}

	/** Every folder from the one that holds the root down to the one that holds the file: replacing any replaces the file. */
	#watch(root: string, below: string): void {
		const parent = root.slice(0, root.lastIndexOf('/'));
		if (parent !== '') this.#watches.add(parent);
		for (let at = 0; at !== -1; at = below.indexOf('/', at + 1)) {
			this.#watches.add(root === '/' ? below.slice(0, at) || '/' : root + below.slice(0, at));
		}
	}

	/** A link on the way to the root (`current -> releases/7`) stands in one of the folders above. */
	#watchLinks(root: string): void {
		for (let end = root.lastIndexOf('/'); end > 0; end = root.lastIndexOf('/', end - 1)) {
			this.#watches.add(root.slice(0, end));
		}
	}

	#keep(file: CachedFile): void {
		this.#files.set(file.hash, file);
		if (file.size > SMALL) {
			this.#seen.delete(file.hash);
			this.#large.set(file.hash, file);
			this.#sweeps ??= setInterval(() => this.#sweep(), IDLE).unref();
		}
		this.#bytes += file.weight;
		this.#tell();
	}

	#sweep(): void {
		const limit = performance.now() - IDLE;
		for (const [hash, { checked }] of this.#large) if (checked < limit) this.#drop(hash);
		if (this.#large.size > 0) return;
		clearInterval(this.#sweeps);
		this.#sweeps = undefined;
	}

	#tell(): void {
		this.#counters[FILE_ROW.keptBytes] = this.#bytes;
		this.#counters[FILE_ROW.heldOpen] = this.#large.size;
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
	 * Makes room for a small file of so many bytes, if those that would have to go were not asked for since they were last
	 * passed over and are asked for less often than it.
	 */
	#makeRoom(hash: number, size: number): boolean {
		const uses = this.#uses.of(hash);
		for (let weighed = 0; this.#bytes + size > CEILING || this.#files.size >= MOST_FILES; weighed++) {
			const next = this.#nextWeighed();
			if (weighed === MOST_WEIGHED || next === undefined) return false;
			if (next.used) next.used = false;
			else if (this.#uses.of(next.hash) + ADVANTAGE > uses) return false;
			else this.#drop(next.hash);
		}
		return true;
	}

	/** Goes round, from the oldest to the newest and again. */
	#nextWeighed(): CachedFile | undefined {
		const next = this.#weighing.next();
		if (!next.done) return next.value;
		this.#weighing = this.#files.values();
		return this.#weighing.next().value;
	}

	/** Forgets those held open that were not asked for since they were last passed over, oldest first, until there are few enough. */
	#forgetLarge(): void {
		for (const file of this.#large.values()) {
			if (this.#large.size <= MOST_OPEN) return;
			if (file.used) {
				file.used = false;
				// Behind the others.
				this.#large.delete(file.hash);
				this.#large.set(file.hash, file);
			} else this.#drop(file.hash);
		}
	}

	/** The hash of the whole path. */
	#hash(root: string, path: string): number {
		if (root !== this.#root) {
			this.#root = root;
			this.#rootHash = root === '/' ? 0 : hashOf(root, 0);
		}
		return hashOf(path, this.#rootHash);
	}
}

/** The hash of a text behind another, which has `before`. */
function hashOf(text: string, before: number): number {
	let hash = before;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash;
}

function identityOfOpen(descriptor: number, calls: SystemCalls | undefined): FileIdentity {
	return calls?.identity(descriptor) ?? identityOf(fstatSync(descriptor, { bigint: true }));
}

function isSettled({ changeSeconds, changeNanoseconds, seconds, nanoseconds }: FileIdentity): boolean {
	const limit = Date.now() / 1000 - SETTLED;
	return changeSeconds + changeNanoseconds / 1e9 < limit && seconds + nanoseconds / 1e9 < limit;
}
