/** A body made from a long string, which several responses often share. Encodes only the part that is about to be sent. */
import type { BodySource } from '../../compiler/exchange/body.ts';

/** Maximum bytes in UTF-8 of one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Delivers a string in parts. It can be read only once. */
export class TextSource implements BodySource {
	readonly length: number;
	readonly #text: string;
	readonly #isAscii: boolean;
	#offset = 0;

	/** `length` is the length of the string in UTF-8, in bytes. */
	constructor(text: string, length: number) {
		this.#text = text;
		this.length = length;
		this.#isAscii = length === text.length;
	}

	get heldBytes(): number {
		return this.length;
	}

	pull(maxBytes: number = this.length): Uint8Array | null {
		const text = this.#text;
		const start = this.#offset;
		if (start >= text.length) return null;
		if (this.#isAscii) {
			this.#offset = start + maxBytes;
			return Buffer.from(text.slice(start, this.#offset), 'latin1');
		}
		let end = start + Math.max(2, Math.floor(maxBytes / MAX_BYTES_PER_UNIT));
		// Never ends a part between the halves of a surrogate pair.
		if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
		this.#offset = end;
		return Buffer.from(text.slice(start, end), 'utf8');
	}

	cancel(): void {
		this.#offset = this.#text.length;
	}
}
