/** Texts that have been sliced from others. */
import { Buffer } from 'node:buffer';

/**
 * Compares two texts. The engine's own comparison leaves compiled code if either is a slice of another text, like everything
 * sliced from a request head, and then takes ten times as long.
 */
export function sameText(one: string, other: string): boolean {
	const { length } = one;
	if (length !== other.length) return false;
	for (let i = 0; i < length; i++) if (one.charCodeAt(i) !== other.charCodeAt(i)) return false;
	return true;
}

/** Returns a copy of a text that is not a slice; its characters are bytes. */
export function ownText(text: string): string {
	return Buffer.from(text, 'latin1').toString('latin1');
}
