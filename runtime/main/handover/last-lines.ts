/** Keeps the last lines of a program's output, for error messages. */

/** Maximum number of lines and of characters that are kept: enough for the stack trace of an error in Node. */
const MAX_LINES = 20;
const MAX_CHARACTERS = 2000;

/** Keeps the last lines of a text that arrives in pieces. */
export class LastLines {
	#recentText = '';

	add(piece: string): void {
		this.#recentText = (this.#recentText + piece).slice(-2 * MAX_CHARACTERS);
	}

	/**
	 * The last lines, without control characters, which could change what a terminal shows. At most 20 lines and 2,000 characters.
	 */
	get text(): string {
		// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
		const plainText = this.#recentText.replace(/\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');
		const lastText = plainText.trimEnd().slice(-MAX_CHARACTERS);
		return lastText.split('\n').slice(-MAX_LINES).join('\n');
	}
}
