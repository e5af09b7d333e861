/** A queue of data to be written to a log: strings, which are joined while they wait, and bytes in borrowed memory. */
import type { LineKind } from './log-losses.ts';

/** Maximum size of the queued data: characters of text, plus bytes. */
const MAX_QUEUED_SIZE = 8 * 1024 * 1024;

/** Queued bytes, and a callback for when they have been written. */
export interface QueuedChunk {
	readonly bytes: Buffer;
	readonly kind: LineKind;
	/** Must be called once the bytes have been written or writing has failed. */
	done(): void;
}

/** Queues data until its size exceeds {@link MAX_QUEUED_SIZE}. */
export class LogQueue {
	readonly #chunks: (QueuedChunk | { readonly texts: string[]; readonly kind: LineKind })[] = [];
	#queuedSize = 0;

	get isEmpty(): boolean {
		return this.#chunks.length === 0;
	}

	/** Adds lines; returns false if the queue is full. */
	addLines(text: string, kind: LineKind): boolean {
		if (this.#queuedSize > MAX_QUEUED_SIZE) return false;
		this.#queuedSize += text.length;
		const lastChunk = this.#chunks.at(-1);
		if (lastChunk && 'texts' in lastChunk && lastChunk.kind === kind) lastChunk.texts.push(text);
		else this.#chunks.push({ texts: [text], kind });
		return true;
	}

	/** Adds bytes of access logs, which the caller may reuse once `done` is called; returns false if the queue is full. */
	addBytes(bytes: Buffer, done: () => void): boolean {
		if (this.#queuedSize > MAX_QUEUED_SIZE) return false;
		this.#queuedSize += bytes.length;
		this.#chunks.push({ bytes, kind: 'access', done });
		return true;
	}

	/** Returns the next data; undefined if the queue is empty. The queue's size includes the data until `done` is called. */
	takeChunk(): QueuedChunk | undefined {
		const chunk = this.#chunks.shift();
		if (chunk === undefined) return undefined;
		const { kind } = chunk;
		if ('bytes' in chunk) {
			const { bytes, done } = chunk;
			return { bytes, kind, done: () => this.#finishChunk(bytes.length, done) };
		}
		const text = chunk.texts.join('');
		return { bytes: Buffer.from(text), kind, done: () => this.#finishChunk(text.length, undefined) };
	}

	#finishChunk(size: number, done: (() => void) | undefined): void {
		this.#queuedSize -= size;
		done?.();
	}
}
