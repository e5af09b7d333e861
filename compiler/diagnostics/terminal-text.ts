/**
 * Lays out a line of source for a terminal: computes the width of tabs and wide characters, and makes control characters
 * harmless.
 */

/** Width of a tab in a code frame, in columns. */
const TAB_COLUMNS = 4;

/** A line that is ready to print, with the column of each of its UTF-16 offsets. */
export interface TerminalLine {
	readonly text: string;
	/** Returns the column at an offset of the original line; the offset may be the line's length. */
	columnOf(offset: number): number;
}

const COMBINING = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const PICTOGRAPHIC = /^\p{Emoji_Presentation}$/u;

/** Returns the columns a character occupies: 0, 1 or 2 (Unicode East Asian Width `W` and `F`, and emoji). */
function characterWidth(character: string): number {
	const code = character.codePointAt(0)!;
	if (code < 0x300) return 1;
	if (COMBINING.test(character)) return 0;
	const isWide =
		(code >= 0x1100 && code <= 0x115f) ||
		(code >= 0x2e80 && code <= 0x303e) ||
		(code >= 0x3041 && code <= 0xa4cf) ||
		(code >= 0xa960 && code <= 0xa97f) ||
		(code >= 0xac00 && code <= 0xd7a3) ||
		(code >= 0xf900 && code <= 0xfaff) ||
		(code >= 0xfe30 && code <= 0xfe6f) ||
		(code >= 0xff00 && code <= 0xff60) ||
		(code >= 0xffe0 && code <= 0xffe6) ||
		(code >= 0x20000 && code <= 0x3fffd);
	return isWide || PICTOGRAPHIC.test(character) ? 2 : 1;
}

/** Returns a visible symbol for a control character, so that a file cannot control the terminal that shows it. */
function visibleSymbol(character: string): string {
	const code = character.codePointAt(0)!;
	if (code < 0x20) return String.fromCodePoint(0x2400 + code);
	if (code === 0x7f) return '\u2421';
	if ((code >= 0x80 && code < 0xa0) || (code >= 0xd800 && code <= 0xdfff)) return '\ufffd';
	// Characters that change the direction of text would let a file reorder the text on the screen.
	if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return '\ufffd';
	return character;
}

/** Makes the control characters of a message visible, except newlines. */
export function escapeControlCharacters(text: string): string {
	return [...text].map(character => (character === '\n' ? '\n' : visibleSymbol(character))).join('');
}

/** Lays out one line of source. Drops a trailing carriage return. */
export function layOutTerminalLine(line: string): TerminalLine {
	const content = line.endsWith('\r') ? line.slice(0, -1) : line;
	const columns: number[] = [];
	let text = '';
	let column = 0;
	for (const character of content) {
		for (let unit = 0; unit < character.length; unit++) columns.push(column);
		if (character === '\t') {
			text += ' '.repeat(TAB_COLUMNS);
			column += TAB_COLUMNS;
		} else {
			const symbol = visibleSymbol(character);
			text += symbol;
			column += characterWidth(symbol);
		}
	}
	columns.push(column);
	return { text, columnOf: offset => columns[Math.min(Math.max(offset, 0), columns.length - 1)]! };
}

/** Returns the columns from `from` up to, but not including, `to` of a line laid out by {@link layOutTerminalLine}. */
export function sliceColumns(text: string, from: number, to: number): string {
	let column = 0;
	let result = '';
	for (const character of text) {
		const width = characterWidth(character);
		if (column >= from && column + width <= to) result += character;
		else if (column < from && column + width > from) result += ' ';
		column += width;
		if (column >= to) break;
	}
	return result;
}
