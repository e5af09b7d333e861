/** The syntax of field names and values (RFC 9110 §5.1, §5.5, §5.6.2). */
import { isUtf8 } from 'node:buffer';

/** Bit of TOKEN_CLASSES for `_`. */
export const UNDERSCORE_CLASS = 2;
/** Bit of TOKEN_CLASSES for `.`. */
export const DOT_CLASS = 4;

/**
 * Classes of characters by code below 256: 1 for a token character, but 2 for `_` and 4 for `.`, which some servers confuse with
 * `-`; 0 for all others.
 */
export const TOKEN_CLASSES: Uint8Array = buildTokenClasses();
/**
 * Indexed by character codes below 256: 1 if a field value may contain the character (HTAB, SP, visible characters, obs-text), 0
 * otherwise.
 */
export const FIELD_VALUE_CLASSES: Uint8Array = buildFieldValueClasses();

/** Reports whether a string is a token, such as a field name or a method. */
export function isToken(text: string): boolean {
	const length = text.length;
	if (length === 0) return false;
	for (let i = 0; i < length; i++) {
		const code = text.charCodeAt(i);
		if (code > 255 || TOKEN_CLASSES[code] === 0) return false;
	}
	return true;
}

/** Strips spaces and tabs around a value (RFC 9110 §5.6.3). `trim` would also strip other white space, such as a no-break space. */
export function trimBlanks(value: string): string {
	let start = 0;
	let end = value.length;
	while (start < end && isBlank(value.charCodeAt(start))) start++;
	while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
	return start === 0 && end === value.length ? value : value.slice(start, end);
}

/** Reports whether a character is a space or a tab. */
export function isBlank(code: number): boolean {
	return code === 32 || code === 9;
}

/** Reports whether a string is safe as a field value: it has no control characters except HTAB, so that it cannot end its line. */
export function isFieldValue(text: string): boolean {
	return fieldValueKind(text) !== 'invalid';
}

/**
 * Classifies a value for sending: `bytes` if each character is one byte; `text` if it has characters above U+00FF, so that it must
 * be sent as UTF-8 (see `encodeFieldText`); `invalid` if it contains a control character. The distinction matters because a
 * character such as U+010A, truncated to a byte, would be a line feed.
 */
export function fieldValueKind(text: string): 'bytes' | 'text' | 'invalid' {
	const length = text.length;
	let hasWideCharacter = false;
	for (let i = 0; i < length; i++) {
		const code = text.charCodeAt(i);
		if (code > 255) hasWideCharacter = true;
		else if (FIELD_VALUE_CLASSES[code] === 0) return 'invalid';
	}
	return hasWideCharacter ? 'text' : 'bytes';
}

/** Encodes a string as UTF-8 with one character per byte, so that a configured value is sent as UTF-8. */
export function encodeFieldText(text: string): string {
	for (let i = 0; i < text.length; i++) {
		if (text.charCodeAt(i) > 127) return Buffer.from(text, 'utf8').toString('latin1');
	}
	return text;
}

/** Decodes the bytes of a value as UTF-8. Returns a value that is not valid UTF-8 unchanged, with one character per byte. */
export function decodeFieldText(value: string): string {
	for (let i = 0; i < value.length; i++) {
		if (value.charCodeAt(i) < 128) continue;
		const bytes = Buffer.from(value, 'latin1');
		return isUtf8(bytes) ? bytes.toString('utf8') : value;
	}
	return value;
}

function buildTokenClasses(): Uint8Array {
	const classes = new Uint8Array(256);
	const tokenCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (let i = 0; i < tokenCharacters.length; i++) classes[tokenCharacters.charCodeAt(i)] = 1;
	classes['_'.charCodeAt(0)] = UNDERSCORE_CLASS;
	classes['.'.charCodeAt(0)] = DOT_CLASS;
	return classes;
}

function buildFieldValueClasses(): Uint8Array {
	const classes = new Uint8Array(256);
	classes.fill(1, 0x20);
	classes[0x7f] = 0;
	classes[0x09] = 1;
	return classes;
}
