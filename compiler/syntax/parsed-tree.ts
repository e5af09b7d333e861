/** Builds the lines of a text while the parser reads it, and reports structural mistakes. */
import { EOF, type IToken, type TokenType } from 'chevrotain';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { SubstitutedText } from '../source/environment.ts';
import type { Source, SourceSpan } from '../source/source.ts';
import {
	lineShapes,
	maxAlternatives,
	maxNesting,
	maxWordsPerLine,
	type ParsedBlock,
	type ParsedLine,
	type ParsedWord,
} from './parsed-file.ts';
import type { ScannedWord } from './scan-word.ts';
import {
	emptyBracesMistake,
	excessWordsMistake,
	fileAndLine,
	importChain,
	misplacedCloseMistake,
	misplacedOpenMistake,
	structureMistake,
	syntaxError,
	trailingTextMistake,
} from './structure-mistake.ts';
import { CloseBrace, Newline, OpenBrace, type WordToken } from './tokens.ts';

/** Matches text that expansion may replace. */
const expandableText = /\{(?:args[[.]|block\}|blocks\.|let\.|param\.)|\\[{}]/;

/** The file or block whose lines are being collected. */
interface Container {
	readonly lines: ParsedLine[];
	/**
	 * True if every line must be a directive or sub-directive; false at the top level and directly in a snippet.
	 */
	readonly directivesOnly: boolean;
	readonly openBrace: IToken | undefined;
	/** Indentation of the line to which the block belongs, in characters. */
	readonly indent: number;
	/**
	 * True if text after `{` or before `}` on the same line must not be reported, because it is allowed or has already been
	 * reported.
	 */
	readonly ignoresTextAtBrace: boolean;
	closeBrace: IToken | undefined;
	needsExpansion: boolean;
}

/** A line or one of its `else` parts, under construction. */
interface LinePart {
	readonly words: ParsedWord[];
	block: ParsedBlock | undefined;
	needsExpansion: boolean;
	shapeFlags: number;
	start: number;
	end: number;
}

/** The tree of a text, under construction. {@link ConfigParser} calls its methods in the order of the text. */
export class ParsedTree {
	readonly source: Source;
	readonly diagnostics: Diagnostic[] = [];
	/** Number of unmatched braces. */
	unbalancedBraceCount = 0;
	/** True if a quote or heredoc that is not closed has taken the rest of the text. */
	hasUnclosedWord = false;
	/** The last word or brace of the text. */
	lastToken: WordToken | undefined;
	/** True if the block that has just been opened exceeds the maximum nesting. */
	isTooDeep = false;
	readonly #substitutedText: SubstitutedText;
	readonly #dialect: Dialect;
	/** True in the second parse of a text with unbalanced braces, in which the indentation decides where blocks end. */
	readonly #usesIndentation: boolean;
	readonly #containers: Container[];
	readonly #outerParts: LinePart[][] = [];
	#container: Container;
	#lineParts: LinePart[] = [];
	#isTooDeepReported = false;
	/** Number of top-level lines before the last stray `}` that ended a site without `{`; 0 if there was none. */
	#linesBeforeStrayClose = 0;
	/** Blocks without a name inside the block of an `import`, each with the nesting depth at which the `import` block closes. */
	readonly #anonymousBlocks: { readonly openSpan: SourceSpan; readonly depth: number }[] = [];

	constructor(source: Source, text: SubstitutedText, dialect: Dialect, usesIndentation: boolean) {
		this.source = source;
		this.#substitutedText = text;
		this.#dialect = dialect;
		this.#usesIndentation = usesIndentation;
		this.#container = {
			lines: [],
			directivesOnly: false,
			openBrace: undefined,
			indent: -1,
			ignoresTextAtBrace: false,
			closeBrace: undefined,
			needsExpansion: false,
		};
		this.#containers = [this.#container];
	}

	/** The top-level lines. */
	get lines(): readonly ParsedLine[] {
		return this.#containers[0]!.lines;
	}

	beginLine(previousType: TokenType): void {
		if (this.#container.directivesOnly && previousType === CloseBrace) this.#reportTextAfterClose();
		this.#outerParts.push(this.#lineParts);
		const part = newPart();
		const atFileLevel = this.#containers.length === 1;
		if (atFileLevel && this.#linesBeforeStrayClose > 0 && this.#linesBeforeStrayClose === this.lines.length)
			part.shapeFlags = lineShapes.afterOpenSite;
		else if (!this.#container.directivesOnly && previousType === CloseBrace) part.shapeFlags = lineShapes.afterClose;
		this.#lineParts = [part];
	}

	beginAlternative(): void {
		this.#lineParts.push(newPart());
	}

	/** Reports whether a token is an `else` that continues the line whose block has just been closed. */
	continuesWithElse(token: IToken): boolean {
		return (
			this.#dialect === 'configfile' &&
			token.image === 'else' &&
			(token as WordToken).payload === undefined &&
			this.#lineParts[this.#lineParts.length - 1]!.block !== undefined &&
			this.#lineParts.length < maxAlternatives
		);
	}

	addWord(token: WordToken): void {
		const part = this.#lineParts[this.#lineParts.length - 1]!;
		const start = token.startOffset;
		const end = start + token.image.length;
		const scannedWord = token.payload;
		if (part.words.length === 0) part.start = start;
		part.end = end;
		if (scannedWord) {
			this.#reportLexicalProblems(token, scannedWord);
			if (scannedWord.text === undefined) return;
		}
		const text = scannedWord ? scannedWord.text! : token.image;
		const span = {
			source: this.source,
			start: this.#substitutedText.originalStart(start),
			end: this.#substitutedText.originalEnd(end),
		};
		if (part.words.length >= maxWordsPerLine) {
			if (part.words.length === maxWordsPerLine) this.diagnostics.push(excessWordsMistake(span));
			if (part.words.length > maxWordsPerLine) return;
		}
		if (text.includes('{') && expandableText.test(text)) part.needsExpansion = true;
		part.words.push(
			scannedWord?.valueQuote
				? { text, quote: scannedWord.quote, span, valueQuote: scannedWord.valueQuote }
				: { text, quote: scannedWord ? scannedWord.quote : 'none', span },
		);
	}

	#reportLexicalProblems(token: IToken, scanned: ScannedWord): void {
		if (scanned.reachesEnd) this.hasUnclosedWord = true;
		if (scanned.problem) {
			const { start, end, lineOffset, message, ...details } = scanned.problem;
			const { line } = this.source.position(this.#substitutedText.originalStart(lineOffset));
			this.diagnostics.push({
				severity: 'error',
				...details,
				message: message(line),
				span: this.#sourceSpan(start, end),
			});
		}
		if (!scanned.unterminated) return;
		const span = this.#sourceSpan(token.startOffset, token.startOffset + 1);
		const hint = 'Close it with the same quote.';
		const depth = this.#containers.length - 1;
		if (this.#dialect === 'compatfile' && depth > 0) {
			// The quoted word contains the `}` of the blocks around it, so Caddy reports these braces as missing.
			this.diagnostics.push(
				this.#endOfTextMistake('syntax/unterminated-quote', span, depth > 1, {
					label: 'this quote is never closed',
					hint,
				}),
			);
			return;
		}
		this.diagnostics.push({
			code: 'syntax/unterminated-quote',
			// Outside of blocks, Caddy treats the quote as a plain word.
			severity: this.#dialect === 'configfile' ? 'error' : 'warning',
			message: 'This quote is never closed, so everything up to the end of the file is one word.',
			span,
			label: 'opens here',
			hint,
		});
	}

	openBlock(openBrace: IToken, nextToken: IToken): void {
		const part = this.#lineParts[this.#lineParts.length - 1]!;
		const firstWord = part.words[0];
		const lastWord = part.words[part.words.length - 1];
		if (!firstWord) part.start = openBrace.startOffset;
		const isGlued = part.end === openBrace.startOffset && !this.#followsNewline(openBrace);
		if (lastWord && lastWord.quote === 'none' && isGlued) this.#reportGluedBrace(openBrace, lastWord);
		const outerContainer = this.#container;
		const isSnippet =
			!outerContainer.directivesOnly &&
			firstWord !== undefined &&
			firstWord.text.startsWith('(') &&
			firstWord.text.endsWith(')');
		const isImport = firstWord?.text === 'import' && firstWord.quote === 'none';
		// A block that an import passes contains no directives until it is inserted, so text at its braces is not reported here.
		let ignoresTextAtBrace = isImport;
		if (
			!isImport &&
			nextToken.tokenType !== Newline &&
			nextToken.tokenType !== EOF &&
			!isBlockReference(nextToken.image)
		) {
			if (outerContainer.directivesOnly) {
				ignoresTextAtBrace = true;
				this.#reportMistake('syntax/text-after-open', nextToken, "Unexpected next token after '{' on same line", {
					label: 'belongs on the next line',
					hint: 'Break the line after `{`.',
				});
			} else part.shapeFlags |= lineShapes.contentAfterOpen;
		}
		const indent = this.#usesIndentation ? this.#indentOfLine(part.start) : -1;
		this.#container = {
			lines: [],
			directivesOnly: !isSnippet,
			openBrace,
			indent,
			ignoresTextAtBrace,
			closeBrace: undefined,
			needsExpansion: false,
		};
		this.#containers.push(this.#container);
		this.isTooDeep = this.#containers.length > maxNesting + 1;
		if (!this.isTooDeep || this.#isTooDeepReported) return;
		this.#isTooDeepReported = true;
		this.diagnostics.push({
			code: 'syntax/nesting-too-deep',
			severity: 'error',
			message: `Blocks are nested more than ${maxNesting} levels deep.`,
			span: this.#tokenSpan(openBrace),
			label: 'one level too many',
			hint: 'Move inner blocks into snippets or sites of their own.',
		});
	}

	#reportGluedBrace(openBrace: IToken, lastWord: ParsedWord): void {
		const gluedText = `${lastWord.text}{`;
		const span = { ...this.#tokenSpan(openBrace), start: lastWord.span.start };
		const message =
			this.#containers.length === 1
				? `Site addresses cannot end with a curly brace: '${gluedText}' - put a space between the token and the brace`
				: `'${gluedText}' is one word - put a space between the token and the brace`;
		this.diagnostics.push(
			structureMistake(this.#dialect, 'syntax/glued-brace', span, message, {
				label: `write \`${lastWord.text} {\``,
				fix: { safety: 'safe', edits: [{ span: { ...span, start: span.end - 1, end: span.end - 1 }, text: ' ' }] },
			}),
		);
	}

	/** Reports whether a token is inside the current block rather than ending it. */
	staysInBlock(token: IToken): boolean {
		if (!this.#usesIndentation || token.tokenType === Newline) return token.tokenType !== CloseBrace;
		const indent = this.#indentOf(token);
		if (indent === -1) return token.tokenType !== CloseBrace;
		return indent > this.#container.indent;
	}

	/** Reports whether a token is the `}` of the current block. */
	closesBlock(token: IToken): boolean {
		if (token.tokenType !== CloseBrace) return false;
		if (!this.#usesIndentation) return true;
		const indent = this.#indentOf(token);
		return indent === -1 || indent === this.#container.indent;
	}

	closeBlock(closeBrace: IToken, previousType: TokenType): void {
		const container = this.#container;
		container.closeBrace = closeBrace;
		if (previousType === Newline || previousType === OpenBrace || previousType === CloseBrace) return;
		const lastWords = container.lines[container.lines.length - 1]?.words;
		if (container.ignoresTextAtBrace || (lastWords && isBlockReference(lastWords[lastWords.length - 1]?.text ?? '')))
			return;
		const outerContainer = this.#containers[this.#containers.length - 2]!;
		if (!outerContainer.directivesOnly)
			this.#lineParts[this.#lineParts.length - 1]!.shapeFlags |= lineShapes.closeAfterWords;
		else this.diagnostics.push(misplacedCloseMistake(this.#tokenSpan(closeBrace), this.#dialect));
	}

	leaveBlock(): void {
		const container = this.#containers.pop()!;
		const part = this.#lineParts[this.#lineParts.length - 1]!;
		this.#container = this.#containers[this.#containers.length - 1]!;
		const openSpan = this.#tokenSpan(container.openBrace!);
		if (container.closeBrace) part.end = container.closeBrace.startOffset + container.closeBrace.image.length;
		else this.#reportUnclosedBlock(container.openBrace!, openSpan, part);
		const closeSpan = container.closeBrace
			? this.#tokenSpan(container.closeBrace)
			: this.#sourceSpan(part.end, part.end);
		part.block = { lines: container.lines, open: openSpan, close: closeSpan, needsExpansion: container.needsExpansion };
		if (container.needsExpansion) part.needsExpansion = true;
		while (this.#anonymousBlocks.at(-1)?.depth === this.#containers.length)
			this.#reportAnonymousBlock(this.#anonymousBlocks.pop()!.openSpan, closeSpan);
	}

	/**
	 * Reports a block without a name inside the block of an `import`. `close` is the `}` of the `import` block, at which
	 * Caddy reports the mistake.
	 */
	#reportAnonymousBlock(span: SourceSpan, close: SourceSpan): void {
		const message = 'anonymous blocks are not supported';
		const placeText = this.#dialect === 'compatfile' ? `, at ${fileAndLine(close)}${importChain(close)}` : '.';
		this.diagnostics.push({
			code: 'import/anonymous-block',
			severity: 'error',
			message: message + placeText,
			span,
			label: 'has no name',
			hint: 'Name the block, as in `name {`, and use it in the snippet by `{blocks.name}`.',
		});
	}

	#reportUnclosedBlock(openBrace: IToken, openSpan: SourceSpan, part: LinePart): void {
		this.unbalancedBraceCount++;
		part.end = Math.max(part.end, openBrace.startOffset + 1);
		if (this.hasUnclosedWord || this.#isTooDeepReported) return;
		const details = { label: 'this `{` has no `}`', hint: 'Add `}` on a line of its own where the block ends.' };
		const firstWord = part.words[0]?.text;
		const isRouteOrSnippet = !this.#container.directivesOnly && firstWord !== undefined && isSnippetOrRoute(firstWord);
		const isInner = this.#containers.length > 1 || this.unbalancedBraceCount > 1;
		const isNested = !isRouteOrSnippet && (isInner || this.lastToken?.tokenType === CloseBrace);
		this.diagnostics.push(this.#endOfTextMistake('syntax/unclosed-block', openSpan, isNested, details));
	}

	/**
	 * Returns the diagnostic for a block that is not closed at the end of the text. `isNested` is true for the block of a
	 * directive.
	 */
	#endOfTextMistake(code: string, span: SourceSpan, isNested: boolean, details: Partial<Diagnostic>): Diagnostic {
		if (this.#dialect === 'configfile') {
			return structureMistake('configfile', code, span, 'unexpected EOF: a block is not closed', details);
		}
		const { lastToken } = this;
		const lastSpan = lastToken ? this.#tokenSpan(lastToken) : span;
		const message = isNested
			? `unexpected EOF, at ${fileAndLine(lastSpan)}${importChain(lastSpan)}`
			: syntaxError(lastToken?.payload?.text ?? lastToken?.image ?? '', '}', lastSpan);
		return { code, severity: 'error', message, span, ...details };
	}

	endLine(): void {
		const parts = this.#lineParts;
		this.#lineParts = this.#outerParts.pop()!;
		const container = this.#container;
		let line: ParsedLine | undefined;
		for (let index = parts.length - 1; index >= 0; index--) line = this.#finishPart(parts[index]!, line);
		if (line!.words.length === 0) {
			if (!line!.block) return;
			if (container.directivesOnly) {
				this.#joinBareBlock(line!);
				return;
			}
		}
		if (line!.needsExpansion) container.needsExpansion = true;
		container.lines.push(line!);
	}

	#finishPart(part: LinePart, alternative: ParsedLine | undefined): ParsedLine {
		const { words, block, shapeFlags: shape } = part;
		const lastWord = words[words.length - 1];
		let needsExpansion =
			part.needsExpansion || shape !== 0 || words.length === 0 || (alternative?.needsExpansion ?? false);
		if (lastWord && lastWord.text === '{}' && lastWord.quote === 'none' && words.length > 1) {
			if (this.#container.directivesOnly) this.diagnostics.push(emptyBracesMistake(lastWord.span, this.#dialect));
			else needsExpansion = true;
		}
		const firstWord = words[0];
		if (firstWord && firstWord.quote === 'none') {
			const name = firstWord.text;
			if (name === 'import' || name === 'use' || name === 'let' || name === 'else') needsExpansion = true;
		}
		const start = firstWord ? firstWord.span.start : this.#substitutedText.originalStart(part.start);
		const end = alternative ? alternative.span.end : Math.max(start, this.#substitutedText.originalEnd(part.end));
		return { words, block, alternative, span: { source: this.source, start, end }, needsExpansion, shapeFlags: shape };
	}

	/**
	 * Handles a block without a name where a directive is expected. It was probably meant to be the block of the previous line, and
	 * is treated as such.
	 */
	#joinBareBlock(line: ParsedLine): void {
		const container = this.#container;
		const openSpan = line.block!.open;
		const previousLine = container.lines[container.lines.length - 1];
		const firstWord = this.#lineParts[0]?.words[0];
		if (firstWord?.text === 'import' && firstWord.quote === 'none') {
			// If the block without a name is on the first line, Caddy mistakes its end for the end of the block around it.
			const isFirst = container.lines.length === 0 && this.#anonymousBlocks.length === 0;
			if (isFirst) this.#reportAnonymousBlock(openSpan, line.block!.close);
			else this.#anonymousBlocks.push({ openSpan, depth: this.#containers.length - 1 });
			return;
		}
		if (!container.ignoresTextAtBrace) this.diagnostics.push(misplacedOpenMistake(openSpan, this.#dialect));
		if (!previousLine || previousLine.block) return;
		const joinedLine: ParsedLine = {
			...previousLine,
			block: line.block,
			needsExpansion: previousLine.needsExpansion || line.block!.needsExpansion,
			span: { ...previousLine.span, end: line.span.end },
		};
		container.lines[container.lines.length - 1] = joinedLine;
		if (joinedLine.needsExpansion) container.needsExpansion = true;
	}

	handleStrayClose(strayBrace: IToken, previousType: TokenType | undefined): void {
		if (previousType === Newline && this.#endsOpenSite()) {
			this.#linesBeforeStrayClose = this.lines.length;
			this.diagnostics.push({
				code: 'syntax/stray-close',
				severity: 'warning',
				message: 'This `}` closes a site that has no `{`.',
				span: this.#tokenSpan(strayBrace),
				label: 'closes nothing',
				hint: 'Remove it, or write `{` after the address.',
			});
			return;
		}
		this.unbalancedBraceCount++;
		this.#reportMistake('syntax/stray-close', strayBrace, "Unexpected '}' because no matching opening brace", {
			label: 'closes nothing',
			hint: 'Remove it, or look further up for an extra `}`.',
		});
	}

	/**
	 * Reports whether a site without `{` ends here. In a Compatfile, a stray `}` may end such a site, because Caddy
	 * accepts it.
	 */
	#endsOpenSite(): boolean {
		if (this.#dialect !== 'compatfile' || this.#containers.length > 1) return false;
		const headIndex = this.lines.findIndex(({ words }, index) => {
			if (index < this.#linesBeforeStrayClose) return false;
			const firstText = words[0]?.text;
			const lastText = words[words.length - 1]?.text;
			return (
				firstText !== undefined && firstText !== 'import' && !isSnippetOrRoute(firstText) && !lastText!.endsWith(',')
			);
		});
		const addressLine = this.lines[headIndex];
		if (!addressLine || addressLine.block || this.lines[headIndex + 1]?.words.length === 0) return false;
		return !addressLine.words.some(({ text }) => text.endsWith('{'));
	}

	#reportTextAfterClose(): void {
		const previous = this.#container.lines[this.#container.lines.length - 1];
		if (previous?.block) this.diagnostics.push(trailingTextMistake(previous.block.close, this.#dialect));
	}

	#reportMistake(code: string, token: IToken, message: string, details: { label: string; hint: string }): void {
		this.diagnostics.push(structureMistake(this.#dialect, code, this.#tokenSpan(token), message, details));
	}

	#sourceSpan(start: number, end: number): SourceSpan {
		return {
			source: this.source,
			start: this.#substitutedText.originalStart(start),
			end: this.#substitutedText.originalEnd(end),
		};
	}

	#tokenSpan(token: IToken): SourceSpan {
		// The text of a brace token may end with carriage returns.
		const length = token.tokenType === OpenBrace || token.tokenType === CloseBrace ? 1 : token.image.length;
		return this.#sourceSpan(token.startOffset, token.startOffset + length);
	}

	/** Returns the number of characters before a token that is the first on its line; −1 for other tokens. */
	#indentOf(token: IToken): number {
		const text = this.#substitutedText.text;
		const lineStart = text.lastIndexOf('\n', token.startOffset - 1) + 1;
		return text.slice(lineStart, token.startOffset).trim() === '' ? token.startOffset - lineStart : -1;
	}

	/** Reports whether a token is first on its line. In a part of a line, it then follows a backslash and a newline. */
	#followsNewline(token: IToken): boolean {
		return this.#substitutedText.text[token.startOffset - 1] === '\n';
	}

	#indentOfLine(offset: number): number {
		const text = this.#substitutedText.text;
		const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
		return text.slice(lineStart).search(/\S/);
	}
}

function newPart(): LinePart {
	return { words: [], block: undefined, needsExpansion: false, shapeFlags: 0, start: 0, end: 0 };
}

/**
 * Reports whether a word is `{block}` or `{blocks.NAME}`. Such a word may share a line with `{` and `}`, because its content
 * becomes separate lines.
 */
function isBlockReference(text: string): boolean {
	return text === '{block}' || (text.startsWith('{blocks.') && text.endsWith('}'));
}

function isSnippetOrRoute(head: string): boolean {
	return /^&?\(.*\)$/s.test(head);
}
