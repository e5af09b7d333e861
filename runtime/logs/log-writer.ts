/** Writes log lines to a descriptor without ever making the main thread wait for it. */
import { closeSync, write } from 'node:fs';
import { LogQueue } from './log-queue.ts';

/** Where log text goes. */
export interface LogWriter {
	/** Settles when it is known whether it can write at all; rejects when it cannot. Undefined: it can. */
	readonly opened?: Promise<void>;
	/** Takes whole lines; false when they were dropped because earlier ones are not written yet. */
	write(text: string): boolean;
	/** As `write`, of UTF-8 in memory that is the caller's again once `done` is called: at once when it was dropped. */
	writeBytes?(bytes: Buffer, done: () => void): boolean;
	/** Resolves when everything taken so far is written, or has failed. */
	flush(): Promise<void>;
	/** Writes what is left, then closes. */
	close(): Promise<void>;
}

/** Milliseconds until a descriptor that takes nothing is tried again. */
const RETRY = 10;

/** Appends to a file descriptor, one write at a time, on the thread pool: a pipe that nobody reads blocks nothing here. */
export class DescriptorWriter implements LogWriter {
	readonly #descriptor: number;
	readonly #owned: boolean;
	readonly #queue = new LogQueue();
	#writing: Promise<void> | undefined;

	/** `owned` descriptors are closed with the writer. */
	constructor(descriptor: number, owned: boolean) {
		this.#descriptor = descriptor;
		this.#owned = owned;
	}

	write(text: string): boolean {
		if (!this.#queue.add(text)) return false;
		this.#writing ??= this.#drain();
		return true;
	}

	writeBytes(bytes: Buffer, done: () => void): boolean {
		if (!this.#queue.addBytes(bytes, done)) return false;
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
		for (let next = this.#queue.take(); next !== undefined; next = this.#queue.take()) {
			await writeAll(this.#descriptor, next.bytes);
			next.done();
		}
		this.#writing = undefined;
	}
}

/** Discards everything. */
export const DISCARD: LogWriter = {
	write: () => true,
	writeBytes: (_, done) => {
		done();
		return true;
	},
	flush: async () => {},
	close: async () => {},
};

/** Writes all bytes to a descriptor; resolves in the end, whatever came of it. */
export function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
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
