/** A long text as a body, made bytes of as the client takes them: the text itself is often everybody's. */
import type { BodySource } from '../../../compiler/exchange/body.ts';

/** Bytes of a character of two bytes in memory, at most, as UTF-8. */
const MOST_OF_A_CHARACTER = 3;

/** Gives a text once. */
export class TextSource implements BodySource {
	readonly length: number;
	readonly #text: string;
	readonly #isAscii: boolean;
	#at = 0;

	/** `length` is bytes of the text as UTF-8. */
	constructor(text: string, length: number) {
		this.#text = text;
		this.length = length;
		this.#isAscii = length === text.length;
	}

	get held(): number {
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
		let end = start + Math.max(2, Math.floor(most / MOST_OF_A_CHARACTER));
		// Both halves of a character stay together.
		if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
		this.#at = end;
		return Buffer.from(text.slice(start, end), 'utf8');
	}

	cancel(): void {
		this.#at = this.#text.length;
	}
}
