/** The contents of a small file, read at once into a buffer that is reused afterwards. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import { type FilePage, type FilePages, RESPONSE_HEAD_ROOM_BYTES } from './file-pages.ts';

/**
 * Delivers the contents of a small file. The pull after the last bytes returns the buffer to its pool, because nothing uses the
 * buffer any more.
 */
export class ReadBody implements BodySource {
	readonly length: number;
	readonly #pages: FilePages;
	#page: FilePage | undefined;
	/** Number of bytes taken from the buffer. */
	#offset = 0;
	/** Copy of the bytes that had not been pulled when the buffer was returned to its pool. */
	#remainder: Uint8Array | undefined = undefined;

	/** @param page The buffer, which contains `length` bytes. */
	constructor(pages: FilePages, page: FilePage, length: number) {
		this.#pages = pages;
		this.#page = page;
		this.length = length;
	}

	get heldBytes(): number {
		return this.#page === undefined ? (this.#remainder?.byteLength ?? 0) : this.length;
	}

	pull(maxBytes: number = this.length): Uint8Array | null {
		const page = this.#page;
		if (page === undefined) return this.#pullRemainder(maxBytes);
		const startOffset = this.#offset;
		if (startOffset === this.length) {
			this.#page = undefined;
			this.#pages.returnPage(page);
			return null;
		}
		this.#offset = Math.min(this.length, startOffset + maxBytes);
		return page.memory.subarray(RESPONSE_HEAD_ROOM_BYTES + startOffset, RESPONSE_HEAD_ROOM_BYTES + this.#offset);
	}

	#pullRemainder(maxBytes: number): Uint8Array | null {
		const remainder = this.#remainder;
		if (remainder === undefined) return null;
		this.#remainder = remainder.byteLength > maxBytes ? remainder.subarray(maxBytes) : undefined;
		return remainder.byteLength > maxBytes ? remainder.subarray(0, maxBytes) : remainder;
	}

	/**
	 * Copies the bytes that have not been pulled and returns the buffer to its pool, because the buffer is many times as large as
	 * most files.
	 */
	onIdle(): void {
		const page = this.#page;
		if (page === undefined) return;
		this.#page = undefined;
		if (this.#offset < this.length)
			this.#remainder = new Uint8Array(
				page.memory.subarray(RESPONSE_HEAD_ROOM_BYTES + this.#offset, RESPONSE_HEAD_ROOM_BYTES + this.length),
			);
		this.#pages.returnPage(page);
	}

	prependHead(head: string): Uint8Array | undefined {
		const page = this.#page;
		if (page === undefined || this.#offset > 0 || head.length > RESPONSE_HEAD_ROOM_BYTES) return undefined;
		this.#offset = this.length;
		const headStart = RESPONSE_HEAD_ROOM_BYTES - head.length;
		page.memory.write(head, headStart, 'latin1');
		return page.memory.subarray(headStart, RESPONSE_HEAD_ROOM_BYTES + this.length);
	}

	cancel(): void {
		const page = this.#page;
		this.#remainder = undefined;
		if (page === undefined) return;
		this.#page = undefined;
		// A socket may still be sending bytes that were pulled from the buffer. In that case, the buffer is not reused.
		if (this.#offset === 0) this.#pages.returnPage(page);
	}
}
