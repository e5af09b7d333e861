/**
 * Reads a configuration character by character, and prints it with canonical white space and line breaks. The rules are in
 * `format.ts`.
 */
import { isWhiteSpace } from './characters.ts';
import { scanWord } from './scan-word.ts';

/** Maximum number of tabs by which a line is indented. */
const maxIndent = 10;
/**
 * Matches a backslash at the end of a line, or several on lines of their own, before an empty line and a `}`. The group is the white
 * space between the first backslash and the newline.
 */
const emptyContinuation = /^\\([^\S\n]*)\n(?:[^\S\n]*\\[^\S\n]*\n)*(?=[ \t\r]*\n\s*\})/;

/** Matches text inside `{$…}` that would be misread as a block, newline, quote or comment, or whose carriage returns would be lost. */
const misreadSpan = /(?!^)[{\r\n"`#\\]|\s\}$/;

/**
 * Matches a word `<<E` and the white space after it up to the end of the line, a `}` or a backslash, unless a newline follows the word
 * directly. The group is the character that was found.
 */
const wordBeforeLineEnd = /<\r*<[\S\r]*(?: [^\S\n]*([\n}\\])|$)/y;

/** Matches what opens a heredoc to the lexer if it begins a word. */
const heredocOpening = /<\r*<[\S\r]*\n/y;

/** Matches a word at the end of the file that would open a heredoc if a newline followed. */
const heredocWordAtEnd = /<\r*<[\S\r]*$/y;

const validHeredocMarker = /^[A-Za-z0-9_-]+$/;
const parameterNameAtEnd = /(?:^|\s)[A-Za-z_][A-Za-z0-9_-]*=$/;

/** A `{` that has been read, but not printed yet: the next character shows whether it opens a block. */
interface BraceState {
	isWritten: boolean;
	/** True if the space before the brace has been printed. */
	hasSpaceBefore: boolean;
	/** True if the brace was the first character on its line. */
	startsLine: boolean;
}

/** Formats one text, or the part of it after a block of the top level. */
export class FormatMachine {
	readonly #input: string;
	#output = '';
	/**
	 * The last character that was printed. It is kept separately, because reading it from a growing string would flatten the string
	 * each time.
	 */
	#lastPrinted = '';
	#offset = 0;
	#indentLevel = 0;
	/** True if the current character follows white space. */
	#afterSpace = true;
	/** True if only closing braces have been printed on this line. */
	#atLineStart = true;
	/** Number of newlines that have been read since something was last printed. */
	#newlinesRead = 0;
	#pendingBrace: BraceState | undefined;
	#openQuote: '"' | '`' | undefined;
	#inComment = false;
	/** True if, to the lexer, the `#` of the current comment is part of a word, so that quotes after it are quotes. */
	#hashInWord = false;
	#afterBackslash = false;
	/** True if the backslash before the current character begins a word, or only white space is between the two. */
	#backslashBeginsWord = false;
	/** True if the lexer begins a word at the current character, although no white space that may be changed is before it. */
	#wordEnded = false;
	#heredocState: 'opening' | 'inside' | undefined;
	#heredocEscaped = false;
	/** True if the previous character was a `<` that begins a word. */
	#mayOpenHeredoc = false;
	#heredocMarker = '';
	#heredocTail = '';
	/** Offset of the `}` that was last searched for, and infinite if there was none. */
	#closeBraceOffset = -1;
	/** The part of the first word on the current line that has been read. */
	#firstWord = '';
	#firstWordEnded = false;
	/** True if the previous line began with `import` or `let` at the top level. */
	#afterImport = false;

	/** True if a `}` at the end of a word has closed a block. */
	closedInWord = false;
	readonly #closesInWords: boolean;
	#openBlockCount = 0;

	/**
	 * @param closesInWords True if a `}` at the end of a word closes a block, which is assumed for texts with missing braces.
	 * @param start Offset in the input. Unless it is 0, it must follow the line that closes a block of the top level.
	 */
	constructor(input: string, closesInWords: boolean, start = 0) {
		this.#input = input;
		this.#closesInWords = closesInWords;
		if (start === 0) return;
		this.#offset = start;
		this.#lastPrinted = '}';
		this.#newlinesRead = 1;
	}

	/** Reads up to an offset of the input. Reads on after it only to complete an environment variable that contains it. */
	readUntil(end: number): void {
		for (; this.#offset < end; this.#offset++) this.#readCharacter(this.#input[this.#offset]!);
	}

	/** True directly after a line that closes a top-level block, where formatting can also begin with a new machine. */
	get isAfterBlock(): boolean {
		const isOutsideOfBlocks = this.#indentLevel === 0 && this.#pendingBrace === undefined && this.#lastPrinted === '}';
		const isOutsideOfTexts =
			this.#openQuote === undefined && !this.#inComment && !this.#afterBackslash && this.#heredocState === undefined;
		const isAtLineStart =
			this.#atLineStart &&
			this.#afterSpace &&
			this.#newlinesRead === 1 &&
			this.#firstWord === '' &&
			!this.#firstWordEnded &&
			!this.#afterImport &&
			!this.#heredocEscaped &&
			!this.#mayOpenHeredoc &&
			this.#heredocMarker === '' &&
			this.#heredocTail === '';
		return isOutsideOfBlocks && isOutsideOfTexts && isAtLineStart;
	}

	/** Returns what has been printed since the last call. */
	takeOutput(): string {
		const output = this.#output;
		this.#output = '';
		return output;
	}

	/** Reads the rest of the input. Returns what has been printed since the last call of `takeOutput`. */
	run(): string {
		this.readUntil(this.#input.length);
		if (this.#pendingBrace && !this.#pendingBrace.isWritten) {
			this.#openBlockCount++;
			this.#printBlockBrace(this.#pendingBrace);
		}
		return this.#output;
	}

	/** True if a block has not been closed. A `}` that closes no block does not count. */
	get hasOpenBlock(): boolean {
		return this.#openBlockCount > 0;
	}

	#print(char: string): void {
		this.#output += char;
		this.#lastPrinted = char;
	}

	#printNewline(): void {
		this.#print('\n');
		this.#atLineStart = true;
	}

	#printIndent(): void {
		for (let level = 0; level < this.#indentLevel; level++) this.#print('\t');
	}

	#readCharacter(char: string): void {
		if (this.#mayOpenHeredoc && char !== '\r') {
			this.#mayOpenHeredoc = false;
			if (char === '<') {
				this.#print(char);
				this.#heredocState = 'opening';
				return;
			}
		}
		if (this.#heredocState && this.#readHeredoc(char)) return;
		if (this.#inComment) this.#readComment(char);
		else if (this.#afterBackslash) this.#readEscaped(char);
		else if (char === '\\' && this.#openQuote !== '`') this.#readBackslash();
		else if (this.#openQuote) {
			if (char === '{' && this.#copyVariable()) return;
			this.#print(char);
			if (char !== this.#openQuote) return;
			this.#openQuote = undefined;
			this.#wordEnded = true;
		} else if (char === '\r' && this.#followsUnwrittenBrace() && this.#nextInWord() === '$') this.#readRegular(char);
		else if (char === '\r' && !this.#afterSpace && this.#nextInWord() !== undefined) return;
		else if (isWhiteSpace(char.charCodeAt(0))) this.#readWhiteSpace(char);
		else this.#readRegular(char);
	}

	/**
	 * Reports whether the next word is a `<<E` that is plain text only because of the white space or the end of the text after it,
	 * which formatting is about to change.
	 */
	#wouldOpenHeredoc(): boolean {
		if (this.#heredocEscaped) return false;
		wordBeforeLineEnd.lastIndex = this.#offset;
		const match = wordBeforeLineEnd.exec(this.#input);
		if (match?.[1] !== '\\') return match !== null;
		const backslashOffset = wordBeforeLineEnd.lastIndex - 1;
		return emptyContinuation.test(this.#input.slice(backslashOffset, backslashOffset + 4096));
	}

	/**
	 * Returns the character after the carriage returns at the current offset if it is part of the same word, and otherwise undefined.
	 * The lexer ignores carriage returns, so the text on both sides of one is a single word.
	 */
	#nextInWord(): string | undefined {
		let index = this.#offset;
		while (this.#input[index] === '\r') index++;
		return index < this.#input.length && !isWhiteSpace(this.#input.charCodeAt(index)) ? this.#input[index] : undefined;
	}

	#followsUnwrittenBrace(): boolean {
		return this.#pendingBrace?.isWritten === false && !this.#afterSpace;
	}

	/** Reports whether the lexer begins a word at the current character. */
	#startsWord(afterSpace: boolean): boolean {
		if (afterSpace) return true;
		if (this.#pendingBrace?.isWritten === false) return false;
		// The lexer also begins a new word after a continued line.
		return this.#atLineStart || this.#wordEnded || this.#lastPrinted === '\n';
	}

	/** Reports whether the last printed character was a `}` that closes a block. */
	#followsCloseBrace(): boolean {
		return this.#atLineStart && this.#lastPrinted === '}';
	}

	/** Processes a character of a heredoc. Returns false if the heredoc has ended before the character. */
	#readHeredoc(char: string): boolean {
		const isSpace = isWhiteSpace(char.charCodeAt(0));
		if (this.#heredocState === 'opening') {
			// The lexer ignores a carriage return here as well, even at the end of a line.
			if (char === '\r') return true;
			if (char === '\n') {
				const isValidMarker = validHeredocMarker.test(this.#heredocMarker);
				this.#heredocState = isValidMarker ? 'inside' : undefined;
				if (isValidMarker) this.#print(char);
				else {
					this.#heredocMarker = '';
					this.#endSourceLine();
					this.#printNewline();
				}
				return true;
			}
			// To the lexer, only a space means that the `<<E` is an ordinary word rather than the start of a heredoc.
			if (char !== ' ') {
				this.#heredocMarker += char;
				this.#print(char);
				return true;
			}
		} else {
			if (!isSpace || this.#heredocTail !== this.#heredocMarker) {
				this.#heredocTail = char === '\n' ? '' : (this.#heredocTail + char).slice(-this.#heredocMarker.length);
				this.#print(char);
				return true;
			}
		}
		this.#heredocState = undefined;
		this.#heredocMarker = '';
		this.#heredocTail = '';
		return false;
	}

	#readComment(char: string): void {
		if (char !== '\n') {
			const followsSpace = this.#lastPrinted !== '\r' && isWhiteSpace(this.#lastPrinted.charCodeAt(0));
			const atWordStart = this.#hashInWord && (followsSpace || this.#wordEnded);
			this.#wordEnded = false;
			if (!atWordStart) this.#print(char);
			else this.#readAfterHashInWord(char);
			return;
		}
		this.#inComment = false;
		this.#afterSpace = true;
		this.#printNewline();
		if (this.#endsContinuedComment()) this.#printNewline();
		this.#beginLine();
		this.#afterImport = false;
	}

	/** Processes the first character of a word after a `#` that is part of an earlier word, so that no comment has begun. */
	#readAfterHashInWord(char: string): void {
		if (char === '<') {
			const opensHeredoc = this.#matches(heredocOpening);
			if (this.#matches(heredocWordAtEnd)) this.#print('\\');
			this.#print(char);
			if (!opensHeredoc) return;
			this.#inComment = false;
			this.#afterSpace = false;
			this.#mayOpenHeredoc = true;
			return;
		}
		if (char === '"' || char === '`' || char === '\\') {
			const { quote, end, unterminated } = scanWord(this.#input, this.#offset);
			if (quote !== 'none' || unterminated) {
				this.#readQuotedWord(char, end);
				return;
			}
		}
		if (char === '#') this.#hashInWord = false;
		this.#print(char);
	}

	/** Copies a quoted word if it is on one line. Otherwise, begins to read it; what follows it on its last line is formatted. */
	#readQuotedWord(char: string, end: number): void {
		const word = this.#input.slice(this.#offset, end);
		if (!word.includes('\n')) {
			this.#output += word;
			this.#lastPrinted = word.at(-1)!;
			this.#offset = end - 1;
			this.#wordEnded = true;
			return;
		}
		this.#print(char);
		this.#inComment = false;
		this.#afterSpace = false;
		if (char !== '\\') this.#openQuote = char as '"' | '`';
		else {
			this.#afterBackslash = true;
			this.#backslashBeginsWord = true;
		}
	}

	/**
	 * Reports whether a newline ends a comment with a backslash at its end, and an empty line and a `}` follow. Without the empty
	 * line, the line of the comment would continue with the `}`.
	 */
	#endsContinuedComment(): boolean {
		let index = this.#offset - 1;
		while (this.#input[index] === '\r') index--;
		return this.#input[index] === '\\' && emptyContinuation.test(this.#input.slice(index, this.#offset + 4096));
	}

	/** Reports whether a sticky regular expression matches at the current character. */
	#matches(regexp: RegExp): boolean {
		regexp.lastIndex = this.#offset;
		return regexp.test(this.#input);
	}

	/** Prepares for a word that is the first on a line of the input or of the output. */
	#beginLine(): void {
		this.#firstWord = '';
		this.#firstWordEnded = false;
		this.#heredocEscaped = false;
	}

	#readBackslash(): void {
		const beginsWord = !this.#openQuote && this.#startsWord(this.#afterSpace);
		// A continued line ends at an empty line. Without the empty line, the text would continue with the `}` after it.
		const continuation = this.#openQuote
			? null
			: emptyContinuation.exec(this.#input.slice(this.#offset, this.#offset + 4096));
		if (continuation && (beginsWord || this.#followsUnwrittenBrace() || /^\r*$/.test(continuation[1]!))) {
			this.#offset += continuation[0].length - 1;
			return;
		}
		// At the beginning of a line or block, a backslash is like any other first character.
		if (!this.#openQuote && (this.#afterSpace || this.#atLineStart || this.#followsUnwrittenBrace()))
			this.#readRegular('\\');
		else this.#print('\\');
		this.#wordEnded = false;
		this.#afterBackslash = true;
		this.#backslashBeginsWord = beginsWord;
	}

	#readEscaped(char: string): void {
		// The lexer ignores carriage returns.
		if (char === '\r' && !this.#openQuote) return;
		if (char !== '{' || !this.#copyVariable()) this.#print(char);
		if (isWhiteSpace(char.charCodeAt(0)) && char !== '\n') {
			// If the backslash begins a word, the word goes on after the white space. Otherwise, the word has ended.
			if (this.#backslashBeginsWord) return;
			this.#wordEnded = true;
		}
		this.#afterBackslash = false;
		if (char === '<') this.#heredocEscaped = true;
		if (!this.#backslashBeginsWord) return;
		this.#backslashBeginsWord = false;
		// Quotes and comments begin here in spite of the backslash.
		if (char === '#') {
			this.#inComment = true;
			this.#hashInWord = false;
		} else if (char === '"' || char === '`') {
			this.#openQuote = char;
			this.#afterBackslash = char === '"';
		}
	}

	#readWhiteSpace(char: string): void {
		this.#afterSpace = true;
		this.#heredocEscaped = false;
		if (this.#firstWord !== '') this.#firstWordEnded = true;
		if (char !== '\n') return;
		this.#newlinesRead++;
		this.#endSourceLine();
	}

	#endSourceLine(): void {
		// An empty line after a lone `{` must not end the line, because the brace would then be joined to the line before it.
		const hasOnlyBrace =
			this.#firstWord === '{' && this.#pendingBrace?.startsLine === true && !this.#pendingBrace.isWritten;
		if (!hasOnlyBrace && this.#firstWord !== '')
			this.#afterImport = this.#indentLevel === 0 && (this.#firstWord === 'import' || this.#firstWord === 'let');
		this.#beginLine();
	}

	#readRegular(char: string): void {
		const afterSpace = this.#afterSpace;
		const startsWord = this.#startsWord(afterSpace);
		this.#afterSpace = false;
		this.#wordEnded = false;
		if (char === '#') {
			this.#inComment = true;
			this.#hashInWord = !startsWord;
		}
		if (this.#pendingBrace && !this.#pendingBrace.isWritten && afterSpace) this.#openBlock(this.#pendingBrace);
		if (!this.#firstWordEnded) this.#firstWord += char;
		if (char === '{') {
			if (this.#pendingBrace && !this.#pendingBrace.isWritten) {
				// `{{` is text, whatever follows it.
				this.#printWordSeparator(char, false);
				this.#printTextBrace(this.#pendingBrace);
				this.#print(char);
				return;
			}
			if (this.#copyMisreadVariable(afterSpace)) return;
			const needsSpace = afterSpace && !this.#atLineStart;
			const printsSpace = needsSpace && this.#newlinesRead === 0;
			if (printsSpace) this.#print(' ');
			this.#pendingBrace = { isWritten: false, hasSpaceBefore: printsSpace, startsLine: this.#newlinesRead > 0 };
			return;
		}
		const isGlued = !startsWord || (!afterSpace && !isWhiteSpace(this.#lastPrinted.charCodeAt(0)));
		if (char === '}' && (!isGlued || (!this.#pendingBrace && (this.#closesInWords || this.#followsCloseBrace())))) {
			if (isGlued) this.closedInWord = true;
			this.#closeBlock();
			return;
		}
		if ((char === '"' || char === '`') && (startsWord || char === '`' || this.#opensNamedValue()))
			this.#openQuote = char;
		this.#printWordSeparator(char, afterSpace);
		if (char === '<' && startsWord && this.#wouldOpenHeredoc()) {
			this.#print('\\');
			this.#heredocEscaped = true;
		}
		if (this.#pendingBrace && !this.#pendingBrace.isWritten) this.#printTextBrace(this.#pendingBrace);
		this.#print(char);
		this.#atLineStart = false;
		this.#mayOpenHeredoc = char === '<' && startsWord && !this.#heredocEscaped;
	}

	/**
	 * Copies a `{$NAME:default}` outside of quotes that contains characters which would be misread, and returns true. The lexer does
	 * not see these characters, because the variable is replaced first.
	 */
	#copyMisreadVariable(afterSpace: boolean): boolean {
		const variableText = this.#variableText();
		if (variableText === undefined || !misreadSpan.test(variableText)) return false;
		this.#printWordSeparator('{', afterSpace);
		this.#copyVariable();
		this.#atLineStart = false;
		this.#pendingBrace = { isWritten: true, hasSpaceBefore: false, startsLine: false };
		return true;
	}

	/** Copies the `{$NAME}` that begins at the current character. Returns false if none does. */
	#copyVariable(): boolean {
		const variableText = this.#variableText();
		if (variableText === undefined) return false;
		this.#output += variableText;
		this.#lastPrinted = '}';
		this.#offset += variableText.length - 1;
		return true;
	}

	/** Returns the `{$NAME}` or `{$}` that begins at the current character; undefined if none does. */
	#variableText(): string | undefined {
		if (this.#input[this.#offset + 1] !== '$') return undefined;
		if (this.#closeBraceOffset < this.#offset) {
			const closeOffset = this.#input.indexOf('}', this.#offset);
			this.#closeBraceOffset = closeOffset === -1 ? Number.POSITIVE_INFINITY : closeOffset;
		}
		if (this.#closeBraceOffset > this.#input.length) return undefined;
		return this.#input.slice(this.#offset, this.#closeBraceOffset + 1);
	}

	/** Prints a `{` that has turned out to begin a word. */
	#printTextBrace(brace: BraceState): void {
		this.#print('{');
		brace.isWritten = true;
		this.#atLineStart = false;
	}

	/** Prints what precedes a word: newlines, indentation or a space. */
	#printWordSeparator(char: string, afterSpace: boolean): void {
		if (char === 'e' && this.#continuesWithElse()) {
			this.#print(' ');
			return;
		}
		for (let count = Math.min(this.#newlinesRead, 2); count > 0; count--) this.#printNewline();
		this.#newlinesRead = 0;
		if (this.#atLineStart) {
			const afterBlock = this.#indentLevel === 0 && this.#lastPrinted === '}';
			this.#printIndent();
			if (afterBlock) {
				this.#printNewline();
				this.#printNewline();
			}
		} else if (afterSpace) this.#print(' ');
	}

	/** Reports whether `else` follows, which in a Configfile must stay on the line of the `}` before it. */
	#continuesWithElse(): boolean {
		if (!this.#atLineStart || this.#newlinesRead > 0 || this.#lastPrinted !== '}') return false;
		// Carriage returns in a word are ignored.
		const nextText = this.#input.slice(this.#offset, this.#offset + 16).replaceAll('\r', '');
		return /^else(?![^\s{}])/.test(nextText);
	}

	/**
	 * Reports whether a quote opens the value of `name="value"`. A Configfile allows such values in the head of a snippet and after
	 * `use`. Nowhere else can a quote be inside a word.
	 */
	#opensNamedValue(): boolean {
		if (this.#lastPrinted !== '=') return false;
		// Read from the input, because reading from the growing output would flatten it each time.
		const textBefore = this.#input.slice(Math.max(0, this.#offset - 200), this.#offset).replaceAll('\r', '');
		if (!parameterNameAtEnd.test(textBefore)) return false;
		return this.#firstWord === 'use' || (this.#firstWord.startsWith('(') && this.#firstWord.endsWith(')'));
	}

	#openBlock(brace: BraceState): void {
		this.#openBlockCount++;
		this.#printBlockBrace(brace);
		this.#printNewline();
		this.#newlinesRead = 0;
		if (this.#indentLevel < maxIndent) this.#indentLevel++;
		this.#pendingBrace = undefined;
		this.#beginLine();
	}

	#printBlockBrace(brace: BraceState): void {
		if (this.#indentLevel === 0 && this.#atLineStart && this.#lastPrinted === '}') {
			this.#printNewline();
			this.#printNewline();
		} else if (this.#atLineStart && this.#lastPrinted === '}') this.#printNewline();
		if (brace.startsLine && this.#afterImport && !this.#atLineStart) this.#printNewline();
		if (this.#atLineStart) this.#printIndent();
		else if (!brace.hasSpaceBefore) this.#print(' ');
		this.#print('{');
	}

	#closeBlock(): void {
		if (this.#openBlockCount > 0) this.#openBlockCount--;
		if (this.#lastPrinted !== '\n') this.#printNewline();
		if (this.#indentLevel > 0) this.#indentLevel--;
		this.#printIndent();
		this.#print('}');
		this.#newlinesRead = 0;
		this.#pendingBrace = undefined;
		this.#beginLine();
	}
}
