/**
 * Lays out a line of source for a terminal: computes the width of tabs and wide characters, and makes control characters
 * harmless.
 */

/** Width of a tab in a code frame, in columns. */
const TAB_COLUMNS = 4;

/** A source line laid out for a terminal, and the column at which each UTF-16 unit of the source line is shown. */
export interface TerminalLine {
	readonly text: string;
	/** Returns the column at an offset of the original line; the offset may be the line's length. */
	columnOf(offset: number): number;
}

const COMBINING_CHARACTER = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE_EMOJI = /^\p{Emoji_Presentation}$/u;

/** Returns the columns a character occupies: 0, 1 or 2 (Unicode East Asian Width `W` and `F`, and emoji). */
function characterWidth(character: string): number {
	const codePoint = character.codePointAt(0)!;
	if (codePoint < 0x300) return 1;
	if (COMBINING_CHARACTER.test(character)) return 0;
	const isWide =
		(codePoint >= 0x1100 && codePoint <= 0x115f) ||
		(codePoint >= 0x2e80 && codePoint <= 0x303e) ||
		(codePoint >= 0x3041 && codePoint <= 0xa4cf) ||
		(codePoint >= 0xa960 && codePoint <= 0xa97f) ||
		(codePoint >= 0xac00 && codePoint <= 0xd7a3) ||
		(codePoint >= 0xf900 && codePoint <= 0xfaff) ||
		(codePoint >= 0xfe30 && codePoint <= 0xfe6f) ||
		(codePoint >= 0xff00 && codePoint <= 0xff60) ||
		(codePoint >= 0xffe0 && codePoint <= 0xffe6) ||
		(codePoint >= 0x20000 && codePoint <= 0x3fffd);
	return isWide || WIDE_EMOJI.test(character) ? 2 : 1;
}

/** Returns a visible symbol for a control character, so that a file cannot control the terminal that shows it. */
function visibleSymbol(character: string): string {
	const codePoint = character.codePointAt(0)!;
	if (codePoint < 0x20) return String.fromCodePoint(0x2400 + codePoint);
	if (codePoint === 0x7f) return '\u2421';
	if ((codePoint >= 0x80 && codePoint < 0xa0) || (codePoint >= 0xd800 && codePoint <= 0xdfff)) return '\ufffd';
	// Characters that change the direction of text would let a file reorder the text on the screen.
	if ((codePoint >= 0x202a && codePoint <= 0x202e) || (codePoint >= 0x2066 && codePoint <= 0x2069)) return '\ufffd';
	return character;
}

/** Makes the control characters of a message visible, except newlines. */
export function escapeControlCharacters(text: string): string {
	return [...text].map(character => (character === '\n' ? '\n' : visibleSymbol(character))).join('');
}

/** Lays out one line of source. Drops a trailing carriage return. */
export function layOutTerminalLine(line: string): TerminalLine {
	const lineContent = line.endsWith('\r') ? line.slice(0, -1) : line;
	const columnByOffset: number[] = [];
	let text = '';
	let column = 0;
	for (const character of lineContent) {
		for (let unit = 0; unit < character.length; unit++) columnByOffset.push(column);
		if (character === '\t') {
			text += ' '.repeat(TAB_COLUMNS);
			column += TAB_COLUMNS;
		} else {
			const symbol = visibleSymbol(character);
			text += symbol;
			column += characterWidth(symbol);
		}
	}
	columnByOffset.push(column);
	return { text, columnOf: offset => columnByOffset[Math.min(Math.max(offset, 0), columnByOffset.length - 1)]! };
}

/** Returns the columns from `startColumn` up to, but not including, `endColumn` of a line laid out by {@link layOutTerminalLine}. */
export function sliceColumns(text: string, startColumn: number, endColumn: number): string {
	let column = 0;
	let result = '';
	for (const character of text) {
		const width = characterWidth(character);
		if (column >= startColumn && column + width <= endColumn) result += character;
		else if (column < startColumn && column + width > startColumn) result += ' ';
		column += width;
		if (column >= endColumn) break;
	}
	return result;
}
