/** A body made from a long string. It is encoded as the client reads it, because the string itself is often shared. */
import type { BodySource } from '../../../compiler/exchange/body.ts';

/** Maximum bytes in UTF-8 of one UTF-16 code unit. */
const MAX_OF_A_CHARACTER = 3;

/** Delivers a string in parts, once. */
export class TextSource implements BodySource {
	readonly length: number;
	readonly #text: string;
	readonly #isAscii: boolean;
	#at = 0;

	/** `length` is the length of the string in UTF-8. */
	constructor(text: string, length: number) {
		this.#text = text;
		this.length = length;
		this.#isAscii = length === text.length;
	}

	get heldBytes(): number {
		return this.length;
	}

	pull(most: number = this.length): Uint8Array | null {
		const text = this.#text;
		const start = this.#at;
		if (start >= text.length) return null;
		if (this.#isAscii) {
			this.#at = start + most;
			return Buffer.from(text.slice(start, this.#at), 'latin1');
		}
		let end = start + Math.max(2, Math.floor(most / MAX_OF_A_CHARACTER));
		// Never ends a part between the halves of a surrogate pair.
		if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
		this.#at = end;
		return Buffer.from(text.slice(start, end), 'utf8');
	}

	cancel(): void {
		this.#at = this.#text.length;
	}
}
