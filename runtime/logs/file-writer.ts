/**
 * Appends to a log file without blocking the main thread, rolls it between two lines by size or time, and reopens it after
 * another program has renamed it.
 */
import {
	accessSync,
	chmodSync,
	closeSync,
	constants,
	existsSync,
	fchmodSync,
	fstatSync,
	linkSync,
	mkdirSync,
	openSync,
	readSync,
	statSync,
	unlinkSync,
	writeSync,
} from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { FileOutput } from '../../compiler/document/log-settings.ts';
import { ROLLING_DEFAULTS } from '../../compiler/modules/providers/log-writers/file-output.ts';
import { removeEndOfFile } from './line-writes.ts';
import { countLines } from './log-losses.ts';
import type { QueuedChunk } from './log-queue.ts';
import { type LogWriter, QueuedWriter, type WriterOptions } from './log-writer.ts';
import { nextRoll } from './roll-times.ts';
import { RolledFiles } from './rolled-files.ts';

/** Milliseconds between checks whether the path still refers to the open file. */
const CHECK_INTERVAL_MS = 1000;
/** Maximum delay of a timer in milliseconds. A timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const NEWLINE_BYTE = 10;
/**
 * Flags with which opening and writing never block: opening a named pipe without a reader fails, and writing to a pipe whose
 * reader has stopped is retried.
 */
const APPEND_FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

/** Opens a log file. Throws the system's error. */
export function openLogFile(
	path: string,
	workingDirectory: string,
	settings: FileOutput = {},
	options: WriterOptions = {},
): LogWriter {
	return new FileWriter(resolve(workingDirectory, path), settings, options);
}

/**
 * Returns the system's error code if a log file cannot be written, as far as this is visible without creating the file; otherwise
 * undefined.
 */
export function logFileProblem(path: string, workingDirectory: string): string | undefined {
	const file = resolve(workingDirectory, path);
	try {
		const stats = statSync(file, { throwIfNoEntry: false });
		if (stats?.isDirectory()) return 'EISDIR';
		// Missing folders will be created, so the nearest folder that exists is checked.
		let nearestPath = file;
		while (!existsSync(nearestPath)) nearestPath = dirname(nearestPath);
		if (nearestPath !== file && !statSync(nearestPath).isDirectory()) return 'ENOTDIR';
		accessSync(nearestPath, nearestPath === file ? constants.W_OK : constants.W_OK | constants.X_OK);
		return undefined;
	} catch (error) {
		return codeOf(error);
	}
}

function codeOf(error: unknown): string {
	return (error as NodeJS.ErrnoException).code ?? 'EIO';
}

class FileWriter extends QueuedWriter {
	readonly #path: string;
	readonly #settings: FileOutput;
	readonly #mode: number;
	readonly #maxBytes: number;
	readonly #rolledFiles: RolledFiles | undefined;
	readonly #rollPermission: { readonly allowed: boolean };
	#descriptor: number;
	/** False for pipes and devices, which are not rolled. */
	#isRegularFile = true;
	#sizeBytes = 0;
	#openedAt = 0;
	#checkedAt = 0;
	#nextRollAt = Number.POSITIVE_INFINITY;
	#rollTimer: NodeJS.Timeout | undefined;
	#isClosed = false;

