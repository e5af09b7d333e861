/** Lengths and slices of strings in bytes of UTF-8, because the template language counts bytes, as Go does. */

export function byteLength(text: string): number {
	return Buffer.byteLength(text);
}

/** Returns the part of a string between two byte offsets; a character cut in two becomes U+FFFD. */
export function byteSlice(text: string, start: number, end: number): string {
	// For ASCII, the usual case, byte offsets equal character offsets.
	if (Buffer.byteLength(text) === text.length) return text.slice(start, end);
	return Buffer.from(text).toString('utf8', start, end);
}
