/** A store in a folder: files of mode 600 in folders of mode 700, written atomically by rename. */
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { FILE_REASONS } from '../files/system-reason.ts';
import { FencedStore } from './fenced-store.ts';
import { FileLocks } from './file-locks.ts';
import { checkKey, type Store, type StoreEntry, StoreError, type StoreKey, type StoreLock } from './store.ts';
import { removeIfAbandoned, UNFINISHED_SUFFIX, unfinishedName } from './unfinished-files.ts';
import { hasUnfinishedImport, IMPORT_FOLDER_PREFIX, IMPORT_LOCK, rollBackImports } from './unfinished-import.ts';

/** The folder of lock files in the store. */
export const LOCKS_FOLDER = 'locks';
/** Maximum bytes of a value to read. Keys and certificate chains have a few thousand bytes. */
const MAX_VALUE_BYTES: number = 16 * 1024 * 1024;

/** Opens the store in a folder. The folder is created on the first write. */
export function openFileStore(folder: string): Store {
	return new FileStore(path.resolve(folder));
}

class FileStore implements Store {
	readonly description: string;
	readonly #rootFolder: string;
	readonly #locks: FileLocks;

	constructor(root: string) {
		this.#rootFolder = root;
		this.description = `file_system ${root}`;
		this.#locks = new FileLocks(path.join(root, LOCKS_FOLDER), folder => this.#makeFolder(folder));
	}