	constructor(path: string, settings: FileOutput, options: WriterOptions) {
		super(options);
		const { mode, rolling = {} } = settings;
		this.#path = path;
		this.#settings = settings;
		this.#rollPermission = options.rolling ?? { allowed: true };
		this.#mode = mode === undefined ? 0o600 : Number.parseInt(mode, 8);
		this.#maxBytes = rolling === false ? Number.POSITIVE_INFINITY : (rolling.size ?? ROLLING_DEFAULTS.size);
		this.#rolledFiles =
			rolling === false
				? undefined
				: new RolledFiles(path, rolling, this.#mode, code => this.events.onFileTask?.('clean_up', code));
		makeFolder(dirname(path), parent => this.#folderMode(parent));
		if (this.#rollPermission.allowed) this.#rolledFiles?.finishRoll();
		this.#descriptor = this.#openFile();
		if (this.#rollPermission.allowed && this.#isRegularFile && this.#sizeBytes > 0)
			completeLastLine(path, this.#sizeBytes, this.#descriptor);
		// Files that an earlier process rolled but did not compress are compressed now.
		if (this.#rollPermission.allowed) void this.#rolledFiles?.cleanUp();
	}

	override async close(): Promise<void> {
		this.#isClosed = true;
		await super.close();
		clearTimeout(this.#rollTimer);
		closeSync(this.#descriptor);
	}

	/** Opens the file for appending and records its identity. */
	#openFile(): number {
		const descriptor = openSync(this.#path, APPEND_FLAGS, this.#mode);
		// The umask may have removed permissions, or the file already existed.
		if (this.#settings.mode !== undefined) fchmodSync(descriptor, this.#mode);
		const stats = fstatSync(descriptor);
		this.#isRegularFile = stats.isFile();
		this.#sizeBytes = stats.size;
		const now = Date.now();
		this.#checkedAt = now;
		// The age of a file that an earlier process created is counted from its creation.
		this.#openedAt = stats.size === 0 ? now : stats.birthtimeMs || now;
		this.#scheduleRoll(now);
		return descriptor;
	}

	#scheduleRoll(now: number): void {
		const { rolling = {} } = this.#settings;
		clearTimeout(this.#rollTimer);
		if (rolling === false || !this.#isRegularFile) return;
		this.#nextRollAt = nextRoll(rolling, this.#openedAt, now);
		if (this.#nextRollAt === Number.POSITIVE_INFINITY) return;
		// Rolls the file on time even if nothing is written.
		this.#rollTimer = setTimeout(
			() => this.#rollIfDue(),
			Math.min(Math.max(0, this.#nextRollAt - now), MAX_TIMER_MS),
		).unref();
	}

	/**
	 * Rolls the file if the time for that has come, otherwise sets another timer. Timers may fire slightly early, and a distant time
	 * needs several timers.
	 */
	#rollIfDue(): void {
		if (this.#isClosed) return;
		const now = Date.now();
		if (now < this.#nextRollAt) this.#scheduleRoll(now);
		else if (this.isWriting) void this.flush().then(() => this.#rollIfDue());
		else void this.startWriting();
	}

	protected async drain(): Promise<void> {
		if (this.#isCheckDue()) await this.#checkFile();
		for (let chunk = this.queue.takeChunk(); chunk !== undefined; chunk = this.queue.takeChunk()) {
			await this.#appendLines(chunk);
			chunk.done();
			if (this.#isCheckDue()) await this.#checkFile();
		}
	}

	/** Writes whole lines. Rolls the file before a line that does not fit. */
	async #appendLines({ bytes, kind }: QueuedChunk): Promise<void> {
		let remainingBytes = bytes;
		while (remainingBytes.length > 0) {
			let endOffset = remainingBytes.length;
			if (this.#sizeBytes + endOffset > this.#maxBytes && this.#isRegularFile) {
				const roomBytes = this.#maxBytes - this.#sizeBytes;
				endOffset = roomBytes > 0 ? remainingBytes.lastIndexOf(NEWLINE_BYTE, roomBytes - 1) + 1 : 0;
				if (endOffset === 0 && this.#sizeBytes > 0) {
					this.#rollFile();
					continue;
				}
				// A line longer than the maximum size gets a file of its own.
				if (endOffset === 0) endOffset = remainingBytes.indexOf(NEWLINE_BYTE) + 1 || remainingBytes.length;
			}
			const linesToWrite = remainingBytes.subarray(0, endOffset);
			remainingBytes = remainingBytes.subarray(endOffset);
			const { written, errorCode } = await this.lines.write(this.#descriptor, linesToWrite, kind, partialLine =>
				this.#removePartialLine(partialLine),
			);
			this.#sizeBytes += written;
			if (errorCode === undefined) continue;
			this.events.onLost(countLines(remainingBytes), kind, errorCode);
			return;
		}
	}

	#removePartialLine(partialLine: Buffer): boolean {
		return this.#isRegularFile && removeEndOfFile(this.#path, this.#descriptor, partialLine);
	}

	#isCheckDue(): boolean {
		const now = Date.now();
		return now >= this.#nextRollAt || now - this.#checkedAt >= CHECK_INTERVAL_MS;
	}

	/** Rolls the file if the time has come, and reopens it if another program has renamed or truncated it. */
	async #checkFile(): Promise<void> {
		const now = Date.now();
		if (now >= this.#nextRollAt) {
			if (this.#sizeBytes > 0) this.#rollFile();
			else {
				this.#openedAt = now;
				this.#scheduleRoll(now);
			}
		}
		if (now - this.#checkedAt < CHECK_INTERVAL_MS) return;
		this.#checkedAt = now;
		const namedFile = await stat(this.#path).catch(() => undefined);
		const openFile = fstatSync(this.#descriptor);
		if (namedFile && namedFile.ino === openFile.ino && namedFile.dev === openFile.dev) this.#sizeBytes = openFile.size;
		else this.#reopenFile();
	}

	/** Renames the file and creates a new one. If either fails, the file keeps growing. */
	#rollFile(): void {
		const now = Date.now();
		// During a handover, the other process rolls the file. This process reopens its path at the next check, when it finds a new
		// file there.
		if (!this.#rollPermission.allowed) {
			this.#continueFile(now);
			return;
		}
		try {
			for (let attempt = 0; ; attempt++) {
				try {
					const rolledPath = this.#rolledFiles!.rolledPath(now, attempt);
					if (this.#rolledFiles!.wasCompressed(rolledPath))
						throw Object.assign(new Error(rolledPath), { code: 'EEXIST' });
					// Uses a link, because renaming would replace an existing file of that name.
					linkSync(this.#path, rolledPath);
					break;
				} catch (error) {
					if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt === 99) throw error;
				}
			}
			unlinkSync(this.#path);
		} catch (error) {
			this.events.onFileTask?.('roll', codeOf(error));
			this.#continueFile(now);
			return;
		}
		this.events.onFileTask?.('roll', undefined);
		this.#reopenFile();
		void this.#rolledFiles!.cleanUp();
	}

	/** Treats the current file as if it were new, so that the next roll is attempted only when it is due again. */
	#continueFile(now: number): void {
		this.#sizeBytes = 0;
		this.#openedAt = now;
		this.#scheduleRoll(now);
	}

	#reopenFile(): void {
		const oldDescriptor = this.#descriptor;
		try {
			makeFolder(dirname(this.#path), parent => this.#folderMode(parent));
			this.#descriptor = this.#openFile();
			this.lines.discardPartialLine();
			closeSync(oldDescriptor);
			this.events.onFileTask?.('reopen', undefined);
		} catch (error) {
			// The folder is gone or may not be written, or no descriptor is free: keeps writing to the old file.
			this.events.onFileTask?.('reopen', codeOf(error));
			this.#descriptor = oldDescriptor;
			this.#sizeBytes = 0;
			this.#scheduleRoll(Date.now());
		}
	}

	#folderMode(parent: string): number {
		const { dir_mode } = this.#settings;
		if (dir_mode === 'inherit') return statSync(parent).mode & 0o777;
		if (dir_mode === 'from_file') return this.#mode | ((this.#mode & 0o444) >> 2);
		return dir_mode === undefined ? 0o700 : Number.parseInt(dir_mode, 8);
	}
}

/** Completes a line that a killed process left incomplete, so that the next line is not joined to it. */
function completeLastLine(path: string, size: number, descriptor: number): void {
	const lastByte = Buffer.alloc(1);
	try {
		const reader = openSync(path, 'r');
		try {
			if (readSync(reader, lastByte, 0, 1, size - 1) === 1 && lastByte[0] !== NEWLINE_BYTE) writeSync(descriptor, '\n');
		} finally {
			closeSync(reader);
		}
	} catch {
		// A file that can be written but not read is left as it is.
	}
}

/**
 * Creates a folder and its parents. Node's recursive option never returns if the system reports ENOENT below an existing folder,
 * as in /proc.
 */
function makeFolder(path: string, modeOf: (parentPath: string) => number): void {
	if (existsSync(path)) return;
	const parent = dirname(path);
	if (parent !== path) makeFolder(parent, modeOf);
	try {
		const mode = modeOf(parent);
		mkdirSync(path, { mode });
		chmodSync(path, mode);
	} catch (error) {
		if ((error as { code?: string }).code !== 'EEXIST') throw error;
	}
}
