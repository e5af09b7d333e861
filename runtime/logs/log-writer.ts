/** Writes log lines to a descriptor without ever making the main thread wait for it. */
import { chmodSync, closeSync, existsSync, fchmodSync, mkdirSync, openSync, statSync, write } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Where log text goes. */
export interface LogWriter {
	/** Takes whole lines; false when they were dropped because earlier ones are not written yet. */
	write(text: string): boolean;
	/** Resolves when everything taken so far is written, or has failed. */
	flush(): Promise<void>;
	/** Writes what is left, then closes. */
	close(): Promise<void>;
}

/** Bytes of text that may wait. */
const QUEUE_LIMIT = 8 * 1024 * 1024;
/** Milliseconds until a descriptor that takes nothing is tried again. */
const RETRY = 10;

/** Appends to a file descriptor, one write at a time, on the thread pool: a pipe that nobody reads blocks nothing here. */
export class DescriptorWriter implements LogWriter {
	readonly #descriptor: number;
	readonly #owned: boolean;
	#queue: string[] = [];
	#queued = 0;
	#writing: Promise<void> | undefined;

	/** `owned` descriptors are closed with the writer. */
	constructor(descriptor: number, owned: boolean) {
		this.#descriptor = descriptor;
		this.#owned = owned;
	}

	write(text: string): boolean {
		if (this.#queued > QUEUE_LIMIT) return false;
		this.#queue.push(text);
		this.#queued += text.length;
		this.#writing ??= this.#drain();
		return true;
	}

	async flush(): Promise<void> {
		await this.#writing;
	}

	async close(): Promise<void> {
		await this.flush();
		if (this.#owned) closeSync(this.#descriptor);
	}

	async #drain(): Promise<void> {
		while (this.#queue.length > 0) {
			const text = this.#queue.join('');
			this.#queue = [];
			await writeAll(this.#descriptor, Buffer.from(text));
			this.#queued -= text.length;
		}
		this.#writing = undefined;
	}
}

/** Discards everything. */
export const DISCARD: LogWriter = { write: () => true, flush: async () => {}, close: async () => {} };

/**
 * Opens a log file for appending. Modes are octal: that of the file (600 if left out) holds for one that is there already
 * too; that of folders (700 if left out) may be `inherit`, as the folder above, or `from_file`, with the right to enter
 * where the file can be read. Throws the system's error.
 */
export function openLogFile(path: string, workingDirectory: string, mode?: string, folderMode?: string): LogWriter {
	const absolute = resolve(workingDirectory, path);
	const fileMode = mode === undefined ? 0o600 : Number.parseInt(mode, 8);
	makeFolder(dirname(absolute), above => {
		if (folderMode === 'inherit') return statSync(above).mode & 0o777;
		if (folderMode === 'from_file') return fileMode | ((fileMode & 0o444) >> 2);
		return folderMode === undefined ? 0o700 : Number.parseInt(folderMode, 8);
	});
	const descriptor = openSync(absolute, 'a', fileMode);
	// The process's mask took some of it away, or the file was there before.
	if (mode !== undefined) fchmodSync(descriptor, fileMode);
	return new DescriptorWriter(descriptor, true);
}

/** Makes a folder and those above it. Node's own recursive form never returns where the system says ENOENT to a child of a folder that exists, as /proc does. */
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

function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
	return new Promise(done => {
		const next = (offset: number): void => {
			write(descriptor, bytes, offset, bytes.length - offset, null, (error, written) => {
				if (error && (error.code === 'EAGAIN' || error.code === 'EINTR')) {
					setTimeout(next, RETRY, offset);
				} else if (error || offset + written >= bytes.length) {
					// A log that cannot be written (a closed pipe, a full disk) must not end the server.
					done();
				} else next(offset + written);
			});
		};
		next(0);
	});
}
