/**
 * Cuts a configuration text at the top level, after every closed block and every import, into pieces that can be parsed
 * separately and reused.
 */
import type { Dialect } from '../dialects/dialect.ts';
import { LF, whiteSpaceClass } from './characters.ts';
import { endOfPlainWord, scanWord } from './scan-word.ts';
import { CloseBrace, Comment, maxWordsBefore, OpenBrace } from './tokens.ts';

const blankLine = /[ \t\r]*\n/y;
// A line of plain words and of quotes that are closed on the same line. It is the most common kind of line, and is skipped in one
// step.
const plainLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*\r?\n/y;
// A plain line that ends with `{`.
const openingLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*[ \t]\{\r?\n/y;
// A line with only a `}`.
const closingLine = /[ \t]*\}\r?\n/y;
// Keywords whose line is complete at the top level, without a block.
const wholeLine = /[ \t]*(?:import|use|let)[ \t]/y;

const blank = new RegExp(`[${whiteSpaceClass.replace('\\t-\\r', '\\t\\v-\\r')}]+`, 'y');
const comment = sticky(Comment.PATTERN);
const open = sticky(OpenBrace.PATTERN);
const close = sticky(CloseBrace.PATTERN);

function sticky(pattern: unknown): RegExp {
	return new RegExp((pattern as RegExp).source, 'y');
}

/** A range of a text, from `start` up to but not including `end`. */
export interface TextExtent {
	readonly start: number;
	readonly end: number;
}

/**
 * Returns the pieces of a text in order. Returns undefined if the braces do not balance, because the ends of pieces would then
 * be a guess, or if the text has a byte order mark. A piece ends with the top-level line that closes a block, imports something
 * or defines a constant. Comments and blank lines before a piece's first word belong to no piece. Therefore, the tokens of the
 * whole text are those of its pieces in order, except for newlines, and no line continues into the next piece. Environment
 * variables in `text` have already been replaced.
 */
export function cutAtTopLevel(text: string, dialect: Dialect): TextExtent[] | undefined {
	if (text.charCodeAt(0) === 0xfeff) return undefined;
	const pieces: TextExtent[] = [];
	const cutter = new Cutter(text, dialect);
	let start = -1;
	while (cutter.at < text.length) {
		const before = cutter.at;
		cutter.line();
		if (cutter.depth < 0) return undefined;
		if (start === -1 && !cutter.blank) start = before;
		if (!cutter.closed) continue;
		pieces.push({ start, end: cutter.at });
		start = -1;
	}
	if (start !== -1) pieces.push({ start, end: text.length });
	return cutter.depth === 0 ? pieces : undefined;
}

/** Scans a text line by line according to the rules of the lexer, without creating tokens. */
class Cutter {
	/** Offset of the next line. */
	at = 0;
	/** Number of open blocks; negative after an unmatched closing brace. */
	depth = 0;
	/** True if the last line ended a top-level block, or is complete without one. */
	closed = false;
	/** True if the last line contains only white space and comments. */
	blank = false;
	readonly #text: string;
	readonly #namedValues: boolean;

	constructor(text: string, dialect: Dialect) {
		this.#text = text;
		this.#namedValues = dialect === 'configfile';
	}

	/** Advances to the next line. */
	line(): void {
		this.closed = false;
		this.blank = this.#skip(blankLine);
		if (this.blank) return;
		const whole = this.depth === 0 && matchesAt(wholeLine, this.#text, this.at);
		this.#line();
		if (whole) this.closed = this.depth === 0;
	}

	#line(): void {
		if (this.#skip(plainLine)) return;
		if (this.#skip(openingLine)) {
			this.depth++;
			return;
		}
		if (this.#skip(closingLine)) {
			this.depth--;
			this.closed = this.depth === 0;
			return;
		}
		this.blank = true;
		this.#tokens();
	}

	#skip(pattern: RegExp): boolean {
		if (!matchesAt(pattern, this.#text, this.at)) return false;
		this.at = pattern.lastIndex;
		return true;
	}

	/** Scans a line of any kind token by token; a quote or comment may extend it over several lines. */
	#tokens(): void {
		const text = this.#text;
		/** Start of the first word since the last brace; −1 if there has been none. */
		let head = -1;
		/** End of that word. */
		let headEnd = -1;
		let words = 0;
		const named = (): boolean => words <= maxWordsBefore && takesNamedValues(text, head, headEnd);
		while (this.at < text.length) {
			if (this.#skip(blank) || this.#skip(comment)) continue;
			if (text.charCodeAt(this.at) === LF) {
				this.at++;
				return;
			}
			this.blank = false;
			if (this.#skip(open)) {
				this.depth++;
				this.closed = false;
				words = 0;
				continue;
			}
			if (this.#skip(close)) {
				this.depth--;
				if (this.depth < 0) return;
				this.closed = this.depth === 0;
				words = 0;
				continue;
			}
			this.closed = false;
			const start = this.at;
			const end = endOfPlainWord(text, start, this.#namedValues);
			const takesValue = this.#namedValues && words > 0 ? named : undefined;
			this.at = end === -1 ? scanWord(text, start, takesValue).end : end;
			if (words++ > 0) continue;
			head = start;
			// The value of a head with quotes or escapes differs from its source text.
			headEnd = end === -1 ? -1 : end;
		}
	}
}

function matchesAt(pattern: RegExp, text: string, at: number): boolean {
	pattern.lastIndex = at;
	return pattern.test(text);
}

/** Reports whether a quote after `NAME=` begins a value, as in the lexer: in a snippet's head, and after `use`. */
function takesNamedValues(text: string, head: number, end: number): boolean {
	if (end === -1) return false;
	if (text[head] === '(') return text[end - 1] === ')';
	return end - head === 3 && text.startsWith('use', head);
}
