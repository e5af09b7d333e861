/** The bytes of a small file that was read at once, in a page that others use after it. */
import type { BodySource } from '../../compiler/exchange/body.ts';
import { type FilePage, type FilePages, HEAD_ROOM } from './file-pages.ts';

/** Gives its bytes once. The page is given back when more is asked for than there is, for then nobody has it any more. */
export class ReadBody implements BodySource {
	readonly length: number;
	readonly #pages: FilePages;
	#page: FilePage | undefined;
	/** Bytes that have been taken from the page. */
	#at = 0;
	/** What had not been taken when the page was given back. */
	#rest: Uint8Array | undefined = undefined;

	/** `page` holds `length` bytes. */
	constructor(pages: FilePages, page: FilePage, length: number) {
		this.#pages = pages;
		this.#page = page;
		this.length = length;
	}

	get held(): number {
		return this.#page === undefined ? (this.#rest?.byteLength ?? 0) : this.length;
	}

	pull(most: number = this.length): Uint8Array | null {
		const page = this.#page;
		if (page === undefined) return this.#pullRest(most);
		const at = this.#at;
		if (at === this.length) {
			this.#page = undefined;
			this.#pages.giveBack(page);
			return null;
		}
		this.#at = Math.min(this.length, at + most);
		return page.memory.subarray(HEAD_ROOM + at, HEAD_ROOM + this.#at);
	}

	#pullRest(most: number): Uint8Array | null {
		const rest = this.#rest;
		if (rest === undefined) return null;
		this.#rest = rest.byteLength > most ? rest.subarray(most) : undefined;
		return rest.byteLength > most ? rest.subarray(0, most) : rest;
	}

	/** What has not been taken goes into memory of its own: a page is many times as large as most files. */
	idle(): void {
		const page = this.#page;
		if (page === undefined) return;
		this.#page = undefined;
		if (this.#at < this.length)
			this.#rest = new Uint8Array(page.memory.subarray(HEAD_ROOM + this.#at, HEAD_ROOM + this.length));
		this.#pages.giveBack(page);
	}

	behind(head: string): Uint8Array | undefined {
		const page = this.#page;
		if (page === undefined || this.#at > 0 || head.length > HEAD_ROOM) return undefined;
		this.#at = this.length;
		const start = HEAD_ROOM - head.length;
		page.memory.write(head, start, 'latin1');
		return page.memory.subarray(start, HEAD_ROOM + this.length);
	}

	cancel(): void {
		const page = this.#page;
		this.#rest = undefined;
		if (page === undefined) return;
		this.#page = undefined;
		// What was taken may still be on its way to a socket: then the page is nobody's any more.
		if (this.#at === 0) this.#pages.giveBack(page);
	}
}
