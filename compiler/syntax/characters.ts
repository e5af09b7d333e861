/** Character classes of configuration text, by UTF-16 code unit. */

export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;
export const DOUBLE_QUOTE = 0x22;
export const HASH = 0x23;
export const LESS_THAN = 0x3c;
export const EQUALS = 0x3d;
export const BACKSLASH = 0x5c;
export const BACKTICK = 0x60;

/**
 * Unicode white space (the White_Space property), including the line feed, for use between the brackets of a regular expression.
 */
export const whiteSpaceClass = '\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

/** The code units of white space, for the tables in which the lexer looks up first characters. */
export const whiteSpaceCodes: readonly number[] = [
	...[9, 10, 11, 12, 13, 0x20, 0x85, 0xa0, 0x1680],
	...Array.from({ length: 11 }, (_, index) => 0x2000 + index),
	...[0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
];

/** Reports whether a code unit is Unicode white space. `\s` differs: it includes U+FEFF and lacks U+0085. */
export function isWhiteSpace(code: number): boolean {
	if (code < 0x80) return code === 0x20 || (code >= 9 && code <= 13);
	if (code < 0x1680) return code === 0x85 || code === 0xa0;
	return (
		code === 0x1680 ||
		(code >= 0x2000 && code <= 0x200a) ||
		code === 0x2028 ||
		code === 0x2029 ||
		code === 0x202f ||
		code === 0x205f ||
		code === 0x3000
	);
}
