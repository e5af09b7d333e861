/** Writes log lines to a descriptor without ever making the main thread wait for it. */
import { closeSync, write } from 'node:fs';

/** Where log text goes. */
export interface LogWriter {
	/** Settles when it is known whether it can write at all; rejects when it cannot. Undefined: it can. */
	readonly opened?: Promise<void>;
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
