/** The bytes of a small file that was read at once, in a page that others use after it. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import { type FilePage, type FilePages, HEAD_ROOM } from './file-pages.ts';

/** Gives its bytes once. The page is given back when more is asked for than there is, for then nobody has it any more. */
export class ReadBody implements BodySource {
	readonly length: number;
	readonly #pages: FilePages;
	#page: FilePage | undefined;
	#taken = false;

	/** `page` holds `length` bytes. */
	constructor(pages: FilePages, page: FilePage, length: number) {
		this.#pages = pages;
		this.#page = page;
		this.length = length;
	}

	pull(): Uint8Array | null {
		const page = this.#page;
		if (page === undefined) return null;
		if (this.#taken) {
			this.#page = undefined;
			this.#pages.giveBack(page);
			return null;
		}
		this.#taken = true;
		return page.memory.subarray(HEAD_ROOM, HEAD_ROOM + this.length);
	}

	behind(head: string): Uint8Array | undefined {
		const page = this.#page;
		if (page === undefined || this.#taken || head.length > HEAD_ROOM) return undefined;
		this.#taken = true;
		const start = HEAD_ROOM - head.length;
		page.memory.write(head, start, 'latin1');
		return page.memory.subarray(start, HEAD_ROOM + this.length);
	}

	cancel(): void {
		const page = this.#page;
		if (page === undefined) return;
		this.#page = undefined;
		// What was taken may still be on its way to a socket: then the page is nobody's any more.
		if (!this.#taken) this.#pages.giveBack(page);
	}
}
