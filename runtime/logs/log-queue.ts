/** What waits to be written to a log: lines as text, put together while they wait, and bytes in others' memory. */
import type { LineKind } from './log-losses.ts';

/** Bytes of text that may wait. */
const QUEUE_LIMIT = 8 * 1024 * 1024;

/** Bytes to be written next. */
export interface Waiting {
	readonly bytes: Buffer;
	readonly kind: LineKind;
	/** They have been written, or have failed. */
	done(): void;
}

/** A bounded queue. */
export class LogQueue {
	readonly #waiting: (Waiting | { readonly texts: string[]; readonly kind: LineKind })[] = [];
	#size = 0;

	/** Whether nothing waits to be taken. */
	get isEmpty(): boolean {
		return this.#waiting.length === 0;
	}

	/** Takes lines; false when too much waits already. */
	add(text: string, kind: LineKind): boolean {
		if (this.#size > QUEUE_LIMIT) return false;
		this.#size += text.length;
		const last = this.#waiting.at(-1);
		if (last && 'texts' in last && last.kind === kind) last.texts.push(text);
		else this.#waiting.push({ texts: [text], kind });
		return true;
	}

	/** Takes bytes of access logs, which are the caller's again once `done` is called; false when too much waits already. */
	addBytes(bytes: Buffer, done: () => void): boolean {
		if (this.#size > QUEUE_LIMIT) return false;
		this.#size += bytes.length;
		this.#waiting.push({ bytes, kind: 'access', done });
		return true;
	}

	/** What is to be written next; undefined when nothing waits. It counts as waiting until it is done. */
	take(): Waiting | undefined {
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
