/**
 * The formatter: brings white space and line breaks of a configuration into canonical form, working on characters, not on the
 * tree.
 * It matches the compatible server's formatter, except on texts where that one loses something, changes the meaning, or gives a
 * different result the second time:
 *
 * - a `{` that ends the file stays;
 * - white space after an escaped character (`\{ x`) stays, and a `\` that begins a line also begins one in the result;
 * - a quote that comes first on a line of the result is a quote, because it will be one the next time;
 * - a `}` in a word (`a}`, `{2}`) is text unless braces are missing in the file, and carriage returns inside words are removed;
 * - a `}` that closes a block also ends a brace that was glued to a word in it (`{b`);
 * - quotes and heredocs that begin after a `#` inside a word, which is not a comment to the lexer, keep their text;
 * - an empty line between `import` and a `{` of its own, or after that, does not join them;
 * - a `<<E` that is not a heredoc only because of white space at the end of its line, or the end of the file, gets a `\` before it;
 * - a `{$NAME:default}` that spans lines, or contains a `{`, a quote or a `#`, stays unchanged;
 * - in a Configfile, `} else` stays on its line, a `{` below a `let` line stays on its own, and the value of `name="a  b"` is quoted text.
 */
import { isWhiteSpace } from './characters.ts';

/** Maximum tabs of indentation. */
const maxIndent = 10;
/** A backslash at the end of a line, before an empty line and a `}`. */
const emptyContinuation = /^\\\r?\n(?=[ \t\r]*\n\s*\})/;

