/**
 * Cuts a configuration text at the top level, after every closed block and every import, into pieces that can be parsed separately
 * and whose results can be reused.
 */
import type { Dialect } from '../dialects/dialect.ts';
import { LF, whiteSpaceClass } from './characters.ts';
import { endOfPlainWord, scanWord } from './scan-word.ts';
import { CloseBrace, Comment, maxWordsBeforeValue, OpenBrace } from './tokens.ts';

const blankLine = /[ \t\r]*\n/y;
// Matches a line that consists of plain words and of quotes that are closed on the same line. Most lines are of this kind, and are
// skipped in one step.
const plainLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*\r?\n/y;
// Matches a plain line that ends with `{`.
const openingLine = /[^\n"`\\#{}<\r]*(?:[ \t]"[^"\\\n]*"[^\n"`\\#{}<\r]*)*[ \t]\{\r?\n/y;
// Matches a line that has only a `}`.
const closingLine = /[ \t]*\}\r?\n/y;
// Matches the beginning of a top-level line that is complete without a block.
const blocklessLineStart = /[ \t]*(?:import|use|let)[ \t]/y;

const blankSpace = new RegExp(`[${whiteSpaceClass.replace('\\t-\\r', '\\t\\v-\\r')}]+`, 'y');
const commentPattern = stickyPattern(Comment.PATTERN);
const openBracePattern = stickyPattern(OpenBrace.PATTERN);
const closeBracePattern = stickyPattern(CloseBrace.PATTERN);

function stickyPattern(pattern: unknown): RegExp {
	return new RegExp((pattern as RegExp).source, 'y');
}

/** A range of a text, from `start` up to, but not including, `end`. */
export interface TextExtent {
	readonly start: number;
	readonly end: number;
}

/**
 * Returns the pieces of a text, in order. Returns undefined if the braces do not balance, because the ends of pieces would then be
 * uncertain, or if the text has a byte order mark.
 *
 * A piece ends with the top-level line that closes a block, imports something or defines a constant. Comments and blank lines
 * before the first word of a piece belong to no piece. Apart from newlines, the tokens of the pieces, one piece after another,
 * are the tokens of the complete text, and no line continues into the next piece. Environment variables in `text` have already
 * been replaced.
 */
export function cutAtTopLevel(text: string, dialect: Dialect): TextExtent[] | undefined {
	if (text.charCodeAt(0) === 0xfeff) return undefined;
	const pieces: TextExtent[] = [];
	const lineScanner = new LineScanner(text, dialect);
	let pieceStart = -1;
	while (lineScanner.offset < text.length) {
		const lineStart = lineScanner.offset;
		lineScanner.scanLine();
		if (lineScanner.depth < 0) return undefined;
		if (pieceStart === -1 && !lineScanner.isBlank) pieceStart = lineStart;
		if (!lineScanner.pieceEnded) continue;
		pieces.push({ start: pieceStart, end: lineScanner.offset });
		pieceStart = -1;
	}
	if (pieceStart !== -1) pieces.push({ start: pieceStart, end: text.length });
	return lineScanner.depth === 0 ? pieces : undefined;
}

/** Scans a text line by line by the rules of the lexer, without creating tokens. */
class LineScanner {
	/** The offset at which the next line begins. */
	offset = 0;
	/** Number of open blocks; negative after an unmatched closing brace. */
	depth = 0;
	/** True if the last line ended a piece. */
	pieceEnded = false;
	/** True if the last line contained only white space and comments. */
	isBlank = false;
	readonly #text: string;
	readonly #allowsNamedValues: boolean;

	constructor(text: string, dialect: Dialect) {
		this.#text = text;
		this.#allowsNamedValues = dialect === 'configfile';
	}

	/** Advances to the next line. */
	scanLine(): void {
		this.pieceEnded = false;
		this.isBlank = this.#skipPattern(blankLine);
		if (this.isBlank) return;
		const isBlocklessLine = this.depth === 0 && matchesAt(blocklessLineStart, this.#text, this.offset);
		this.#scanNonBlankLine();
		if (isBlocklessLine) this.pieceEnded = this.depth === 0;
	}

	#scanNonBlankLine(): void {
		if (this.#skipPattern(plainLine)) return;
		if (this.#skipPattern(openingLine)) {
			this.depth++;
			return;
		}
		if (this.#skipPattern(closingLine)) {
			this.depth--;
			this.pieceEnded = this.depth === 0;
			return;
		}
		this.isBlank = true;
		this.#scanTokens();
	}

	#skipPattern(pattern: RegExp): boolean {
		if (!matchesAt(pattern, this.#text, this.offset)) return false;
		this.offset = pattern.lastIndex;
		return true;
	}

	/** Scans a line token by token. A quote or comment may extend it over several lines. */
	#scanTokens(): void {
		const text = this.#text;
		/** Start of the first word since the last brace; −1 if there is none. */
		let headStart = -1;
		/** End of the word at `headStart`; −1 if the word has quotes or escapes. */
		let headEnd = -1;
		let wordCount = 0;
		const acceptsNamedValue = (): boolean =>
			wordCount <= maxWordsBeforeValue && takesNamedValues(text, headStart, headEnd);
		while (this.offset < text.length) {
			if (this.#skipPattern(blankSpace) || this.#skipPattern(commentPattern)) continue;
			if (text.charCodeAt(this.offset) === LF) {
				this.offset++;
				return;
			}
			this.isBlank = false;
			if (this.#skipPattern(openBracePattern)) {
				this.depth++;
				this.pieceEnded = false;
				wordCount = 0;
				continue;
			}
			if (this.#skipPattern(closeBracePattern)) {
				this.depth--;
				if (this.depth < 0) return;
				this.pieceEnded = this.depth === 0;
				wordCount = 0;
				continue;
			}
			this.pieceEnded = false;
			const wordStart = this.offset;
			const wordEnd = endOfPlainWord(text, wordStart, this.#allowsNamedValues);
			const takesValue = this.#allowsNamedValues && wordCount > 0 ? acceptsNamedValue : undefined;
			this.offset = wordEnd === -1 ? scanWord(text, wordStart, takesValue).end : wordEnd;
			if (wordCount++ > 0) continue;
			headStart = wordStart;
			// The value of a word with quotes or escapes differs from its source text.
			headEnd = wordEnd === -1 ? -1 : wordEnd;
		}
	}
}

function matchesAt(pattern: RegExp, text: string, offset: number): boolean {
	pattern.lastIndex = offset;
	return pattern.test(text);
}

/**
 * Reports whether a quote after `NAME=` begins a value, as it does in the head of a snippet and after `use`. `headStart` and
 * `headEnd` delimit the first word of the line.
 */
function takesNamedValues(text: string, headStart: number, headEnd: number): boolean {
	if (headEnd === -1) return false;
	if (text[headStart] === '(') return text[headEnd - 1] === ')';
	return headEnd - headStart === 3 && text.startsWith('use', headStart);
}
