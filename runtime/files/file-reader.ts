/**
 * Serves static files below a root. No path, link, device or race leads out of the root.
 *
 * Opening a file and reading a small one are synchronous: if the file is in the page cache, both take microseconds, and the thread
 * pool would take several times as long. Files that are requested again are cached: small ones in memory, others as descriptors.
 */
import {
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
import { FileError, type FileFacts, type FileReader, type OpenFile } from '../../compiler/exchange/leases.ts';
import { FILE_SLOT, FILE_SLOTS_END } from '../metrics/file-counters.ts';
import { systemCalls } from '../sockets/file-calls.ts';
import { type FileIdentity, toFileIdentity } from '../sockets/file-identity.ts';
import { FilePages } from './file-pages.ts';
import { folderEntries } from './folder-entries.ts';
import { OpenFileCache } from './open-file-cache.ts';
import { type FileReadDeps, MAX_SMALL_FILE_BYTES, OpenedFile } from './opened-file.ts';

/**
 * Milliseconds after which the real path of a root is determined again. A root that is a link (`current -> releases/7`) may be
 * switched at any time.
 */
const ROOT_LIFETIME_MS = 1000;
/** Maximum number of roots to remember. Roots may contain placeholders, so clients can influence their number. */
const MAX_REMEMBERED_ROOTS = 1000;

/** Flags with which opening a FIFO does not block, and opening a terminal does not make it the process's controlling terminal. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

const IS_WINDOWS = process.platform === 'win32';

/**
 * Creates a reader.
 * @param useCache Caches popular files, small ones in memory and larger ones as descriptors. If false, only descriptors of files
 * that are being served are kept open.
 * @param useSystemCalls If false, only Node's own functions are used, as on systems where direct calls are not available.
 * @param counters The thread's counter row.
 */
export function createFileReader(
	useCache: boolean = true,
	useSystemCalls: boolean = true,
	counters: Float64Array = new Float64Array(FILE_SLOTS_END),
): FileReader {
	const calls = useSystemCalls ? systemCalls() : undefined;
	const deps: FileReadDeps = { calls, pages: new FilePages(MAX_SMALL_FILE_BYTES, calls?.addressOf) };
	const cache = useCache ? new OpenFileCache(calls, counters) : undefined;
	const realRoots = new Map<string, { real: string; resolvedAt: number }>();

	/** Returns the real path of a root, with one Latin-1 character per byte. Throws the system's error. */
	function resolveRoot(root: string, mustRefresh: boolean): string {
		const now = performance.now();
		const cachedRoot = realRoots.get(root);
		if (cachedRoot && !mustRefresh && now - cachedRoot.resolvedAt < ROOT_LIFETIME_MS) return cachedRoot.real;
		if (realRoots.size >= MAX_REMEMBERED_ROOTS) realRoots.clear();
		const realPath = realpathSync.native(root, 'latin1');
		realRoots.set(root, { real: realPath, resolvedAt: now });
		return realPath;
	}

	/** Converts a real path to one relative to the root. Returns undefined if it is outside of the root. */
	function pathBelowRoot(root: string, real: string): string | undefined {
		const relativePath = pathWithin(resolveRoot(root, false), real);
		return relativePath === undefined ? pathWithin(resolveRoot(root, true), real) : relativePath;
	}

	function relativePathText(root: string, real: string): string | undefined {
		const relativePath = pathBelowRoot(root, real);
		return relativePath === undefined ? undefined : pathFromBytes(relativePath);
	}

	function open(root: string, path: string, followSymlinks: boolean): OpenFile {
		const cachedFile = cache?.get(root, path);
		if (cachedFile !== undefined) return cachedFile;
		let descriptor = -1;
		let usesDirectIo = false;
		try {
			// A root without links can be opened directly. A link in the root's path must be resolved each time, because it may have
			// changed.
			if (calls !== undefined && resolveRoot(root, false) === root) {
				descriptor = calls.openWithoutLinks(root, path);
				usesDirectIo = descriptor !== -1;
			}
			let resolvedPath: string | undefined;
			let relativePath: string | undefined = path;
			if (!usesDirectIo) {
				const fullPath = systemPath(root, path);
				descriptor = openChecked(fullPath);
				resolvedPath = realPathOf(descriptor, fullPath);
				relativePath = resolvedPath === undefined ? undefined : relativePathText(root, resolvedPath);
				if (relativePath === undefined && !followSymlinks)
					throw new FileError('not_found', 'a link leads out of the root');
				resolvedPath = resolvedPath === undefined ? `${root}${path}` : pathFromBytes(resolvedPath);
			}
			// From here on, only the descriptor is used, because the name may refer to another file at any time.
			const identity = requireRegularFile(
				calls?.fileIdentity(descriptor) ?? toFileIdentity(fstatSync(descriptor, { bigint: true })),
			);
			counters[FILE_SLOT.disk]!++;
			const file = new OpenedFile(deps, descriptor, root, resolvedPath, relativePath, identity);
			return cache !== undefined && relativePath === path ? cache.considerCaching(file, path) : file;
		} catch (error) {
			if (usesDirectIo) calls!.close(descriptor);
			else if (descriptor !== -1) closeSync(descriptor);
			throw toFileError(error);
		}
	}

	function kind(root: string, path: string, followSymlinks: boolean): 'file' | 'directory' | undefined {
		const fullPath = systemPath(root, path);
		try {
			const stat = statSync(fullPath, { throwIfNoEntry: false });
			if (stat === undefined) return undefined;
			if (!followSymlinks && pathBelowRoot(root, realpathSync.native(fullPath, 'latin1')) === undefined)
				return undefined;
			return stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : undefined;
		} catch (error) {
			const failure = toFileError(error);
			if (failure.reason === 'not_found') return undefined;
			throw failure;
		}
	}

	function stat(root: string, path: string, followSymlinks: boolean): FileFacts | undefined {
		try {
			const fullPath = systemPath(root, path);
			const stats = statSync(fullPath, { throwIfNoEntry: false, bigint: true });
			if (stats === undefined) return undefined;
			if (!followSymlinks && pathBelowRoot(root, realpathSync.native(fullPath, 'latin1')) === undefined)
				return undefined;
			const type = stats.isDirectory() ? 'directory' : 'file';
			return { type, size: Number(stats.size), mtimeNs: stats.mtimeNs };
		} catch {
			return undefined;
		}
	}

	function list(root: string, path: string, followSymlinks: boolean): readonly string[] {
		try {
			const fullPath = systemPath(root, path);
			if (!followSymlinks && pathBelowRoot(root, realpathSync.native(fullPath, 'latin1')) === undefined) return [];
			return readdirSync(fullPath).sort();
		} catch {
			return [];
		}
	}

	async function entries(root: string, path: string, followSymlinks: boolean, maxEntries: number) {
		try {
			const fullPath = systemPath(root, path === '' ? '/' : path);
			if (!followSymlinks && pathBelowRoot(root, realpathSync.native(fullPath, 'latin1')) === undefined) {
				throw new FileError('not_found', 'a link leads out of the root');
			}
			const isWithin = (real: string): boolean =>
				followSymlinks || pathBelowRoot(root, Buffer.from(real).toString('latin1')) !== undefined;
			return await folderEntries(fullPath, isWithin, maxEntries);
		} catch (error) {
			throw toFileError(error);
		}
	}

	function readStart(path: string, bytes: number): Uint8Array | undefined {
		let descriptor = -1;
		try {
			// The file's type is checked before opening, because opening a device or a FIFO can have side effects.
			const { size } = requireFile(statSync(path));
			descriptor = openSync(path, OPEN_FLAGS);
			const bytesAtStart = Buffer.allocUnsafe(Math.min(size, bytes));
			return bytesAtStart.subarray(0, readSync(descriptor, bytesAtStart, 0, bytesAtStart.length, 0));
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

/** Opens a file after checking its type, because opening a device or a FIFO can have side effects. */
function openChecked(path: string | Buffer): number {
	const stat = statSync(path, { throwIfNoEntry: false });
	if (stat === undefined) throw new FileError('not_found', 'there is no such file');
	if (!stat.isFile() && !stat.isDirectory()) throw new FileError('forbidden', 'not a regular file');
	return openSync(path, OPEN_FLAGS);
}

function requireFile(stat: Stats): Stats {
	if (!stat.isFile()) throw new FileError('forbidden', 'not a regular file');
	return stat;
}

function requireRegularFile(identity: FileIdentity): FileIdentity {
	const type = identity.mode & constants.S_IFMT;
	if (type === constants.S_IFDIR) throw new FileError('directory', 'the path names a folder');
	if (type !== constants.S_IFREG) throw new FileError('forbidden', 'not a regular file');
	return identity;
}

/**
 * Returns the system's path for `path` below the root. Throws FileError `invalid` for a path that must not be requested: with NUL
 * or a `..` segment, without a leading slash, or on Windows with characters that would be separators, drives or streams.
 */
function systemPath(root: string, path: string): string | Buffer {
	if (!path.startsWith('/') || path.includes('\0') || root.includes('\0')) throw invalidPathError();
	if (path.includes('/..') && path.split('/').includes('..')) throw invalidPathError();
	if (IS_WINDOWS && /[\\:]/.test(path)) throw invalidPathError();
	const fullPath = root === '/' ? path : `${root}${path}`;
	return fullPath.isWellFormed() ? fullPath : pathToBytes(fullPath);
}

function invalidPathError(): FileError {
	return new FileError('invalid', 'the path is malformed');
}

/** Returns the bytes of a path in which U+DC80 to U+DCFF stand for bytes that are not UTF-8. */
function pathToBytes(path: string): Buffer {
	const byteParts: Buffer[] = [];
	let partStart = 0;
	for (let at = 0; at < path.length; at++) {
		const unit = path.charCodeAt(at);
		if (unit < 0xd800 || unit > 0xdfff) continue;
		if (unit < 0xdc00 && at + 1 < path.length && (path.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
			at += 1;
			continue;
		}
		if (unit < 0xdc80 || unit > 0xdcff) throw invalidPathError();
		byteParts.push(Buffer.from(path.slice(partStart, at)), Buffer.from([unit & 0xff]));
		partStart = at + 1;
	}
	byteParts.push(Buffer.from(path.slice(partStart)));
	return Buffer.concat(byteParts);
}

/** Decodes a path that has one Latin-1 character per byte. */
function pathFromBytes(path: string): string {
	for (let i = 0; i < path.length; i++) {
		if (path.charCodeAt(i) > 0x7f) return Buffer.from(path, 'latin1').toString('utf8');
	}
	return path;
}

/** Returns `/x/y` if `realPath` is `root/x/y`, `/` if it is the root itself, and undefined if it is elsewhere. */
function pathWithin(root: string, realPath: string): string | undefined {
	if (realPath === root) return '/';
	if (root === '/') return realPath;
	return realPath.startsWith(root) && realPath[root.length] === '/' ? realPath.slice(root.length) : undefined;
}

/** Returns the real path of an open file, one Latin-1 character per byte; undefined if it cannot be determined reliably. */
function realPathOf(descriptor: number, path: string | Buffer): string | undefined {
	try {
		return withoutDeletedSuffix(readlinkSync(`/proc/self/fd/${descriptor}`, 'latin1'), descriptor);
	} catch {
		// Without /proc, the name is used only if it still refers to the open file.
	}
	try {
		const realPath = realpathSync.native(path, 'latin1');
		const namedStats = statSync(Buffer.from(realPath, 'latin1'), { bigint: true });
		const openedStats = fstatSync(descriptor, { bigint: true });
		return namedStats.ino === openedStats.ino && namedStats.dev === openedStats.dev ? realPath : undefined;
	} catch {
		return undefined;
	}
}

/** Removes the suffix by which Linux marks the path of a file that was removed or replaced since it was opened. */
function withoutDeletedSuffix(realPath: string, descriptor: number): string {
	const suffix = ' (deleted)';
	if (!realPath.endsWith(suffix)) return realPath;
	return fstatSync(descriptor).nlink === 0 ? realPath.slice(0, -suffix.length) : realPath;
}

function toFileError(error: unknown): FileError {
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
