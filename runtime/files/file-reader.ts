/**
 * Static files below a root: no path, link, device or race leads out of it.
 *
 * Opening is synchronous and so is the read of a small file: from a warm cache both take microseconds, which a trip
 * through the thread pool would multiply. Files that are asked for again are kept: small ones in memory, others open.
 */
import {
	type BigIntStats,
	closeSync,
	constants,
	fstatSync,
	openSync,
	readdirSync,
	readlinkSync,
	readSync,
	realpathSync,
	type Stats,
	statSync,
} from 'node:fs';
import type { Body } from '../../compiler/exchange/body.ts';
import { FileError, type FileFacts, type FileReader, type OpenFile } from '../../compiler/exchange/leases.ts';
import { FILE_ROW, FILE_SLOTS_END } from '../metrics/file-counters.ts';
import { FileBody } from './file-body.ts';
import { folderEntries } from './folder-entries.ts';
import { KeptFiles, SMALL } from './kept-files.ts';
import { OpenDescriptor } from './open-descriptor.ts';
import { type SystemCalls, systemCalls } from './system-calls.ts';

/** A root that is itself a link (`current -> releases/7`) may be swapped at any time; milliseconds until it is looked at again. */
const ROOT_LIFETIME = 1000;
/** Roots may come from placeholders, that is, from clients: the memory of them is bounded. */
const MOST_ROOTS = 1000;

/** A fifo does not block the opening, and a terminal does not become ours. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/** A path that is not the shortest way to say it: what is hidden is compared as text. */
const UNTIDY = /\/(?:\/|\.\/|\.?$)/;

const IS_WINDOWS = process.platform === 'win32';

/**
 * Makes a reader. Small files that come again are kept in memory and larger ones open, unless `keeps` is false; else it
 * holds no descriptor but those of files that were asked for. `counters` is the counter row of the thread. Without `asksSystem` it does all by Node's own functions, as on
 * systems that have no others.
 */
