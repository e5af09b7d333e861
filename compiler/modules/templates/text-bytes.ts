/** Byte offsets in the UTF-8 form of texts, which the language uses. */

/** Returns the length of a text in bytes. */
export function byteLength(text: string): number {
	return Buffer.byteLength(text);
}

/** Returns the text between two byte offsets; a character cut in two becomes U+FFFD. */
export function byteSlice(text: string, start: number, end: number): string {
	// For ASCII, the usual case, byte offsets equal character offsets.
	if (Buffer.byteLength(text) === text.length) return text.slice(start, end);
	return Buffer.from(text).toString('utf8', start, end);
}
