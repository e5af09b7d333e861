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
import { linesIn } from './log-losses.ts';
import type { QueuedChunk } from './log-queue.ts';
import { type LogWriter, QueuedWriter, type WriterOptions } from './log-writer.ts';
import { nextRoll } from './roll-times.ts';
import { RolledFiles } from './rolled-files.ts';

/** Milliseconds between checks whether the name still refers to the file. */
const LOOK_INTERVAL = 1000;
/** Maximum delay of a timer in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;
const NEWLINE = 10;
/** Opening must not block: a named pipe without a reader is then an error, and one whose reader has stopped is temporarily full. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

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
 * Returns the system's error code for a reason why a log file cannot be written, as far as that can be seen without creating it;
 * undefined if there is no such reason.
 */
export function logFileProblem(path: string, workingDirectory: string): string | undefined {
	const file = resolve(workingDirectory, path);
	try {
		const found = statSync(file, { throwIfNoEntry: false });
		if (found?.isDirectory()) return 'EISDIR';
		// Missing folders will be created, so the nearest folder that exists is checked.
		let last = file;
		while (!existsSync(last)) last = dirname(last);
		if (last !== file && !statSync(last).isDirectory()) return 'ENOTDIR';
		accessSync(last, last === file ? constants.W_OK : constants.W_OK | constants.X_OK);
		return undefined;
	} catch (error) {
		return (error as NodeJS.ErrnoException).code ?? 'EIO';
	}
}

class FileWriter extends QueuedWriter {
	readonly #path: string;
	readonly #settings: FileOutput;
	readonly #mode: number;
	readonly #limit: number;
	readonly #rolled: RolledFiles | undefined;
	readonly #rolling: { readonly allowed: boolean };
	#descriptor: number;
	/** False for pipes and devices, which are not rolled. */
	#isFile = true;
	#size = 0;
	#opened = 0;
	#looked = 0;
	#next = Number.POSITIVE_INFINITY;
	#timer: NodeJS.Timeout | undefined;
	#closed = false;

