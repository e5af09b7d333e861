/** Writes log lines to a descriptor without ever making the main thread wait for it. */
import { closeSync, existsSync, mkdirSync, openSync, write } from 'node:fs';
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

/** Opens a log file for appending: mode 600, folders made with 700. Throws the system's error. */
export function openLogFile(path: string, workingDirectory: string): LogWriter {
	const absolute = resolve(workingDirectory, path);
	makeFolder(dirname(absolute));
	return new DescriptorWriter(openSync(absolute, 'a', 0o600), true);
}

/** Makes a folder and those above it. Node's own recursive form never returns where the system says ENOENT to a child of a folder that exists, as /proc does. */
function makeFolder(path: string): void {
	if (existsSync(path)) return;
	const parent = dirname(path);
	if (parent !== path) makeFolder(parent);
	try {
		mkdirSync(path, { mode: 0o700 });
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