/** Text inside `{$…}` that would be misread as a block, newline, quote or comment. */
const readAsMore = /(?!^)[{\n"`#\\]|\s\}$/;

/** A word and the rest of its line, if the rest is only white space and more than the newline. */
const wordAtLineEnd = /[^ \n]*(?: [^\S\n]*\n|[^\S\n]*$)/y;

const heredocMarker = /^[A-Za-z0-9_-]+$/;
const parameterBefore = /(?:^|\s)[A-Za-z_][A-Za-z0-9_-]*=$/;

/**
 * Returns the text with canonical indentation (one tab per level), spacing, blank lines and brace placement, ending in one
 * newline. Never fails and never reorders; accepts broken nesting. Text in quotes, backticks, heredocs and comments stays
 * unchanged, as does a whole text with a quote in an environment variable that spans lines. Formatting is idempotent.
 */
export function formatText(text: string): string {
	const trimmed = trimWhiteSpace(text);
	if (hasQuoteInSpan(trimmed)) return `${trimmed}\n`;
	const machine = new FormatMachine(trimmed, true);
	let formatted = machine.run();
	if (machine.closedInWord) {
		const words = new FormatMachine(trimmed, false);
		const whole = words.run();
		if (words.balanced) formatted = whole;
	}
	return `${trimWhiteSpace(formatted)}\n`;
}

/**
 * Reports whether an environment variable, `{$…}`, spans lines and contains a quote. It is replaced before words are
 * recognized, so its quote neither opens nor closes anything, and the lines after it are not what they seem.
 */
function hasQuoteInSpan(text: string): boolean {
	for (let start = text.indexOf('{$'); start !== -1; ) {
		const end = text.indexOf('}', start);
		if (end === -1) return false;
		const span = text.slice(start, end);
		if (span.includes('\n') && /["`]/.test(span)) return true;
		start = text.indexOf('{$', end);
	}
	return false;
}

function trimWhiteSpace(text: string): string {
	let start = 0;
	let end = text.length;
	while (start < end && isWhiteSpace(text.charCodeAt(start))) start++;
	while (end > start && isWhiteSpace(text.charCodeAt(end - 1))) end--;
	return text.slice(start, end);
}

/** A `{` that has been read. Only the next character shows whether it opens a block. */
interface Brace {
	written: boolean;
	/** True if the space before it has been printed. */
	spaced: boolean;
	/** True if it was the first character on its line. */
	own: boolean;
}

class FormatMachine {
	readonly #input: string;
	#out = '';
	/**
	 * The last character printed, kept separately because reading it from a growing string would flatten the string each time.
	 */
	#last = '';
	#at = 0;
	#depth = 0;
	/** True if white space precedes the current character. */
	#gap = true;
	/** True if only closing braces have been printed on this line. */
	#fresh = true;
	/** Number of newlines read since something was last printed. */
	#newlines = 0;
	#brace: Brace | undefined;
	#quote: '"' | '`' | undefined;
	#comment = false;
	/** True if, to the lexer, the `#` of this comment is part of a word, so that quotes after it are quotes. */
	#hashInWord = false;
	#escaped = false;
	#heredoc: 'opening' | 'inside' | undefined;
	#heredocEscaped = false;
	/** True if the previous character was a `<` that begins a word. */
	#mayOpenHeredoc = false;
	#marker = '';
	#closing = '';
	/** The first word of the current line, as far as it has been read. */
	#firstWord = '';
	#firstWordEnded = false;
	/** True if the previous line began with `import` at the top level. */
	#afterImport = false;

	/** True if a `}` at the end of a word closed a block. */
	closedInWord = false;
	readonly #closesInWords: boolean;
	/** Number of open blocks. */
	#open = 0;
	/** True if there has been a `}` without a block. */
	#tooMany = false;

	/** @param closesInWords True if a `}` at the end of a word closes a block, as is assumed for texts where braces are missing. */
	constructor(input: string, closesInWords: boolean) {
		this.#input = input;
		this.#closesInWords = closesInWords;
	}

	run(): string {
		for (; this.#at < this.#input.length; this.#at++) this.#read(this.#input[this.#at]!);
		if (this.#brace && !this.#brace.written) {
			this.#open++;
			this.#writeBrace(this.#brace);
		}
		return this.#out;
	}

	/** True if every block was closed, and there was no other `}`. */
	get balanced(): boolean {
		return this.#open === 0 && !this.#tooMany;
	}

	#print(c: string): void {
		this.#out += c;
		this.#last = c;
	}

	#newline(): void {
		this.#print('\n');
		this.#fresh = true;
	}

	#indent(): void {
		for (let level = 0; level < this.#depth; level++) this.#print('\t');
	}

	#read(c: string): void {
		if (this.#mayOpenHeredoc) {
			this.#mayOpenHeredoc = false;
			if (c === '<') {
				this.#print(c);
				this.#heredoc = 'opening';
				return;
			}
		}
		if (this.#heredoc && this.#readHeredoc(c)) return;
		if (this.#comment) this.#readComment(c);
		else if (this.#escaped) this.#readEscaped(c);
		else if (c === '\\' && this.#quote !== '`') this.#readBackslash();
		else if (this.#quote) {
			this.#print(c);
			if (c === this.#quote) this.#quote = undefined;
		} else if (c === '\r' && !this.#gap && this.#insideWord()) return;
		else if (isWhiteSpace(c.charCodeAt(0))) this.#readWhiteSpace(c);
		else this.#readRegular(c);
	}

	/**
	 * Reports whether the word ahead is a `<<E` that is an ordinary word only because of the white space or end of text after it,
	 * which is about to change.
	 */
	#wouldOpenHeredoc(): boolean {
		if (this.#heredocEscaped || this.#input[this.#at + 1] !== '<') return false;
		wordAtLineEnd.lastIndex = this.#at;
		return wordAtLineEnd.test(this.#input);
	}

	/** Reports whether the current character is inside a word. The lexer ignores carriage returns, so the text around one is a single word. */
	#insideWord(): boolean {
		let next = this.#at;
		while (this.#input[next] === '\r') next++;
		return next < this.#input.length && !isWhiteSpace(this.#input.charCodeAt(next));
	}

	/** Reports whether the last character was a `}`. */
	#closedBefore(): boolean {
		return this.#fresh && this.#last === '}';
	}

	/** Processes a character of a heredoc. Returns true if the heredoc consumed it. */
	#readHeredoc(c: string): boolean {
		const space = isWhiteSpace(c.charCodeAt(0));
		if (this.#heredoc === 'opening') {
			// The lexer ignores a carriage return here too, even at the end of the line.
			if (c === '\r') return true;
			if (c === '\n') {
				const valid = heredocMarker.test(this.#marker);
				this.#heredoc = valid ? 'inside' : undefined;
				if (valid) this.#print(c);
				else {
					this.#marker = '';
					this.#endOfSourceLine();
					this.#newline();
				}
				return true;
			}
			// To the lexer, only a space ends the word here.
			if (c !== ' ') {
				this.#marker += c;
				this.#print(c);
				return true;
			}
		} else {
			if (!space || this.#closing !== this.#marker) {
				this.#closing = c === '\n' ? '' : (this.#closing + c).slice(-this.#marker.length);
				this.#print(c);
				return true;
			}
		}
		this.#heredoc = undefined;
		this.#marker = '';
		this.#closing = '';
		return false;
	}

	#readComment(c: string): void {
		if (c !== '\n') {
			const begins = this.#hashInWord && isWhiteSpace(this.#last.charCodeAt(0));
			const opens = begins && this.#goesBeyondLine(c);
			if (begins && c === '#') this.#hashInWord = false;
			this.#print(c);
			if (!opens) return;
			this.#comment = false;
			this.#gap = false;
			if (c === '<') this.#mayOpenHeredoc = true;
			else this.#quote = c as '"' | '`';
			return;
		}
		this.#comment = false;
		this.#gap = true;
		this.#newline();
		this.#beginLine();
		this.#afterImport = false;
	}

	/** Returns true if the character opens a quote that continues after this line, or may open a heredoc. */
	#goesBeyondLine(c: string): boolean {
		if (c === '<') return this.#input[this.#at + 1] === '<';
		if (c !== '"' && c !== '`') return false;
		const lineEnd = this.#input.indexOf('\n', this.#at);
		const close = this.#input.indexOf(c, this.#at + 1);
		return lineEnd !== -1 && (close === -1 || close > lineEnd);
	}

	/** Prepares for a word that will be the first on its line, in the input or once printed. */
	#beginLine(): void {
		this.#firstWord = '';
		this.#firstWordEnded = false;
		this.#heredocEscaped = false;
	}

	#readBackslash(): void {
		// A continuation ends at an empty line. Without that line, it would continue onto the `}` after it.
		const empty = this.#quote ? null : emptyContinuation.exec(this.#input.slice(this.#at, this.#at + 4096));
		if (empty) {
			this.#at += empty[0].length - 1;
			return;
		}
		// Where a line or block is about to begin, a backslash begins it like any other character.
		const braceWaits = this.#brace && !this.#brace.written;
		if (!this.#quote && (this.#gap || this.#fresh || braceWaits)) this.#readRegular('\\');
		else this.#print('\\');
		this.#escaped = true;
	}

	#readEscaped(c: string): void {
		if (c === '<') this.#heredocEscaped = true;
		this.#print(c);
		this.#escaped = false;
	}

	#readWhiteSpace(c: string): void {
		this.#gap = true;
		this.#heredocEscaped = false;
		if (this.#firstWord !== '') this.#firstWordEnded = true;
		if (c !== '\n') return;
		this.#newlines++;
		this.#endOfSourceLine();
	}

	#endOfSourceLine(): void {
		// An empty line after a lone `{` must not end the line, because the brace would then join the line before it.
		const onlyBrace = this.#firstWord === '{' && this.#brace?.own === true && !this.#brace.written;
		if (!onlyBrace && this.#firstWord !== '')
			this.#afterImport = this.#depth === 0 && (this.#firstWord === 'import' || this.#firstWord === 'let');
		this.#beginLine();
	}

	#readRegular(c: string): void {
		const gap = this.#gap;
		this.#gap = false;
		if (c === '#') {
			this.#comment = true;
			this.#hashInWord = !gap && !this.#fresh && this.#last !== '"' && this.#last !== '`';
		}
		if (this.#brace && !this.#brace.written && gap) this.#openBlock(this.#brace);
		if (!this.#firstWordEnded) this.#firstWord += c;
		if (c === '{') {
			if (this.#brace && !this.#brace.written) {
				// `{{` is text, whatever follows it.
				this.#startWord(c, false);
				this.#printBrace(this.#brace);
				this.#print(c);
				return;
			}
			if (this.#copyEnvironmentSpan(gap)) return;
			const spaced = gap && !this.#fresh;
			const now = spaced && this.#newlines === 0;
			if (now) this.#print(' ');
			this.#brace = { written: false, spaced: now, own: this.#newlines > 0 };
			return;
		}
		// The lexer also begins a new word after a continued line.
		const begins = gap || this.#last === '\n';
		if (c === '}' && (begins || (!this.#brace && (this.#closesInWords || this.#closedBefore())))) {
			if (!begins) this.closedInWord = true;
			this.#closeBlock();
			return;
		}
		if ((c === '"' || c === '`') && (begins || this.#fresh || c === '`' || this.#opensNamedValue())) this.#quote = c;
		const fresh = this.#fresh;
		this.#startWord(c, gap);
		if (c === '<' && (begins || fresh) && this.#wouldOpenHeredoc()) {
			this.#print('\\');
			this.#heredocEscaped = true;
		}
		if (this.#brace && !this.#brace.written) this.#printBrace(this.#brace);
		this.#print(c);
		this.#fresh = false;
		this.#mayOpenHeredoc = c === '<' && (begins || fresh) && !this.#heredocEscaped;
	}

	/** Copies a `{$NAME:default}` that would otherwise be read as more than a word, and returns true. The lexer never sees its text. */
	#copyEnvironmentSpan(gap: boolean): boolean {
		if (this.#input[this.#at + 1] !== '$') return false;
		const close = this.#input.indexOf('}', this.#at);
		if (close < this.#at + 3) return false;
		const span = this.#input.slice(this.#at, close + 1);
		if (!readAsMore.test(span)) return false;
		this.#startWord('{', gap);
		this.#out += span;
		this.#last = '}';
		this.#at = close;
		this.#fresh = false;
		this.#brace = { written: true, spaced: false, own: false };
		return true;
	}

	/** Prints a `{` that turned out to begin a word. */
	#printBrace(brace: Brace): void {
		this.#print('{');
		brace.written = true;
		this.#fresh = false;
	}

	/** Prints what precedes a word: newlines, indentation or a space. */
	#startWord(c: string, gap: boolean): void {
		if (c === 'e' && this.#continuesWithElse()) {
			this.#print(' ');
			return;
		}
		for (let count = Math.min(this.#newlines, 2); count > 0; count--) this.#newline();
		this.#newlines = 0;
		if (this.#fresh) {
			const closed = this.#depth === 0 && this.#last === '}';
			this.#indent();
			if (closed) {
				this.#newline();
				this.#newline();
			}
		} else if (gap) this.#print(' ');
	}

	/** Reports whether `else` follows, which in a Configfile belongs on the line of the preceding `}`. */
	#continuesWithElse(): boolean {
		if (!this.#fresh || this.#newlines > 0 || this.#last !== '}') return false;
		// Carriage returns in a word are ignored.
		const ahead = this.#input.slice(this.#at, this.#at + 16).replaceAll('\r', '');
		return /^else(?![^\s{}])/.test(ahead);
	}

	/** Reports whether a quote opens the value of `name="value"`, which a Configfile allows in the head of a snippet and after `use`. Nowhere else can a quote be inside a word. */
	#opensNamedValue(): boolean {
		if (this.#last !== '=') return false;
		const named = this.#firstWord === 'use' || (this.#firstWord.startsWith('(') && this.#firstWord.endsWith(')'));
		return named && parameterBefore.test(this.#out.slice(-200));
	}

	#openBlock(brace: Brace): void {
		this.#open++;
		this.#writeBrace(brace);
		this.#newline();
		this.#newlines = 0;
		if (this.#depth < maxIndent) this.#depth++;
		this.#brace = undefined;
		this.#beginLine();
	}

	#writeBrace(brace: Brace): void {
		if (this.#depth === 0 && this.#fresh && this.#last === '}') {
			this.#newline();
			this.#newline();
		} else if (this.#fresh && this.#last === '}') this.#newline();
		if (brace.own && this.#afterImport && !this.#fresh) this.#newline();
		if (this.#fresh) this.#indent();
		else if (!brace.spaced) this.#print(' ');
		this.#print('{');
	}

	#closeBlock(): void {
		if (--this.#open < 0) this.#tooMany = true;
		if (this.#last !== '\n') this.#newline();
		if (this.#depth > 0) this.#depth--;
		this.#indent();
		this.#print('}');
		this.#newlines = 0;
		this.#brace = undefined;
		this.#beginLine();
	}
}