export function createFileReader(
	keeps: boolean = true,
	asksSystem: boolean = true,
	counters: Float64Array = new Float64Array(FILE_SLOTS_END),
): FileReader {
	const calls = asksSystem ? systemCalls() : undefined;
	const kept = keeps ? new KeptFiles(calls, counters) : undefined;
	const roots = new Map<string, { real: string; at: number }>();

	/** Real path of a root, one latin1 character a byte. Throws what the system says. */
	function realRoot(root: string, fresh: boolean): string {
		const now = performance.now();
		const known = roots.get(root);
		if (known && !fresh && now - known.at < ROOT_LIFETIME) return known.real;
		if (roots.size >= MOST_ROOTS) roots.clear();
		const real = realpathSync.native(root, 'latin1');
		roots.set(root, { real, at: now });
		return real;
	}

	/** Where a real path stands below the root; undefined when it stands outside. */
	function below(root: string, real: string): string | undefined {
		const known = inside(realRoot(root, false), real);
		return known === undefined ? inside(realRoot(root, true), real) : known;
	}

	function withinText(root: string, real: string): string | undefined {
		const within = below(root, real);
		return within === undefined ? undefined : fromBytes(within);
	}

	function open(root: string, path: string, followSymlinks: boolean): OpenFile {
		const full = systemPath(root, path);
		const known = typeof full === 'string' ? kept?.get(root, full) : undefined;
		if (known) return known;
		let descriptor = -1;
		let close = closeSync;
		try {
			// A root that is itself a link may lead elsewhere by now, and is looked at each time.
			if (calls !== undefined && typeof full === 'string' && !UNTIDY.test(path) && realRoot(root, false) === root) {
				descriptor = calls.openWithoutLinks(full);
			}
			const hasNoLinks = descriptor !== -1;
			if (hasNoLinks) close = calls!.close;
			else descriptor = openLookedAt(full);
			// From here on only the descriptor counts: what the name means may change at any moment.
			const stat = fstatSync(descriptor, { bigint: true });
			const real = hasNoLinks ? undefined : realPathOf(descriptor, full);
			const within = hasNoLinks ? path : real === undefined ? undefined : withinText(root, real);
			if (within === undefined && !followSymlinks) throw new FileError('not_found', 'a link leads out of the root');
			if (stat.isDirectory()) throw new FileError('directory', 'the path names a folder');
			if (!stat.isFile()) throw new FileError('forbidden', 'not a regular file');
			const text = hasNoLinks ? (full as string) : real === undefined ? `${root}${path}` : fromBytes(real);
			const file = new DescribedFile(new OpenDescriptor(descriptor, close), text, within, stat, calls);
			counters[FILE_ROW.disk]!++;
			if (!kept || typeof full !== 'string' || within !== path) return file;
			return kept.take(root, full, file as DescribedFile & { below: string }, stat);
		} catch (error) {
			if (descriptor !== -1) close(descriptor);
			throw fileError(error);
		}
	}

	function kind(root: string, path: string, followSymlinks: boolean): 'file' | 'directory' | undefined {
		const full = systemPath(root, path);
		try {
			const stat = statSync(full, { throwIfNoEntry: false });
			if (stat === undefined) return undefined;
			if (!followSymlinks && below(root, realpathSync.native(full, 'latin1')) === undefined) return undefined;
			return stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : undefined;
		} catch (error) {
			const failure = fileError(error);
			if (failure.reason === 'not_found') return undefined;
			throw failure;
		}
	}

	function stat(root: string, path: string, followSymlinks: boolean): FileFacts | undefined {
		try {
			const full = systemPath(root, path);
			const facts = statSync(full, { throwIfNoEntry: false, bigint: true });
			if (facts === undefined) return undefined;
			if (!followSymlinks && below(root, realpathSync.native(full, 'latin1')) === undefined) return undefined;
			const type = facts.isDirectory() ? 'directory' : 'file';
			return { type, size: Number(facts.size), mtimeNs: facts.mtimeNs };
		} catch {
			return undefined;
		}
	}

	function list(root: string, path: string, followSymlinks: boolean): readonly string[] {
		try {
			const full = systemPath(root, path);
			if (!followSymlinks && below(root, realpathSync.native(full, 'latin1')) === undefined) return [];
			return readdirSync(full).sort();
		} catch {
			return [];
		}
	}

	async function entries(root: string, path: string, followSymlinks: boolean, most: number) {
		try {
			const full = systemPath(root, path === '' ? '/' : path);
			if (!followSymlinks && below(root, realpathSync.native(full, 'latin1')) === undefined) {
				throw new FileError('not_found', 'a link leads out of the root');
			}
			const isWithin = (real: string): boolean =>
				followSymlinks || below(root, Buffer.from(real).toString('latin1')) !== undefined;
			return await folderEntries(full, isWithin, most);
		} catch (error) {
			throw fileError(error);
		}
	}

	function readStart(path: string, bytes: number): Uint8Array | undefined {
		let descriptor = -1;
		try {
			// Looked at before it is opened: opening a device or a fifo can already have an effect.
			const { size } = regularFile(statSync(path));
			descriptor = openSync(path, OPEN_FLAGS);
			return readWhole(descriptor, 0, Math.min(size, bytes));
		} catch {
			return undefined;
		} finally {
			if (descriptor !== -1) closeSync(descriptor);
		}
	}

	function realPath(path: string): string | undefined {
		try {
			return realpathSync.native(path);
		} catch {
			return undefined;
		}
	}

	return { open, kind, stat, list, entries, readStart, realPath };
}

/** Looked at before it is opened: opening a device or a fifo can already have an effect. */
function openLookedAt(path: string | Buffer): number {
	const stat = statSync(path, { throwIfNoEntry: false });
	if (stat === undefined) throw new FileError('not_found', 'there is no such file');
	if (!stat.isFile() && !stat.isDirectory()) throw new FileError('forbidden', 'not a regular file');
	return openSync(path, OPEN_FLAGS);
}

function regularFile(stat: Stats): Stats {
	if (!stat.isFile()) throw new FileError('forbidden', 'not a regular file');
	return stat;
}

/**
 * The path as the system takes it. Throws FileError `invalid` for what no caller may ask for: NUL, a `..` segment, a
 * path that does not begin with a slash; on Windows also what would be a separator, a drive or a stream there.
 */
function systemPath(root: string, path: string): string | Buffer {
	if (!path.startsWith('/') || path.includes('\0') || root.includes('\0')) throw invalid();
	if (path.includes('/..') && path.split('/').includes('..')) throw invalid();
	if (IS_WINDOWS && /[\\:]/.test(path)) throw invalid();
	const full = root === '/' ? path : `${root}${path}`;
	return full.isWellFormed() ? full : toBytes(full);
}

function invalid(): FileError {
	return new FileError('invalid', 'the path is malformed');
}

