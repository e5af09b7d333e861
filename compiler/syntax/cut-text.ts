/** Cuts a text at file level, behind every block that closes there and every import: what can be read on its own, and need not be read again. */
import type { Dialect } from '../dialects/dialect.ts';
import { LF, whiteSpaceClass } from './characters.ts';
import { endOfPlainWord, scanWord } from './scan-word.ts';
import { Close, Comment, mostWordsBefore, Open } from './tokens.ts';

const blankLine = /[ \t\r]*\n/y;
// A line of plain words and of quotes that close on it: the usual line, skipped in one step.
const plainLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*\r?\n/y;
// The same before a `{` that ends its line, and a `}` alone on its line.
const openingLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*[ \t]\{\r?\n/y;
const closingLine = /[ \t]*\}\r?\n/y;
// Words of the language that do something on a line of their own.
const wholeLine = /[ \t]*(?:import|use|let)[ \t]/y;

const blank = new RegExp(`[${whiteSpaceClass.replace('\\t-\\r', '\\t\\v-\\r')}]+`, 'y');
const comment = sticky(Comment.PATTERN);
const open = sticky(Open.PATTERN);
const close = sticky(Close.PATTERN);

function sticky(pattern: unknown): RegExp {
	return new RegExp((pattern as RegExp).source, 'y');
}

/** A part of a text: from `start` up to `end`. */
export interface Extent {
	readonly start: number;
	readonly end: number;
}

/**
 * The pieces of a text in their order; undefined when the braces do not balance, so that where a piece ends is a guess, and
 * for a text with a byte order mark. A piece ends with the line of file level on which a block closes, or which imports
 * something or names a constant. Comments and blank lines before the first word of a piece belong to none. So the tokens
 * of the whole text are those of the pieces one after the other, line ends apart, and no line goes on in the next piece.
 * Environment values are replaced in `text` already.
 */
export function cutText(text: string, dialect: Dialect): Extent[] | undefined {
	if (text.charCodeAt(0) === 0xfeff) return undefined;
	const pieces: Extent[] = [];
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

/** Goes over a text line by line, with the rules of the lexer but without making tokens. */
class Cutter {
	/** Where the next line begins. */
	at = 0;
	/** Blocks that are open there; negative after a brace that closes nothing. */
	depth = 0;
	/** The line that ended there was the last one of a block of file level, or stands there for itself. */
	closed = false;
	/** The line that ended there holds nothing but white space and comments. */
	blank = false;
	readonly #text: string;
	readonly #namedValues: boolean;

	constructor(text: string, dialect: Dialect) {
		this.#text = text;
		this.#namedValues = dialect === 'configfile';
	}

	/** Goes on to the beginning of the next line. */
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

	/** Goes token by token, for a line that may hold anything; a quote or a comment can take further lines along. */
	#tokens(): void {
		const text = this.#text;
		/** Where the first word since the last brace begins and ends, and how many there are. */
		let head = -1;
		let headEnd = -1;
		let words = 0;
		const named = (): boolean => words <= mostWordsBefore && takesNamedValues(text, head, headEnd);
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
			const asks = this.#namedValues && words > 0 ? named : undefined;
			this.at = end === -1 ? scanWord(text, start, asks).end : end;
			if (words++ > 0) continue;
			head = start;
			// A head that took a full scan is not simply what is written.
			headEnd = end === -1 ? -1 : end;
		}
	}
}

function matchesAt(pattern: RegExp, text: string, at: number): boolean {
	pattern.lastIndex = at;
	return pattern.test(text);
}

/** As the lexer decides it: in a snippet's head and after `use`, a quote after `NAME=` opens a value. */
function takesNamedValues(text: string, head: number, end: number): boolean {
	if (end === -1) return false;
	if (text[head] === '(') return text[end - 1] === ')';
	return end - head === 3 && text.startsWith('use', head);
}
