/** Collects the lines of one writer on one thread and posts them in batches: one message for many requests. */
import { MOST_OUTSTANDING } from '../threads/messages.ts';
import type { LineSink } from './access-log.ts';

/** Milliseconds that a line waits at most for others. */
const DELAY = 50;
/** Characters at which a batch is posted at once. */
const BATCH = 64 * 1024;

/** What a batch does with its text. */
export interface BatchPort {
	/** Posts lines to the main thread. */
	post(text: string, entries: number): void;
	/** Counts dropped entries. */
	dropped(entries: number): void;
	/** Int32 that counts the characters on their way: added to here, taken from when the main thread has them. */
	readonly outstanding: Int32Array;
	readonly outstandingSlot: number;
}

/** A batch of lines. */
export class AccessBatch implements LineSink {
	readonly #port: BatchPort;
	#text = '';
	#entries = 0;
	#timer: NodeJS.Timeout | undefined;

	constructor(port: BatchPort) {
		this.#port = port;
	}

	write(line: string): void {
		this.#text += line;
		this.#entries++;
		if (this.#text.length >= BATCH) this.flush();
		else this.#timer ??= setTimeout(() => this.flush(), DELAY).unref();
	}

	/** Posts what there is. */
	flush(): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		if (this.#entries === 0) return;
		const { outstanding, outstandingSlot } = this.#port;
		if (Atomics.load(outstanding, outstandingSlot) > MOST_OUTSTANDING) {
			this.#port.dropped(this.#entries);
		} else {
			Atomics.add(outstanding, outstandingSlot, this.#text.length);
			this.#port.post(this.#text, this.#entries);
		}
		this.#text = '';
		this.#entries = 0;
	}
}
