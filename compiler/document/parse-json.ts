/** Parses JSON and locates the first mistake. */
import type { Report } from '../diagnostics/diagnostic.ts';
import { Source } from '../source/source.ts';

/** Parses a JSON configuration. Returns undefined after reporting a mistake. Skips a byte order mark. */
export function parseJson(text: string, name: string, path: string | undefined, report: Report): unknown {
	const bare = text.startsWith('\uFEFF') ? text.slice(1) : text;
	try {
		return JSON.parse(bare) as unknown;
	} catch {
		const { at, message } = findMistake(text);
		const source = new Source({ name, text, path });
		report({
			code: 'json/syntax',
			severity: 'error',
			message,
			span: { source, start: at, end: Math.min(text.length, at + 1) },
		});
		return undefined;
	}
}

interface Mistake {
	readonly at: number;
	readonly message: string;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = /[ \t\r\n]*/y;
// The characters that may follow a backslash (RFC 8259 §7).
const ESCAPE = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Returns the first place at which a string is not valid JSON. Called only for invalid JSON. */
function findMistake(text: string): Mistake {
	let at = text.startsWith('\uFEFF') ? 1 : 0;
	/** The closing delimiter of each open object and array. */
	const open: string[] = [];
	let expectation: 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' = 'value';
	const take = (pattern: RegExp): boolean => {
		pattern.lastIndex = at;
		if (!pattern.test(text)) return false;
		at = pattern.lastIndex;
		return true;
	};
	// A regular expression would not do, because repeating an alternative overflows its stack on a string of several megabytes.
	const takeString = (): boolean => {
		if (text[at] !== '"') return false;
		for (let end = at + 1; end < text.length; end++) {
			const code = text.charCodeAt(end);
			if (code < 0x20) return false;
			if (code === QUOTE) {
				at = end + 1;
				return true;
			}
			if (code !== BACKSLASH) continue;
			ESCAPE.lastIndex = end + 1;
			if (!ESCAPE.test(text)) return false;
			end = ESCAPE.lastIndex - 1;
		}
		return false;
	};
	for (;;) {
		take(SPACE);
		const character = text[at];
		const closes = character !== undefined && character === open[open.length - 1];
		if (character === undefined) return { at, message: `The text ends where ${WANTED[expectation]} is expected.` };
		if (closes && expectation.endsWith('end')) {
			open.pop();
			at++;
			if (open.length === 0) {
				take(SPACE);
				return { at, message: 'There is text after the end of the document.' };
			}
			expectation = 'comma-or-end';
		} else if (expectation.startsWith('key')) {
			if (!takeString()) return mistakeAt(text, at, expectation);
			expectation = 'colon';
		} else if (expectation === 'colon') {
			if (character !== ':') return mistakeAt(text, at, expectation);
			at++;
			expectation = 'value';
		} else if (expectation === 'comma-or-end') {
			if (character !== ',') return mistakeAt(text, at, expectation);
			at++;
			expectation = open[open.length - 1] === '}' ? 'key' : 'value';
		} else if (character === '{' || character === '[') {
			open.push(character === '{' ? '}' : ']');
			at++;
			expectation = character === '{' ? 'key-or-end' : 'value-or-end';
		} else {
			if (!takeString() && !take(SCALAR)) return mistakeAt(text, at, expectation);
			if (open.length === 0) {
				take(SPACE);
				return { at, message: 'There is text after the end of the document.' };
			}
			expectation = 'comma-or-end';
		}
	}
}

const WANTED = {
	value: 'a value',
	'value-or-end': 'a value or `]`',
	key: 'a key in double quotes',
	'key-or-end': 'a key in double quotes or `}`',
	colon: '`:`',
	'comma-or-end': '`,` or the end of the list or object',
} as const;

function mistakeAt(text: string, at: number, expectation: keyof typeof WANTED): Mistake {
	const character = text[at]!;
	if (character === '"')
		return { at, message: 'This string is not closed, or contains a character that must be escaped.' };
	return { at, message: `Found \`${character}\` where ${WANTED[expectation]} is expected.` };
}
