/** The main thread's side of account files: reads them again when they change, once for all threads. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import {
	AccountFileError,
	MAX_ACCOUNT_FILE_BYTES,
	parseAccountFile,
} from '../../compiler/modules/directives/basic-auth/account-file.ts';
import type { LogLevel } from '../logs/log-entry.ts';

/** Minimum milliseconds between two checks of a file. */
export const ACCOUNT_CHECK_INTERVAL_MS = 1000;
/** If a file is modified twice within this many milliseconds, its modification time may be the same both times. */
const MTIME_SETTLING_MS = 100;
/** Maximum number of files to remember. */
const MAX_KNOWN_FILES = 256;

/** A thread's request for the current version of a file. */
export interface AccountFileQuestion {
	readonly path: string;
	/** The version that the thread has; 0 if it has none. */
	readonly version: number;
}

/** The last valid version of a file; 0 if there has been none. The contents are omitted if the thread already has them. */
export interface AccountFileAnswer {
	readonly version: number;
	readonly bytes: Uint8Array | undefined;
}

/** Writes an entry to the process log. */
export type AccountFileLog = (
	level: LogLevel,
	logger: string,
	message: string,
	fields: { readonly [name: string]: unknown },
) => void;

interface KnownFile {
	/** Inode, size and times of the file when it was last read; '' if it must be read again at the next check. */
	lastState: string;
	version: number;
	bytes: Uint8Array | undefined;
	/** Time of the last check, by `performance.now()`. */
	checkedAt: number;
	pendingCheck: Promise<void> | undefined;
	/** The last failure that was logged; undefined if there is none. */
	lastLoggedFailure: string | undefined;
}

/** Reads account files for all threads. */
export class AccountFiles {
	readonly #filesByPath = new Map<string, KnownFile>();
	readonly #log: AccountFileLog;
	#lastVersion = 0;

	constructor(log: AccountFileLog) {
		this.#log = log;
	}

	/** Resolves to the last valid version of a file. Checks the file first if its last check is too long ago. Never rejects. */
	async answer({ path, version }: AccountFileQuestion): Promise<AccountFileAnswer> {
		const existingFile = this.#filesByPath.get(path);
		const file = existingFile ?? createKnownFile();
		// Moves the file to the end, because files are ordered by their last use.
		this.#filesByPath.delete(path);
		this.#filesByPath.set(path, file);
		if (this.#filesByPath.size > MAX_KNOWN_FILES) this.#filesByPath.delete(this.#filesByPath.keys().next().value!);
		if (performance.now() - file.checkedAt >= ACCOUNT_CHECK_INTERVAL_MS / 2) {
			file.pendingCheck ??= this.#checkFile(path, file).finally(() => {
				file.pendingCheck = undefined;
			});
			await file.pendingCheck;
		}
		return { version: file.version, bytes: file.version === version ? undefined : file.bytes };
	}

	async #checkFile(path: string, file: KnownFile): Promise<void> {
		let handle: FileHandle | undefined;
		try {
			// Without O_NONBLOCK, opening a pipe that nobody writes to would never end.
			handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
			// The state is determined before reading, so that the next check notices a change during the read.
			const stats = await handle.stat({ bigint: true });
			if (!stats.isFile()) throw new AccountFileError('auth/htpasswd-unreadable', 'it is not a regular file');
			const { dev, ino, size, mtimeNs, ctimeNs } = stats;
			const newState = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
			if (newState === file.lastState) return;
			const bytes = await readBounded(handle);
			// The state is stored before parsing, which throws for an invalid file, so that an invalid file is not parsed again at each
			// check.
			const isSettled = Math.abs(Date.now() - Number(ctimeNs / 1_000_000n)) > MTIME_SETTLING_MS;
			file.lastState = isSettled ? newState : '';
			parseAccountFile(bytes, path);
			file.lastLoggedFailure = undefined;
			if (file.bytes && Buffer.compare(bytes, file.bytes) === 0) return;
			const message = file.bytes ? 'the file of accounts was read again' : 'the file of accounts was read';
			file.bytes = bytes;
			file.version = ++this.#lastVersion;
			this.#log('info', 'passwords', message, { path });
		} catch (error) {
			const { message, hint } = error as AccountFileError | (Error & { readonly hint?: undefined });
			if (!(error instanceof AccountFileError && error.code === 'auth/htpasswd-invalid')) file.lastState = '';
			if (file.lastLoggedFailure === message) return;
			file.lastLoggedFailure = message;
			const consequence = file.bytes ? 'its previous version stays in use' : 'nobody can log in';
			this.#log('error', 'passwords', `the file of accounts cannot be used; ${consequence}`, {
				path,
				error: message,
				...(hint === undefined ? {} : { hint }),
			});
		} finally {
			await handle?.close().catch(() => undefined);
			file.checkedAt = performance.now();
		}
	}
}

/** Reads a file from its start, up to one byte beyond the maximum size, so that a larger file is noticed. */
async function readBounded(handle: FileHandle): Promise<Uint8Array> {
	const buffer = new Uint8Array(MAX_ACCOUNT_FILE_BYTES + 1);
	let filledBytes = 0;
	while (filledBytes < buffer.length) {
		const { bytesRead } = await handle.read(buffer, filledBytes, buffer.length - filledBytes, filledBytes);
		if (bytesRead === 0) break;
		filledBytes += bytesRead;
	}
	return buffer.slice(0, filledBytes);
}

function createKnownFile(): KnownFile {
	return {
		lastState: '',
		version: 0,
		bytes: undefined,
		checkedAt: Number.NEGATIVE_INFINITY,
		pendingCheck: undefined,
		lastLoggedFailure: undefined,
	};
}
