/**
 * Restores a tar archive into a store. The archive is unpacked to a temporary folder and checked before any file of the store
 * changes. Replaced files are kept until the last new file is in place, so that an interrupted import can be rolled back.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, mkdtemp, open, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Parser, type ReadEntry } from 'tar';
import { ArchiveError } from './archive-error.ts';
import { LOCKS_FOLDER, openFileStore } from './file-store.ts';
import { checkKey, type Store, StoreError } from './store.ts';
import {
	deletePlan,
	hasPlan,
	IMPORT_FOLDER_PREFIX,
	IMPORT_LOCK,
	NEW_FILES_FOLDER,
	OLD_FILES_FOLDER,
	rollBackImports,
	writePlan,
} from './unfinished-import.ts';

/** Maximum size of one value in bytes. */
const MAX_VALUE_BYTES: number = 16 * 1024 * 1024;
/** Maximum size of all values in bytes. */
const MAX_ARCHIVE_BYTES: number = 2 * 1024 * 1024 * 1024;
const MAX_VALUES = 1_000_000;
const NOTHING_TO_RESTORE = 'The archive contains nothing to restore.';

export interface ImportTotals {
	readonly values: number;
	readonly bytes: number;
}

/**
 * Restores an archive. Values that are not in the archive are kept. If the promise rejects with {@link ArchiveError}, nothing has
 * changed.
 */
export async function importArchive(archive: AsyncIterable<Uint8Array>, folder: string): Promise<ImportTotals> {
	const lock = await openFileStore(folder).tryLock(IMPORT_LOCK);
	if (!lock) throw new ArchiveError('Another process is importing into this store.');
	const temporaryFolder = path.join(folder, `${IMPORT_FOLDER_PREFIX}${randomBytes(6).toString('hex')}`);
	try {
		await rollBackImports(folder);
		await mkdir(path.join(temporaryFolder, NEW_FILES_FOLDER), { recursive: true, mode: 0o700 });
		await mkdir(path.join(temporaryFolder, OLD_FILES_FOLDER), { mode: 0o700 });
		const unpackedArchive = await unpackArchive(archive, path.join(temporaryFolder, NEW_FILES_FOLDER));
		if (unpackedArchive.keys.length === 0) throw new ArchiveError(NOTHING_TO_RESTORE);
		await moveIntoPlace(unpackedArchive.keys, folder, temporaryFolder);
		return { values: unpackedArchive.keys.length, bytes: unpackedArchive.bytes };
	} catch (error) {
		throw toArchiveError(error);
	} finally {
		// If the plan still exists, the temporary folder contains the replaced files, and the next process that opens the store
		// rolls the import back.
		if (!(await hasPlan(temporaryFolder))) await rm(temporaryFolder, { recursive: true, force: true });
		await lock.release();
		// Removes the folder of locks, so that a store that was empty is left empty. If other processes hold locks, the folder stays.
		await rmdir(path.join(folder, LOCKS_FOLDER)).catch(() => {});
	}
}

/**
 * Restores an archive into a store that is not a folder. The whole archive is unpacked and checked before the first value is
 * written. If the store then fails, the import can be repeated.
 */
export async function importIntoStore(archive: AsyncIterable<Uint8Array>, store: Store): Promise<ImportTotals> {
	const temporaryFolder = await mkdtemp(path.join(tmpdir(), 'svc-import-'));
	try {
		const unpackedArchive = await unpackArchive(archive, temporaryFolder);
		if (unpackedArchive.keys.length === 0) throw new ArchiveError(NOTHING_TO_RESTORE);
		for (const key of unpackedArchive.keys)
			await store.write(key, await readFile(path.join(temporaryFolder, ...key.split('/'))));
		return { values: unpackedArchive.keys.length, bytes: unpackedArchive.bytes };
	} catch (error) {
		throw toArchiveError(error);
	} finally {
		await rm(temporaryFolder, { recursive: true, force: true });
	}
}

interface UnpackedArchive {
	readonly keys: readonly string[];
	readonly bytes: number;
}

/** Unpacks the archive entry by entry. The parser waits while a file is being written. */
async function unpackArchive(archive: AsyncIterable<Uint8Array>, folder: string): Promise<UnpackedArchive> {
	const keys = new Map<string, true>();
	let totalBytes = 0;
	let firstFailure: unknown;
	let pendingWrites: Promise<void> = Promise.resolve();
	const recordRefusal = (message: string): void => {
		firstFailure ??= new ArchiveError(message);
	};
	const onEntry = (entry: ReadEntry): void => {
		if (firstFailure !== undefined) {
			entry.resume();
			return;
		}
		try {
			const key = checkedKeyOf(entry);
			if (key === undefined) {
				entry.resume();
				return;
			}
			if (keys.has(key)) throw new ArchiveError(`The archive contains \`${key}\` more than once.`);
			if (entry.size > MAX_VALUE_BYTES) throw new ArchiveError(`\`${key}\` in the archive is too large.`);
			totalBytes += entry.size;
			if (totalBytes > MAX_ARCHIVE_BYTES || keys.size >= MAX_VALUES)
				throw new ArchiveError('The archive is too large.');
			keys.set(key, true);
			pendingWrites = pendingWrites.then(() => writeEntry(entry, path.join(folder, ...key.split('/'))));
			pendingWrites.catch(error => {
				firstFailure ??= error;
				entry.resume();
			});
		} catch (error) {
			firstFailure ??= error;
			entry.resume();
		}
	};
	const parser = new Parser({ strict: true, onReadEntry: onEntry });
	parser.on('ignoredEntry', (entry: ReadEntry) =>
		recordRefusal(`\`${printableName(entry.path)}\` in the archive has a type that a store cannot contain.`),
	);
	const parserEnd = new Promise<void>(resolve => {
		parser.on('error', (error: Error) => {
			recordRefusal(`The archive cannot be read: ${error.message.replace(/^TAR_\w+: |[.\s]+$/g, '')}.`);
			resolve();
		});
		parser.on('end', () => resolve());
	});
	let isFirstChunk = true;
	for await (const chunk of archive) {
		if (isFirstChunk) refuseCompressed(chunk);
		isFirstChunk = false;
		if (firstFailure !== undefined) break;
		if (!parser.write(Buffer.from(chunk))) {
			await Promise.race([new Promise<void>(resolve => parser.once('drain', () => resolve())), parserEnd]);
		}
	}
	if (isFirstChunk) recordRefusal(NOTHING_TO_RESTORE);
	if (firstFailure === undefined) {
		parser.end();
		await parserEnd;
	}
	await pendingWrites.catch(() => {});
	if (firstFailure !== undefined) throw firstFailure;
	return { keys: [...keys.keys()], bytes: totalBytes };
}

