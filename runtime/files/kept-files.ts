/** Files in memory, so that a small or middling one that is asked for again and again is neither opened nor read. */
import type { BigIntStats } from 'node:fs';
import type { OpenFile } from '../../compiler/exchange/leases.ts';
import { FolderWatches } from './folder-watches.ts';

/** Bytes of the largest file that is kept. */
export const LARGEST_KEPT_FILE: number = 1024 * 1024;
/** Up to this size a file is kept whenever it comes again. */
const SMALL = 64 * 1024;
/** Milliseconds within which a larger one must come again: its bytes are read at once, so they should be at hand. */
const SOON = 10_000;

/** Bytes that one thread keeps. */
const CEILING = 16 * 1024 * 1024;
/** Files that one thread keeps, however small. */
const MOST_FILES = 8192;
/** Paths remembered that were asked for once. */
const MOST_SEEN = 16_384;
/** Milliseconds for which a file needs no look at it. Changes that the system tells of count at once. */
const LIFETIME = 1000;
/**
 * Nanoseconds since a file's last change before it is kept. The system's clock has ticks: what changes twice within one
 * has the same time before and after.
 */
const SETTLED = 2_000_000_000n;

/** A file's bytes, and what must be as it was for them to be right. It holds no descriptor, so closing it does nothing. */
class KeptFile implements OpenFile {
	readonly root: string;
	readonly path: string;
	readonly below: string;
	readonly size: number;
	readonly mtimeNs: bigint;
	readonly stat: BigIntStats;
	readonly bytes: Uint8Array;
	/** When it was last looked at; never, at first: it may have changed before its folder was watched. */
	checked = Number.NEGATIVE_INFINITY;
	/** Whether it was asked for since the memory was last short. */
	used = true;

	constructor(root: string, file: OpenFile, below: string, stat: BigIntStats, bytes: Uint8Array) {
		this.root = root;
		this.path = file.path;
		this.below = below;
		this.size = file.size;
		this.mtimeNs = file.mtimeNs;
		this.stat = stat;
		this.bytes = bytes;
	}

	body(start: number, end: number): Uint8Array {
		return start === 0 && end === this.size ? this.bytes : this.bytes.subarray(start, end);
	}

	close(): void {}
}

/** The files that one thread keeps, by path. Only those that no link leads to: what a link means may change unseen. */
export class KeptFiles {
	readonly #files = new Map<string, KeptFile>();
	/** When a path was asked for that is not kept. */
	readonly #seen = new Map<string, number>();
	#bytes = 0;
	readonly #watches = new FolderWatches(
		path => this.#drop(path),
		() => {
			this.#files.clear();
			this.#bytes = 0;
		},
	);

	/** The file at a path, when nothing says that it has changed and it was looked at within the last second. */
	get(root: string, path: string): OpenFile | undefined {
		const file = this.#files.get(path);
		if (file === undefined || file.root !== root || performance.now() - file.checked >= LIFETIME) return undefined;
		file.used = true;
		return file;
	}

	/**
	 * Takes note of a file that was opened without links. The same file from memory when it is there and unchanged, or when
	 * it was asked for before and is kept from now on: then the opened one is closed. Otherwise the opened one. `whole` reads
	 * its bytes, into memory of their own: a piece of a shared one would keep the whole of that alive. Throws what `whole` does.
	 */
	take(root: string, path: string, opened: OpenFile, stat: BigIntStats, whole: () => Uint8Array): OpenFile {
		const known = this.#files.get(path);
		if (known) {
			if (known.root === root && isSame(known.stat, stat)) {
				known.checked = performance.now();
				opened.close();
				return known;
			}
			this.#drop(path);
		}
		if (opened.below === undefined || opened.size > LARGEST_KEPT_FILE || !isSettled(stat)) return opened;
		if (!this.#comesAgain(path, opened.size)) return opened;
		const file = new KeptFile(root, opened, opened.below, stat, whole());
		this.#watch(root, file.below);
		this.#files.set(path, file);
		this.#bytes += file.size;
		this.#shrink();
		opened.close();
		return file;
	}

	/** Whether a path was asked for before; it is remembered if not. */
	#comesAgain(path: string, size: number): boolean {
		const now = performance.now();
		const seen = this.#seen.get(path);
		if (seen !== undefined && (size <= SMALL || now - seen < SOON)) {
			this.#seen.delete(path);
			return true;
		}
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

	#drop(path: string): void {
		const file = this.#files.get(path);
		if (file === undefined) return;
		this.#files.delete(path);
		this.#bytes -= file.size;
	}

	/** Forgets those not asked for since they were last passed over, oldest first. */
	#shrink(): void {
		for (const [path, file] of this.#files) {
			if (this.#bytes <= CEILING && this.#files.size <= MOST_FILES) return;
			this.#drop(path);
			if (!file.used) continue;
			file.used = false;
			this.#files.set(path, file);
			this.#bytes += file.size;
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