/** Bytes of a path in which U+DC80 to U+DCFF stand for bytes that are not UTF-8. */
function toBytes(path: string): Buffer {
	const parts: Buffer[] = [];
	let from = 0;
	for (let at = 0; at < path.length; at++) {
		const unit = path.charCodeAt(at);
		if (unit < 0xd800 || unit > 0xdfff) continue;
		if (unit < 0xdc00 && at + 1 < path.length && (path.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
			at += 1;
			continue;
		}
		if (unit < 0xdc80 || unit > 0xdcff) throw invalid();
		parts.push(Buffer.from(path.slice(from, at)), Buffer.from([unit & 0xff]));
		from = at + 1;
	}
	parts.push(Buffer.from(path.slice(from)));
	return Buffer.concat(parts);
}

/** Text of a path of one latin1 character a byte. */
function fromBytes(path: string): string {
	for (let i = 0; i < path.length; i++) {
		if (path.charCodeAt(i) > 0x7f) return Buffer.from(path, 'latin1').toString('utf8');
	}
	return path;
}

/** `/x/y` when `real` is `root/x/y`, `/` when it is the root itself; undefined when it is elsewhere. */
function inside(root: string, real: string): string | undefined {
	if (real === root) return '/';
	if (root === '/') return real;
	return real.startsWith(root) && real[root.length] === '/' ? real.slice(root.length) : undefined;
}

/** Real path of an open file, one latin1 character a byte; undefined when it cannot be told for certain. */
function realPathOf(descriptor: number, path: string | Buffer): string | undefined {
	try {
		return withoutDeleted(readlinkSync(`/proc/self/fd/${descriptor}`, 'latin1'), descriptor);
	} catch {
		// No /proc here: the name counts only while it still leads to the very file that is open.
	}
	try {
		const real = realpathSync.native(path, 'latin1');
		const named = statSync(Buffer.from(real, 'latin1'), { bigint: true });
		const opened = fstatSync(descriptor, { bigint: true });
		return named.ino === opened.ino && named.dev === opened.dev ? real : undefined;
	} catch {
		return undefined;
	}
}

/** Linux marks the path of a file that was removed or replaced since it was opened. */
function withoutDeleted(real: string, descriptor: number): string {
	const mark = ' (deleted)';
	if (!real.endsWith(mark)) return real;
	return fstatSync(descriptor).nlink === 0 ? real.slice(0, -mark.length) : real;
}

/** The reason that stands behind a system error. */
function fileError(error: unknown): FileError {
	if (error instanceof FileError) return error;
	const code = (error as NodeJS.ErrnoException).code;
	switch (code) {
		case 'ENOENT':
		case 'ENOTDIR':
		case 'ENAMETOOLONG':
		case 'ELOOP':
			return new FileError('not_found', 'there is no such file', error);
		case 'EACCES':
		case 'EPERM':
		case 'ENXIO':
			return new FileError('forbidden', 'the file may not be read', error);
		case 'EINVAL':
		case 'EILSEQ':
		case 'ERR_INVALID_ARG_VALUE':
			return new FileError('invalid', 'the path is malformed', error);
		default:
			return new FileError('unavailable', `the file cannot be opened (${code ?? 'unknown reason'})`, error);
	}
}

/** A file that is open. Whoever took it closes it: by `close`, or by the end of its body. */
class DescribedFile implements OpenFile {
	readonly path: string;
	readonly below: string | undefined;
	readonly size: number;
	readonly mtimeNs: bigint;
	readonly from = 'disk';
	readonly descriptor: OpenDescriptor;
	readonly #calls: SystemCalls | undefined;
	#closed = false;

	constructor(
		descriptor: OpenDescriptor,
		path: string,
		below: string | undefined,
		stat: BigIntStats,
		calls: SystemCalls | undefined,
	) {
		this.descriptor = descriptor;
		this.path = path;
		this.below = below;
		this.size = Number(stat.size);
		this.mtimeNs = stat.mtimeNs;
		this.#calls = calls;
	}

	body(start: number, end: number, keepOpen = false): Body {
		if (this.#closed) throw new FileError('unavailable', 'the file is closed');
		try {
			if (end - start > SMALL) return new FileBody(this.descriptor, start, end, this.#calls);
			return readWhole(this.descriptor.number, start, end - start);
		} finally {
			if (!keepOpen) this.close();
		}
	}

	/** All of it, in memory of its own: a piece of a shared one would keep the whole of that alive. */
	whole(): Uint8Array {
		return readWhole(this.descriptor.number, 0, this.size, Buffer.allocUnsafeSlow(this.size));
	}

	close(): void {
		if (this.#closed) return;
		this.#closed = true;
		this.descriptor.letGo();
	}
}

function readWhole(
	descriptor: number,
	start: number,
	length: number,
	bytes: Buffer = Buffer.allocUnsafe(length),
): Uint8Array {
	let at = 0;
	while (at < length) {
		let count: number;
		try {
			count = readSync(descriptor, bytes, at, length - at, start + at);
		} catch (error) {
			throw new FileError('unavailable', 'the file cannot be read', error);
		}
		if (count === 0) throw new FileError('unavailable', 'the file became shorter while it was read');
		at += count;
	}
	return bytes;
}
