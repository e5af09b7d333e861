/** Parses JSON, and locates the first mistake. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { Source } from '../source/source.ts';

/** Parses a JSON configuration. Skips a byte order mark. Returns undefined if the text is invalid, which is reported. */
export function parseJson(text: string, name: string, path: string | undefined, report: Report): unknown {
	const withoutMark = text.startsWith('\uFEFF') ? text.slice(1) : text;
	try {
		return JSON.parse(withoutMark) as unknown;
	} catch {
		const { offset, message } = findMistake(text);
		const source = new Source({ name, text, path });
		report({
			code: 'json/syntax',
			severity: 'error',
			message,
			span: { source, start: offset, end: Math.min(text.length, offset + 1) },
		});
		return undefined;
	}
}

interface Mistake {
	readonly offset: number;
	readonly message: string;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const WHITE_SPACE = /[ \t\r\n]*/y;
// Matches the characters that may follow a backslash (RFC 8259 §7).
const ESCAPED_CHARACTER = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
const SCALAR_PATTERN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Returns the first place at which a text is not valid JSON. The text must be invalid. */
function findMistake(text: string): Mistake {
	let offset = text.startsWith('\uFEFF') ? 1 : 0;
	/** The closing delimiters of the open objects and arrays, innermost last. */
	const closers: string[] = [];
	let expectation: 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' = 'value';
	const consume = (pattern: RegExp): boolean => {
		pattern.lastIndex = offset;
		if (!pattern.test(text)) return false;
		offset = pattern.lastIndex;
		return true;
	};
	// A loop, because a regular expression that matches a string of several megabytes would overflow the stack.
	const consumeString = (): boolean => {
		if (text[offset] !== '"') return false;
		for (let position = offset + 1; position < text.length; position++) {
			const code = text.charCodeAt(position);
			if (code < 0x20) return false;
			if (code === QUOTE) {
				offset = position + 1;
				return true;
			}
			if (code !== BACKSLASH) continue;
			ESCAPED_CHARACTER.lastIndex = position + 1;
			if (!ESCAPED_CHARACTER.test(text)) return false;
			position = ESCAPED_CHARACTER.lastIndex - 1;
		}
		return false;
	};
	for (;;) {
		consume(WHITE_SPACE);
		const character = text[offset];
		const isCloser = character !== undefined && character === closers[closers.length - 1];
		if (character === undefined)
			return { offset, message: `The text ends where ${EXPECTATION_NAMES[expectation]} is expected.` };
		if (isCloser && expectation.endsWith('end')) {
			closers.pop();
			offset++;
			if (closers.length === 0) {
				consume(WHITE_SPACE);
				return { offset, message: 'There is text after the end of the document.' };
			}
			expectation = 'comma-or-end';
		} else if (expectation.startsWith('key')) {
			if (!consumeString()) return mistakeAt(text, offset, expectation);
			expectation = 'colon';
		} else if (expectation === 'colon') {
			if (character !== ':') return mistakeAt(text, offset, expectation);
			offset++;
			expectation = 'value';
		} else if (expectation === 'comma-or-end') {
			if (character !== ',') return mistakeAt(text, offset, expectation);
			offset++;
			expectation = closers[closers.length - 1] === '}' ? 'key' : 'value';
		} else if (character === '{' || character === '[') {
			closers.push(character === '{' ? '}' : ']');
			offset++;
			expectation = character === '{' ? 'key-or-end' : 'value-or-end';
		} else {
			if (!consumeString() && !consume(SCALAR_PATTERN)) return mistakeAt(text, offset, expectation);
			if (closers.length === 0) {
				consume(WHITE_SPACE);
				return { offset, message: 'There is text after the end of the document.' };
			}
			expectation = 'comma-or-end';
		}
	}
}

const EXPECTATION_NAMES = {
	value: 'a value',
	'value-or-end': 'a value or `]`',
	key: 'a key in double quotes',
	'key-or-end': 'a key in double quotes or `}`',
	colon: '`:`',
	'comma-or-end': '`,` or the end of the list or object',
} as const;

function mistakeAt(text: string, offset: number, expectation: keyof typeof EXPECTATION_NAMES): Mistake {
	const character = text[offset]!;
	if (character === '"')
		return { offset, message: 'This string is not closed, or contains a character that must be escaped.' };
	return { offset, message: `Found \`${character}\` where ${EXPECTATION_NAMES[expectation]} is expected.` };
}
