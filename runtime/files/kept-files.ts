/** Files at hand: the bytes of small ones that are asked for again and again, and large ones held open. */
import { type BigIntStats, fstatSync } from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import type { OpenFile } from '../../compiler/exchange/leases.ts';
import { FILE_ROW } from '../metrics/file-counters.ts';
import { FileBody } from './file-body.ts';
import { FolderWatches } from './folder-watches.ts';
import type { OpenDescriptor } from './open-descriptor.ts';
import type { SystemCalls } from './system-calls.ts';

/** Bytes of a file that is read at once, and kept in memory when it comes again. */
export const SMALL: number = 64 * 1024;
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
/** Paths remembered that were asked for once. */
const MOST_SEEN = 16_384;
/** Milliseconds for which a file needs no look at it. Changes that the system tells of count at once. */
const LIFETIME = 1000;
/**
 * Nanoseconds since a file's last change before it is kept. The system's clock has ticks: what changes twice within one
 * has the same time before and after.
 */
const SETTLED = 2_000_000_000n;

/** A file that was opened. */
export interface OpenedFile extends OpenFile {
	readonly below: string;
	readonly descriptor: OpenDescriptor;
	/** All of it, in memory of its own. Throws FileError. */
	whole(): Uint8Array;
}

/** A file, and what must be as it was for what is kept of it to be right. Closing it does nothing. */
abstract class KeptFile implements OpenFile {
	readonly root: string;
	readonly path: string;
	readonly below: string;
	readonly size: number;
	readonly mtimeNs: bigint;
	readonly stat: BigIntStats;
	/** When it was last looked at; never, at first: it may have changed before its folder was watched. */
	checked = Number.NEGATIVE_INFINITY;
	/** Whether it was asked for since the memory was last short. */
	used = true;

	constructor(root: string, file: OpenedFile, stat: BigIntStats) {
		this.root = root;
		this.path = file.path;
		this.below = file.below;
		this.size = file.size;
		this.mtimeNs = file.mtimeNs;
		this.stat = stat;
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
class FileInMemory extends KeptFile {
	readonly from = 'memory';
	readonly bytes: Uint8Array;

	constructor(root: string, file: OpenedFile, stat: BigIntStats) {
		super(root, file, stat);
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
class FileHeldOpen extends KeptFile {
	readonly from = 'held';
	readonly #descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;

	constructor(root: string, file: OpenedFile, stat: BigIntStats, calls: SystemCalls | undefined) {
		super(root, file, stat);
		file.descriptor.hold();
		this.#descriptor = file.descriptor;
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
		return isSame(fstatSync(this.#descriptor.number, { bigint: true }), this.stat);
	}

	forget(): void {
		this.#descriptor.letGo();
	}
}

/** The files that one thread keeps, by path. Only those that no link below their root leads to: what it means may change unseen. */
export class KeptFiles {
	readonly #calls: SystemCalls | undefined;
	readonly #counters: Float64Array;
	readonly #files = new Map<string, KeptFile>();
	/** Those of them that are held open. */
	readonly #large = new Map<string, KeptFile>();
	/** When a path was asked for that is not kept. */
	readonly #seen = new Map<string, number>();
	#bytes = 0;
	#sweeps: NodeJS.Timeout | undefined = undefined;
	readonly #watches = new FolderWatches(
		path => this.#drop(path),
		() => {
			for (const path of this.#files.keys()) this.#drop(path);
		},
	);

	/** `counters` is the counter row of the thread. */
	constructor(calls: SystemCalls | undefined, counters: Float64Array) {
		this.#calls = calls;
		this.#counters = counters;
	}

	/** The file at a path, when nothing says that it has changed and it was looked at within the last second. */
	get(root: string, path: string): OpenFile | undefined {
		const file = this.#files.get(path);
		if (file === undefined || file.root !== root || performance.now() - file.checked >= LIFETIME) return undefined;
		if (!file.isSame()) {
			this.#drop(path);
			return undefined;
		}
		file.used = true;
		this.#counters[FILE_ROW[file.from]]!++;
		return file;
	}

	/**
	 * Takes note of a file that was opened without links below its root. The same file as it is kept when it is there and
	 * unchanged, or when it was asked for before and is kept from now on: then the opened one is closed. Otherwise the opened
	 * one. Throws FileError.
	 */
	take(root: string, path: string, opened: OpenedFile, stat: BigIntStats): OpenFile {
		const known = this.#files.get(path);
		if (known) {
			if (known.root === root && isSame(known.stat, stat)) {
				known.checked = performance.now();
				opened.close();
				return known;
			}
			this.#drop(path);
		}
		if (!this.#comesAgain(path, opened.size) || !isSettled(stat)) return opened;
		const file =
			opened.size <= SMALL ? new FileInMemory(root, opened, stat) : new FileHeldOpen(root, opened, stat, this.#calls);
		if (file.path !== path) this.#watchLinks(root);
		this.#watch(root, file.below);
		this.#keep(path, file);
		this.#shrink();
		opened.close();
		return file;
	}

	/** Whether a path was asked for before; it is remembered if not. */
	#comesAgain(path: string, size: number): boolean {
		const now = performance.now();
		const seen = this.#seen.get(path);
		if (seen !== undefined && (size <= SMALL || now - seen < SOON)) return true;
		if (this.#seen.size >= MOST_SEEN) this.#seen.clear();
		this.#seen.set(path, now);
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

	#keep(path: string, file: KeptFile): void {
		this.#seen.delete(path);
		this.#files.set(path, file);
		if (file.size > SMALL) {
			this.#large.set(path, file);
			this.#sweeps ??= setInterval(() => this.#sweep(), IDLE).unref();
		}
		this.#bytes += file.weight;
		this.#tell();
	}

	#sweep(): void {
		const limit = performance.now() - IDLE;
		for (const [path, { checked }] of this.#large) if (checked < limit) this.#drop(path);
		if (this.#large.size > 0) return;
		clearInterval(this.#sweeps);
		this.#sweeps = undefined;
	}

	#tell(): void {
		this.#counters[FILE_ROW.keptBytes] = this.#bytes;
		this.#counters[FILE_ROW.heldOpen] = this.#large.size;
	}

	#drop(path: string): void {
		const file = this.#files.get(path);
		if (file === undefined) return;
		this.#files.delete(path);
		this.#large.delete(path);
		this.#bytes -= file.weight;
		this.#tell();
		file.forget();
	}

	#shrink(): void {
		this.#forgetFrom(this.#large, () => this.#large.size <= MOST_OPEN);
		this.#forgetFrom(this.#files, () => this.#bytes <= CEILING && this.#files.size <= MOST_FILES);
	}

	/** Forgets those not asked for since they were last passed over, oldest first. */
	#forgetFrom(files: Map<string, KeptFile>, isEnough: () => boolean): void {
		for (const [path, file] of files) {
			if (isEnough()) return;
			if (file.used) {
				file.used = false;
				// Behind the others.
				files.delete(path);
				files.set(path, file);
			} else this.#drop(path);
		}
	}
}

/** Whether nothing about a file changed: ctime moves with whatever is done to it, and nobody can set it back. */
function isSame(a: BigIntStats, b: BigIntStats): boolean {
	return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs;
}

function isSettled({ ctimeNs, mtimeNs }: BigIntStats): boolean {
	const limit = BigInt(Date.now()) * 1_000_000n - SETTLED;
	return ctimeNs < limit && mtimeNs < limit;
}
