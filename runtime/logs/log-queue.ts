/** A queue of data to be written to a log: strings, which are joined while they wait, and bytes in borrowed memory. */
import type { LineKind } from './log-losses.ts';

/** Maximum bytes of queued text. */
const QUEUE_LIMIT = 8 * 1024 * 1024;

/** Queued bytes, and a callback for when they have been written. */
export interface QueuedChunk {
	readonly bytes: Buffer;
	readonly kind: LineKind;
	/** Must be called once the bytes have been written or writing has failed. */
	done(): void;
}

/** A bounded queue. */
export class LogQueue {
	readonly #waiting: (QueuedChunk | { readonly texts: string[]; readonly kind: LineKind })[] = [];
	#size = 0;

	/** True if nothing is queued. */
	get isEmpty(): boolean {
		return this.#waiting.length === 0;
	}

	/** Adds lines; returns false if the queue is full. */
	add(text: string, kind: LineKind): boolean {
		if (this.#size > QUEUE_LIMIT) return false;
		this.#size += text.length;
		const last = this.#waiting.at(-1);
		if (last && 'texts' in last && last.kind === kind) last.texts.push(text);
		else this.#waiting.push({ texts: [text], kind });
		return true;
	}

	/** Adds bytes of access logs, which the caller may reuse once `done` is called; returns false if the queue is full. */
	addBytes(bytes: Buffer, done: () => void): boolean {
		if (this.#size > QUEUE_LIMIT) return false;
		this.#size += bytes.length;
		this.#waiting.push({ bytes, kind: 'access', done });
		return true;
	}

	/** Returns the next data; undefined if the queue is empty. The data counts as queued until its `done` is called. */
	take(): QueuedChunk | undefined {
		const next = this.#waiting.shift();
		if (next === undefined) return undefined;
		const { kind } = next;
		if ('bytes' in next) {
			const { bytes, done } = next;
			return { bytes, kind, done: () => this.#done(bytes.length, done) };
		}
		const text = next.texts.join('');
		return { bytes: Buffer.from(text), kind, done: () => this.#done(text.length, undefined) };
	}

	#done(size: number, done: (() => void) | undefined): void {
		this.#size -= size;
		done?.();
	}
}