	async read(key: StoreKey): Promise<Buffer | undefined> {
		let handle: FileHandle | undefined;
		try {
			// O_NOFOLLOW is set because other users may be able to write to the store. They must not make this process follow links
			// to files that they cannot read themselves.
			handle = await open(this.#fileOf(key), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
			const { size } = await handle.stat();
			if (size > MAX_VALUE_BYTES) throw new StoreError('store/unreadable', `\`${key}\` in the store is too large.`);
			return await handle.readFile();
		} catch (error) {
			if (isMissing(error)) return undefined;
			throw unreadableError(key, error);
		} finally {
			await handle?.close();
		}
	}

	async write(key: StoreKey, value: string | Uint8Array): Promise<void> {
		const file = this.#fileOf(key);
		const folder = path.dirname(file);
		const temporaryFile = unfinishedName(file);
		try {
			await this.#writeTemporary(folder, temporaryFile, value);
			await rename(temporaryFile, file);
			await syncFolder(folder);
		} catch (error) {
			await unlink(temporaryFile).catch(() => {});
			throw unwritableError(key, error);
		}
	}

	async remove(key: StoreKey): Promise<void> {
		const file = this.#fileOf(key);
		try {
			await rm(file, { recursive: true, force: true });
			// Removes empty parent folders. rmdir fails at the first folder that is not empty.
			for (let folder = path.dirname(file); folder.length > this.#rootFolder.length; folder = path.dirname(folder)) {
				await rmdir(folder);
			}
		} catch (error) {
			const { code } = error as NodeJS.ErrnoException;
			if (code === 'ENOTEMPTY' || code === 'EEXIST' || isMissing(error)) return;
			throw unwritableError(key, error);
		}
	}

	async list(prefix: StoreKey): Promise<StoreKey[]> {
		if (prefix !== '') checkKey(prefix);
		const keys: StoreKey[] = [];
		await this.#collectKeys(prefix, keys);
		return keys.sort();
	}

	async stat(key: StoreKey): Promise<StoreEntry | undefined> {
		try {
			const stats = await lstat(this.#fileOf(key));
			return stats.isFile() ? { key, size: stats.size, modified: stats.mtimeMs } : undefined;
		} catch (error) {
			if (isMissing(error)) return undefined;
			throw unreadableError(key, error);
		}
	}

	async recover(): Promise<void> {
		// Listing also removes the temporary files of processes that were killed while writing.
		await Promise.all([this.list('').catch(() => {}), this.#locks.removeAbandoned()]);
		if (!(await hasUnfinishedImport(this.#rootFolder))) return;
		const lock = await this.tryLock(IMPORT_LOCK);
		// If the lock is not free, its holder is importing or rolling back.
		if (!lock) return;
		try {
			await rollBackImports(this.#rootFolder);
		} catch (error) {
			throw new StoreError('store/unwritable', `An interrupted import cannot be rolled back: ${reasonOf(error)}.`);
		} finally {
			await lock.release();
		}
	}

	lock(name: string, signal?: AbortSignal): Promise<StoreLock> {
		return this.#locks.take(name, signal).catch(lockFailure);
	}

	tryLock(name: string): Promise<StoreLock | undefined> {
		return this.#locks.tryTake(name).catch(lockFailure);
	}

	fenced(lock: StoreLock): Store {
		return new FencedStore(this, lock);
	}

	#fileOf(key: StoreKey): string {
		checkKey(key);
		return path.join(this.#rootFolder, ...key.split('/'));
	}

	async #writeTemporary(folder: string, temporaryFile: string, value: string | Uint8Array): Promise<void> {
		const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
		const handle = await open(temporaryFile, flags, 0o600).catch(async error => {
			if (!isMissing(error)) throw error;
			await this.#makeFolder(folder);
			return open(temporaryFile, flags, 0o600);
		});
		try {
			// Sets the exact mode, because the umask may have removed some of the owner's permissions.
			await handle.chmod(0o600);
			await handle.writeFile(value);
			await handle.sync();
		} finally {
			await handle.close();
		}
	}

	async #makeFolder(folder: string): Promise<void> {
		await mkdir(folder, { recursive: true, mode: 0o700 });
	}

	async #collectKeys(prefix: StoreKey, keys: StoreKey[]): Promise<void> {
		const folder = path.join(this.#rootFolder, ...prefix.split('/'));
		let entries: import('node:fs').Dirent[];
		try {
			entries = await readdir(folder, { withFileTypes: true });
		} catch (error) {
			if (isMissing(error)) return;
			throw unreadableError(prefix, error);
		}
		for (const entry of entries) {
			if (prefix === '' && (entry.name === LOCKS_FOLDER || entry.name.startsWith(IMPORT_FOLDER_PREFIX))) continue;
			const key = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
			if (entry.isDirectory()) await this.#collectKeys(key, keys);
			else if (!entry.isFile()) continue;
			else if (entry.name.endsWith(UNFINISHED_SUFFIX)) await removeIfAbandoned(path.join(folder, entry.name));
			else keys.push(key);
		}
	}
}

/** Syncs a folder. Without this, a rename in the folder may not survive a crash. */
async function syncFolder(folder: string): Promise<void> {
	const handle = await open(folder, constants.O_RDONLY);
	try {
		await handle.sync();
	} catch {
		// Some file systems do not support syncing folders.
	} finally {
		await handle.close();
	}
}

function isMissing(error: unknown): boolean {
	const { code } = error as NodeJS.ErrnoException;
	return code === 'ENOENT' || code === 'ENOTDIR';
}

function unreadableError(key: StoreKey, error: unknown): StoreError {
	if (error instanceof StoreError) return error;
	return new StoreError('store/unreadable', `\`${key}\` in the store cannot be read: ${reasonOf(error)}.`);
}

function unwritableError(key: StoreKey, error: unknown): StoreError {
	if (error instanceof StoreError) return error;
	return new StoreError('store/unwritable', `\`${key}\` in the store cannot be written: ${reasonOf(error)}.`);
}

function lockFailure(error: unknown): never {
	if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
	throw new StoreError('store/unwritable', `The store cannot be locked: ${reasonOf(error)}.`);
}

function reasonOf(error: unknown): string {
	const { code, message } = error as NodeJS.ErrnoException;
	const reasons: { readonly [code: string]: string } = {
		...FILE_REASONS,
		EEXIST: 'a part of its path is not a folder',
		ELOOP: 'it is a symbolic link',
	};
	return reasons[code ?? ''] ?? code ?? message;
}
