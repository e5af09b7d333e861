/** Writes log lines to a descriptor without blocking the main thread. */
import type { write } from 'node:fs';
import { LineWrites } from './line-writes.ts';
import { countLines, IGNORED_WRITER_EVENTS, type LineKind, LOSS_TOO_SLOW, type WriterEvents } from './log-losses.ts';
import { LogQueue } from './log-queue.ts';

/** A destination of log text. */
export interface LogWriter {
	/** Resolves once the writer can write, and rejects if it cannot. Undefined if it can write already. */
	readonly whenOpened?: Promise<void>;
	/**
	 * Accepts whole lines, by default of the process log. Returns false if they were dropped because earlier lines have not been
	 * written yet.
	 */
	write(text: string, kind?: LineKind): boolean;
	/**
	 * Accepts whole lines of access logs, like `write`, as UTF-8. The caller may reuse the memory once `done` is called. If the
	 * lines are dropped, `done` is called at once.
	 */
	writeBytes?(bytes: Buffer, done: () => void): boolean;
	/** Resolves when everything accepted so far has been written or has failed. */
	flush(): Promise<void>;
	/** Writes everything accepted so far, then closes. */
	close(): Promise<void>;
}

/** Options of a writer besides its settings. Tests replace `write`. */
export interface WriterOptions {
	readonly events?: WriterEvents | undefined;
	/** Whether files may be rolled at the moment. */
	readonly rolling?: { readonly allowed: boolean } | undefined;
	readonly write?: typeof write | undefined;
}

/**
 * Queues lines and writes them one batch at a time, on the thread pool, so that a pipe without a reader does not block this
 * thread.
 */
export abstract class QueuedWriter implements LogWriter {
	protected readonly events: WriterEvents;
	protected readonly lines: LineWrites;
	protected readonly queue: LogQueue = new LogQueue();
	#currentRun: Promise<void> | undefined;

	constructor({ events = IGNORED_WRITER_EVENTS, write }: WriterOptions) {
		this.events = events;
		this.lines = new LineWrites(events, write);
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (this.queue.addLines(text, kind)) {
			this.startWriting();
			return true;
		}
		this.events.onLost(countLines(Buffer.from(text)), kind, LOSS_TOO_SLOW);
		return false;
	}

	writeBytes(bytes: Buffer, done: () => void): boolean {
		if (this.queue.addBytes(bytes, done)) {
			this.startWriting();
			return true;
		}
		this.events.onLost(countLines(bytes), 'access', LOSS_TOO_SLOW);
		done();
		return false;
	}

	async flush(): Promise<void> {
		await this.#currentRun;
	}

	async close(): Promise<void> {
		await this.flush();
		this.lines.discardPartialLine();
	}

	/** Writes everything queued. */
	protected abstract drain(): Promise<void>;

	/** Starts writing unless it is already in progress. Resolves when everything has been written. */
	protected startWriting(): Promise<void> {
		this.#currentRun ??= this.#run();
		return this.#currentRun;
	}

	async #run(): Promise<void> {
		do await this.drain();
		while (!this.queue.isEmpty);
		this.#currentRun = undefined;
	}

	protected get isWriting(): boolean {
		return this.#currentRun !== undefined;
	}
}

/** Appends to a file descriptor of the process. */
export class DescriptorWriter extends QueuedWriter {
	readonly #descriptor: number;

	constructor(descriptor: number, options: WriterOptions = {}) {
		super(options);
		this.#descriptor = descriptor;
	}

	protected async drain(): Promise<void> {
		for (let chunk = this.queue.takeChunk(); chunk !== undefined; chunk = this.queue.takeChunk()) {
			await this.lines.write(this.#descriptor, chunk.bytes, chunk.kind);
			chunk.done();
		}
	}
}

export const DISCARDING_WRITER: LogWriter = {
	write: () => true,
	writeBytes: (_, done) => {
		done();
		return true;
	},
	flush: async () => {},
	close: async () => {},
};