/** Returns the key of an entry; undefined for folders. Throws for entries that a store cannot contain. */
function checkedKeyOf(entry: ReadEntry): string | undefined {
	const { type } = entry;
	const name = printableName(entry.path);
	if (type !== 'File' && type !== 'OldFile' && type !== 'ContiguousFile' && type !== 'Directory') {
		throw new ArchiveError(`\`${name}\` in the archive is a ${entryKindText(type)}; a store can contain only files.`);
	}
	if (path.posix.isAbsolute(entry.path) || /^[A-Za-z]:/.test(entry.path)) {
		throw new ArchiveError(`\`${name}\` in the archive is an absolute path.`);
	}
	const segments = entry.path.replace(/^(?:\.\/)+/, '').split('/');
	if (segments.includes('..')) throw new ArchiveError(`\`${name}\` in the archive points outside the store.`);
	if (type === 'Directory') return undefined;
	const key = segments.join('/');
	try {
		checkKey(key);
	} catch {
		throw new ArchiveError(`\`${name}\` in the archive is not a valid key of a store.`);
	}
	if (key.startsWith('locks/') || key.startsWith(IMPORT_FOLDER_PREFIX)) {
		throw new ArchiveError(`\`${name}\` in the archive is reserved by the store.`);
	}
	return key;
}

async function writeEntry(entry: ReadEntry, file: string): Promise<void> {
	await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
	const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
	try {
		await handle.chmod(0o600);
		for await (const chunk of entry as AsyncIterable<Buffer>) await handle.writeFile(chunk);
		await handle.sync();
	} finally {
		await handle.close();
	}
}

/** Moves every file into place. If that fails midway, all replaced files are restored. */
async function moveIntoPlace(keys: readonly string[], folder: string, temporaryFolder: string): Promise<void> {
	await writePlan(temporaryFolder, keys);
	try {
		for (const [index, key] of keys.entries()) {
			const target = path.join(folder, ...key.split('/'));
			await makeFolders(folder, key);
			const existingFile = await lstat(target).catch(() => undefined);
			if (existingFile?.isDirectory()) throw new ArchiveError(`\`${key}\` is a folder in the store.`);
			if (existingFile) await rename(target, path.join(temporaryFolder, OLD_FILES_FOLDER, String(index)));
			await rename(path.join(temporaryFolder, NEW_FILES_FOLDER, ...key.split('/')), target);
		}
	} catch (error) {
		await rollBackImports(folder);
		throw error;
	}
	await deletePlan(temporaryFolder);
}

/** Creates the folders above a value. None of them may be a symbolic link, which could lead out of the store. */
async function makeFolders(root: string, key: string): Promise<void> {
	let folder = root;
	for (const segment of key.split('/').slice(0, -1)) {
		folder = path.join(folder, segment);
		await mkdir(folder, { mode: 0o700 }).catch(async error => {
			if (error.code !== 'EEXIST') throw error;
			const stats = await lstat(folder);
			if (!stats.isDirectory()) throw new ArchiveError(`\`${folder}\` is not a folder.`);
		});
	}
}

/** Rejects compressed archives, because their unpacked size is not known in advance. */
function refuseCompressed(chunk: Uint8Array): void {
	const [a, b, c, d] = chunk;
	const isGzip = a === 0x1f && b === 0x8b;
	const isZstd = a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd;
	const isBzip = a === 0x42 && b === 0x5a && c === 0x68;
	const isXz = a === 0xfd && b === 0x37 && c === 0x7a;
	if (isGzip || isZstd || isBzip || isXz) {
		throw new ArchiveError('The archive is compressed; decompress it first, for example by `gzip -dc`.');
	}
}

function entryKindText(type: string): string {
	const kinds: { readonly [type: string]: string } = {
		SymbolicLink: 'symbolic link',
		Link: 'link',
		CharacterDevice: 'device',
		BlockDevice: 'device',
		FIFO: 'pipe',
	};
	return kinds[type] ?? 'special entry';
}

function printableName(name: string): string {
	return name.replace(/\p{C}/gu, '?').slice(0, 200);
}

function toArchiveError(error: unknown): unknown {
	if (error instanceof ArchiveError || error instanceof StoreError) return error;
	const { code, path: file } = error as NodeJS.ErrnoException;
	if (code === undefined) return error;
	return new ArchiveError(`\`${file ?? 'The store'}\` cannot be written: ${code}.`);
}
