/**
 * The formatter: white space and line breaks of a configuration in their canonical form, by characters, not by tree.
 *
 * It does what the compatible server's formatter does, but for texts of which that one loses something, changes what they
 * mean, or gives another result the second time:
 *
 * - a `{` that ends the file stays;
 * - white space behind an escaped character (`\{ x`) stays, and a `\` that begins a line begins one in the result;
 * - a quote that stands first on a line of the result is a quote, for it will be one the next time;
 * - a `}` in a word (`a}`, `{2}`) is text unless braces are missing in the file, and a carriage return inside a word goes;
 * - a `}` that closes a block also ends a brace that was glued to a word in it (`{b`);
 * - quotes and heredocs that begin behind a `#` inside a word, which is no comment to the lexer, keep their text;
 * - an empty line between `import` and a `{` of its own, or behind that, does not join them;
 * - a `<<E` that white space at the end of its line, or the end of the file, keeps from being a heredoc gets a `\` before it;
 * - a `{$NAME:default}` over several lines, or with a `{`, a quote or a `#` in it, stays as it is;
 * - Configfile's `} else` stays on its line, a `{` below a `let` line stays on its own, and the value of `name="a  b"` is quoted text.
 */
import { isWhiteSpace } from './characters.ts';

/** Tabs written at most. */
const deepestIndent = 10;
/** A backslash at the end of a line, before an empty line and a `}`. */
const emptyContinuation = /^\\\r?\n(?=[ \t\r]*\n\s*\})/;

/** What in an environment span would be read as a block, a line, a quote or a comment. */
const readAsMore = /(?!^)[{\n"`#\\]|\s\}$/;

/** A word and the rest of its line, where that is white space and more than the line's end. */
const wordAtLineEnd = /[^ \n]*(?: [^\S\n]*\n|[^\S\n]*$)/y;

const heredocMarker = /^[A-Za-z0-9_-]+$/;
const parameterBefore = /(?:^|\s)[A-Za-z_][A-Za-z0-9_-]*=$/;

/**
 * The text with canonical indentation (one tab a level), spacing, blank lines and brace placement, ending in one
 * newline. Never fails and never reorders; broken nesting is accepted. A text
 * with a quote in an environment variable that spans lines stays as it is. What stands in quotes, backticks, heredocs and
 * comments stays as it is. Formatting the result again changes nothing.
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
 * recognized, so that such a quote neither opens nor closes anything, and lines after it are not what they seem to be.
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

/** A `{` that was read: whether it opens a block shows only at the next character. */
interface Brace {
	written: boolean;
	/** The space before it is out already. */
	spaced: boolean;
	/** It stood first on its line. */
	own: boolean;
}

class FormatMachine {
	readonly #input: string;
	#out = '';
	/** The last character printed. Kept apart: reading it from a growing string would flatten that each time. */
	#last = '';
	#at = 0;
	#depth = 0;
	/** White space stood before the character at hand. */
	#gap = true;
	/** Nothing but closing braces was printed on this line yet. */
	#fresh = true;
	/** Newlines read since something was last printed. */
	#newlines = 0;
	#brace: Brace | undefined;
	#quote: '"' | '`' | undefined;
	#comment = false;
	/** The comment is none to the lexer: its `#` stands inside a word, and quotes behind it are quotes. */
	#hashInWord = false;
	#escaped = false;
	#heredoc: 'opening' | 'inside' | undefined;
	#heredocEscaped = false;
	/** The character before was a `<` that begins a word. */
	#mayOpenHeredoc = false;
	#marker = '';
	#closing = '';
	/** First word of the line being read, as far as it was read. */
	#firstWord = '';
	#firstWordEnded = false;
	/** The line before began with `import` at the outermost level. */
	#afterImport = false;

	/** A `}` at the end of a word closed a block. */
	closedInWord = false;
	readonly #closesInWords: boolean;
	/** Blocks open, and whether there was a `}` too many. */
	#open = 0;
	#tooMany = false;

	/** `closesInWords`: a `}` glued to a word closes a block, as it does where braces are missing. */
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

	/** Every block that was opened was closed, and no other. */
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

	/** True before a `<<E` that is a word for the white space behind it, or for the end of the text, which are about to go or to change. */
	#wouldOpenHeredoc(): boolean {
		if (this.#heredocEscaped || this.#input[this.#at + 1] !== '<') return false;
		wordAtLineEnd.lastIndex = this.#at;
		return wordAtLineEnd.test(this.#input);
	}

	/** To the lexer a carriage return is nothing: words on both sides of it are one. */
	#insideWord(): boolean {
		let next = this.#at;
		while (this.#input[next] === '\r') next++;
		return next < this.#input.length && !isWhiteSpace(this.#input.charCodeAt(next));
	}

	/** A `}` stands right before. */
	#closedBefore(): boolean {
		return this.#fresh && this.#last === '}';
	}

	/** True if the heredoc took the character. */
	#readHeredoc(c: string): boolean {
		const space = isWhiteSpace(c.charCodeAt(0));
		if (this.#heredoc === 'opening') {
			// To the lexer it is nothing here either, at the end of the line least of all.
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
			// Only a blank ends the word here, to the lexer.
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

	/** True if the character opens a quote that goes on after this line, or may open a heredoc. */
	#goesBeyondLine(c: string): boolean {
		if (c === '<') return this.#input[this.#at + 1] === '<';
		if (c !== '"' && c !== '`') return false;
		const lineEnd = this.#input.indexOf('\n', this.#at);
		const close = this.#input.indexOf(c, this.#at + 1);
		return lineEnd !== -1 && (close === -1 || close > lineEnd);
	}

	/** What is read next is the first word of a line, or will be once it is printed. */
	#beginLine(): void {
		this.#firstWord = '';
		this.#firstWordEnded = false;
		this.#heredocEscaped = false;
	}

	#readBackslash(): void {
		// What continues on an empty line ends there; without that line the `}` after it would be what continues.
		const empty = this.#quote ? null : emptyContinuation.exec(this.#input.slice(this.#at, this.#at + 4096));
		if (empty) {
			this.#at += empty[0].length - 1;
			return;
		}
		// Where a line or block is still to be begun, a backslash begins it like any other character.
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
		// An empty line ends nothing: the brace would join the line before it.
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
				// `{{` is text, whatever follows.
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
		// After a continued line too: the lexer begins a word there.
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

	/** True if a `{$NAME:default}` begins here that would be read as more than a word. The lexer never sees its text. */
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

	/** Prints a `{` that turned out to be the beginning of a word. */
	#printBrace(brace: Brace): void {
		this.#print('{');
		brace.written = true;
		this.#fresh = false;
	}

	/** Prints what stands before a word: line breaks, indentation or a space. */
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

	/** Configfile's `} else`: belongs on the line of its `}`. */
	#continuesWithElse(): boolean {
		if (!this.#fresh || this.#newlines > 0 || this.#last !== '}') return false;
		// Carriage returns in a word are nothing.
		const ahead = this.#input.slice(this.#at, this.#at + 16).replaceAll('\r', '');
		return /^else(?![^\s{}])/.test(ahead);
	}

	/** Configfile's `name="value"`, in the head of a snippet and after `use`: the only quote inside a word. */
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
		if (this.#depth < deepestIndent) this.#depth++;
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
