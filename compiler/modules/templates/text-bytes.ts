/** Texts by the bytes of their UTF-8 form, which is what the language counts in. */

/** Bytes of a text. */
export function byteLength(text: string): number {
	return Buffer.byteLength(text);
}

/** The text between two offsets in bytes; a character cut in two becomes U+FFFD. */
export function byteSlice(text: string, start: number, end: number): string {
	// ASCII is the ordinary case: an offset is a character.
	if (Buffer.byteLength(text) === text.length) return text.slice(start, end);
	return Buffer.from(text).toString('utf8', start, end);
}
