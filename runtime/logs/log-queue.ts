/** What waits to be written to a log: lines as text, put together while they wait, and bytes in others' memory. */

/** Bytes of text that may wait. */
const QUEUE_LIMIT = 8 * 1024 * 1024;

/** Bytes to be written next. */
export interface Waiting {
	readonly bytes: Buffer;
	/** They have been written, or have failed. */
	done(): void;
}

/** A bounded queue. */
export class LogQueue {
	readonly #waiting: (Waiting | string[])[] = [];
	#size = 0;

	/** Takes lines; false when too much waits already. */
	add(text: string): boolean {
		if (this.#size > QUEUE_LIMIT) return false;
		this.#size += text.length;
		const last = this.#waiting.at(-1);
		if (Array.isArray(last)) last.push(text);
		else this.#waiting.push([text]);
		return true;
	}

	/** Takes bytes, which are the caller's again once `done` is called: at once when too much waits. */
	addBytes(bytes: Buffer, done: () => void): boolean {
		if (this.#size > QUEUE_LIMIT) {
			done();
			return false;
		}
		this.#size += bytes.length;
		this.#waiting.push({ bytes, done });
		return true;
	}

	/** What is to be written next; undefined when nothing waits. It counts as waiting until it is done. */
	take(): Waiting | undefined {
		const next = this.#waiting.shift();
		if (next === undefined) return undefined;
		if (!Array.isArray(next)) {
			const { bytes, done } = next;
			return { bytes, done: () => this.#done(bytes.length, done) };
		}
		const text = next.join('');
		return { bytes: Buffer.from(text), done: () => this.#done(text.length, undefined) };
	}

	#done(size: number, done: (() => void) | undefined): void {
		this.#size -= size;
		done?.();
	}
}
