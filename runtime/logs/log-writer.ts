/** Writes log lines to a descriptor without ever making the main thread wait for it. */
import type { write } from 'node:fs';
import { LineWrites } from './line-writes.ts';
import { type LineKind, linesIn, NO_EVENTS, TOO_SLOW, type WriterEvents } from './log-losses.ts';
import { LogQueue } from './log-queue.ts';

/** Where log text goes. */
export interface LogWriter {
	/** Settles when it is known whether it can write at all; rejects when it cannot. Undefined: it can. */
	readonly opened?: Promise<void>;
	/** Takes whole lines, those of the process log unless `kind` says otherwise; false when they were dropped because earlier ones are not written yet. */
	write(text: string, kind?: LineKind): boolean;
	/** As `write`, of UTF-8 of access logs in memory that is the caller's again once `done` is called: at once when it was dropped. */
	writeBytes?(bytes: Buffer, done: () => void): boolean;
	/** Resolves when everything taken so far is written, or has failed. */
	flush(): Promise<void>;
	/** Writes what is left, then closes. */
	close(): Promise<void>;
}

/** What tests put in the place of the system. */
export interface WriterOptions {
	readonly events?: WriterEvents | undefined;
	readonly write?: typeof write | undefined;
}

/** Takes lines and writes them one batch at a time, on the thread pool: a pipe that nobody reads blocks nothing here. */
export abstract class QueuedWriter implements LogWriter {
	protected readonly events: WriterEvents;
	protected readonly lines: LineWrites;
	protected readonly queue: LogQueue = new LogQueue();
	#writing: Promise<void> | undefined;

	constructor({ events = NO_EVENTS, write }: WriterOptions) {
		this.events = events;
		this.lines = new LineWrites(events, write);
	}

	write(text: string, kind: LineKind = 'process'): boolean {
		if (this.queue.add(text, kind)) {
			this.work();
			return true;
		}
		this.events.lost(linesIn(Buffer.from(text)), kind, TOO_SLOW);
		return false;
	}

	writeBytes(bytes: Buffer, done: () => void): boolean {
		if (this.queue.addBytes(bytes, done)) {
			this.work();
			return true;
		}
		this.events.lost(linesIn(bytes), 'access', TOO_SLOW);
		done();
		return false;
	}

	async flush(): Promise<void> {
		await this.#writing;
	}

	async close(): Promise<void> {
		await this.flush();
		this.lines.forget();
	}

	/** Writes what waits. */
	protected abstract drain(): Promise<void>;

	/** Starts writing unless that is under way; resolves when it is over. */
	protected work(): Promise<void> {
		this.#writing ??= this.#run();
		return this.#writing;
	}

	async #run(): Promise<void> {
		do await this.drain();
		while (!this.queue.isEmpty);
		this.#writing = undefined;
	}

	/** Whether writing is under way. */
	protected get isWorking(): boolean {
		return this.#writing !== undefined;
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
		for (let next = this.queue.take(); next !== undefined; next = this.queue.take()) {
			await this.lines.write(this.#descriptor, next.bytes, next.kind);
			next.done();
		}
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