	constructor(path: string, settings: FileOutput, options: WriterOptions) {
		super(options);
		const { mode, rolling = {} } = settings;
		this.#path = path;
		this.#settings = settings;
		this.#rolling = options.rolling ?? { allowed: true };
		this.#mode = mode === undefined ? 0o600 : Number.parseInt(mode, 8);
		this.#limit = rolling === false ? Number.POSITIVE_INFINITY : (rolling.size ?? ROLLING_DEFAULTS.size);
		this.#rolled = rolling === false ? undefined : new RolledFiles(path, rolling, this.#mode);
		makeFolder(dirname(path), above => this.#folderMode(above));
		if (this.#rolling.allowed) this.#rolled?.finish();
		this.#descriptor = this.#open();
		if (this.#rolling.allowed && this.#isFile && this.#size > 0) endLine(path, this.#size, this.#descriptor);
		// Files that an earlier process rolled are compressed now if that process did not get to it.
		if (this.#rolling.allowed) void this.#rolled?.tidy();
	}

	override async close(): Promise<void> {
		this.#closed = true;
		await super.close();
		clearTimeout(this.#timer);
		closeSync(this.#descriptor);
	}

	/** Opens the file for appending and records its identity. */
	#open(): number {
		const descriptor = openSync(this.#path, APPEND, this.#mode);
		// The umask may have removed permissions, or the file already existed.
		if (this.#settings.mode !== undefined) fchmodSync(descriptor, this.#mode);
		const facts = fstatSync(descriptor);
		this.#isFile = facts.isFile();
		this.#size = facts.size;
		const now = Date.now();
		this.#looked = now;
		// A file created by an earlier process keeps its age.
		this.#opened = facts.size === 0 ? now : facts.birthtimeMs || now;
		this.#schedule(now);
		return descriptor;
	}

	#schedule(now: number): void {
		const { rolling = {} } = this.#settings;
		clearTimeout(this.#timer);
		if (rolling === false || !this.#isFile) return;
		this.#next = nextRoll(rolling, this.#opened, now);
		if (this.#next === Number.POSITIVE_INFINITY) return;
		// Rolls the file on time even if nothing is written.
		this.#timer = setTimeout(() => this.#due(), Math.min(Math.max(0, this.#next - now), LONGEST_TIMER)).unref();
	}

	/** Rolls the file if the time has come. Timers may fire slightly early, and a distant time needs several timers. */
	#due(): void {
		if (this.#closed) return;
		const now = Date.now();
		if (now < this.#next) this.#schedule(now);
		else if (this.isWorking) void this.flush().then(() => this.#due());
		else void this.work();
	}

	protected async drain(): Promise<void> {
		if (this.#lookIsDue()) await this.#look();
		for (let next = this.queue.take(); next !== undefined; next = this.queue.take()) {
			await this.#append(next);
			next.done();
			if (this.#lookIsDue()) await this.#look();
		}
	}

	/** Writes whole lines, rolling the file before one that does not fit. */
	async #append({ bytes, kind }: QueuedChunk): Promise<void> {
		let rest = bytes;
		while (rest.length > 0) {
			let end = rest.length;
			if (this.#size + end > this.#limit && this.#isFile) {
				const room = this.#limit - this.#size;
				end = room > 0 ? rest.lastIndexOf(NEWLINE, room - 1) + 1 : 0;
				if (end === 0 && this.#size > 0) {
					this.#roll();
					continue;
				}
				// A line longer than the maximum size gets a file of its own.
				if (end === 0) end = rest.indexOf(NEWLINE) + 1 || rest.length;
			}
			const piece = rest.subarray(0, end);
			rest = rest.subarray(end);
			const { written, failed } = await this.lines.write(this.#descriptor, piece, kind, torn => this.#cutBack(torn));
			this.#size += written;
			if (failed === undefined) continue;
			this.events.lost(linesIn(rest), kind, failed);
			return;
		}
	}

	#cutBack(torn: Buffer): boolean {
		return this.#isFile && removeEndOfFile(this.#path, this.#descriptor, torn);
	}

	#lookIsDue(): boolean {
		const now = Date.now();
		return now >= this.#next || now - this.#looked >= LOOK_INTERVAL;
	}

	/** Rolls the file if the time has come, and reopens it if another program has renamed or truncated it. */
	async #look(): Promise<void> {
		const now = Date.now();
		if (now >= this.#next) {
			if (this.#size > 0) this.#roll();
			else {
				this.#opened = now;
				this.#schedule(now);
			}
		}
		if (now - this.#looked < LOOK_INTERVAL) return;
		this.#looked = now;
		const named = await stat(this.#path).catch(() => undefined);
		const own = fstatSync(this.#descriptor);
		if (named && named.ino === own.ino && named.dev === own.dev) this.#size = own.size;
		else this.#reopen();
	}

	/** Renames the file and creates a new one. If that fails, the file keeps growing. */
	#roll(): void {
		const now = Date.now();
		// Another process rolls the file. The new file is found when the name is checked.
		if (!this.#rolling.allowed) {
			this.#growOn(now);
			return;
		}
		try {
			for (let attempt = 0; ; attempt++) {
				try {
					const name = this.#rolled!.nameAt(now, attempt);
					if (this.#rolled!.wasCompressed(name)) throw Object.assign(new Error(name), { code: 'EEXIST' });
					// Uses a link, because renaming would replace an existing file of that name.
					linkSync(this.#path, name);
					break;
				} catch (error) {
					if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt === 99) throw error;
				}
			}
			unlinkSync(this.#path);
		} catch {
			this.#growOn(now);
			return;
		}
		this.#reopen();
		void this.#rolled!.tidy();
	}

	/** Continues with the same file as if it were new. */
	#growOn(now: number): void {
		this.#size = 0;
		this.#opened = now;
		this.#schedule(now);
	}

	#reopen(): void {
		const before = this.#descriptor;
		try {
			makeFolder(dirname(this.#path), above => this.#folderMode(above));
			this.#descriptor = this.#open();
			this.lines.forget();
			closeSync(before);
		} catch {
			// The folder is gone, or no descriptor is free: keeps writing to the old file.
			this.#descriptor = before;
			this.#size = 0;
			this.#schedule(Date.now());
		}
	}

	#folderMode(above: string): number {
		const { dir_mode } = this.#settings;
		if (dir_mode === 'inherit') return statSync(above).mode & 0o777;
		if (dir_mode === 'from_file') return this.#mode | ((this.#mode & 0o444) >> 2);
		return dir_mode === undefined ? 0o700 : Number.parseInt(dir_mode, 8);
	}
}

/** Completes a line that a killed process left incomplete, so that the next line is not joined to it. */
function endLine(path: string, size: number, descriptor: number): void {
	const last = Buffer.alloc(1);
	try {
		const reader = openSync(path, 'r');
		try {
			if (readSync(reader, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE) writeSync(descriptor, '\n');
		} finally {
			closeSync(reader);
		}
	} catch {
		// A file that can be written but not read is left as it is.
	}
}

/** Creates a folder and its parents. Node's recursive option never returns if the system reports ENOENT below an existing folder, as in /proc. */
function makeFolder(path: string, modeBelow: (above: string) => number): void {
	if (existsSync(path)) return;
	const parent = dirname(path);
	if (parent !== path) makeFolder(parent, modeBelow);
	try {
		const mode = modeBelow(parent);
		mkdirSync(path, { mode });
		chmodSync(path, mode);
	} catch (error) {
		if ((error as { code?: string }).code !== 'EEXIST') throw error;
	}
}
