/** Splits a template's source into literal text and actions, which are split into tokens. */
import { TemplateSyntaxError } from './template-error.ts';

/** Data that is inserted into a template's text but never interpreted as part of the template. */
export interface DataInsertion {
	/** Offset in the source at which the data is inserted. */
	readonly offset: number;
	readonly value: string;
}

export interface TemplateSource {
	readonly text: string;
	/** Insertions of data, in the order of their offsets. */
	readonly data?: readonly DataInsertion[];
}

/** The delimiters of actions, such as `{{` and `}}`. */
export interface Delimiters {
	readonly open: string;
	readonly close: string;
}

export type TokenKind = 'word' | 'field' | 'dot' | 'variable' | 'string' | 'character' | 'number' | 'operator' | 'end';

/** A token of an action: a name, an operator, a constant, a field, a dot, a variable, or the end of the action. */
export interface Token {
	readonly kind: TokenKind;
	/** Name, operator or number as written; the value of a string; the name of a field without its dot. */
	readonly text: string;
	/** Offset of the token's start in the source. */
	readonly start: number;
	/** Offset of the token's end in the source. */
	readonly end: number;
	/** True if the token is preceded by white space, which distinguishes `.A .B` from `.A.B`. */
	readonly isSpaced: boolean;
}

/** A part of a template: literal text or an action. */
export type TemplatePiece =
	| { readonly kind: 'text'; readonly text: string }
	| { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly start: number; readonly end: number };

/** Maximum number of characters of a template's source. */
const MAX_SOURCE_LENGTH: number = 10 * 1024 * 1024;

const SPACE = /[ \t\r\n]/;
const WORD = /[\p{L}\p{Nd}_]+/uy;
const NUMBER =
	/[+-]?(?:0[xX][0-9a-fA-F_]+(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?\d+)?|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/y;
const OPERATORS = [':=', '=', '|', '(', ')', ','];

/** Splits a template's source into literal text and actions. Throws TemplateSyntaxError. */
export function splitTemplate(source: TemplateSource, delimiters: Delimiters): TemplatePiece[] {
	return new TemplateSplitter(source, delimiters).splitPieces();
}

/** Returns the line of an offset, starting at 1. */
export function lineOfOffset(text: string, offset: number): number {
	let line = 1;
	for (let newline = text.indexOf('\n'); newline !== -1 && newline < offset; newline = text.indexOf('\n', newline + 1))
		line++;
	return line;
}

class TemplateSplitter {
	readonly #text: string;
	readonly #insertions: readonly DataInsertion[];
	readonly #openDelimiter: string;
	readonly #closeDelimiter: string;
	#position = 0;
	/** Index in `#insertions` of the first insertion that has not been used. */
	#nextInsertionIndex = 0;

	constructor(source: TemplateSource, { open, close }: Delimiters) {
		this.#text = source.text;
		this.#insertions = source.data ?? [];
		this.#openDelimiter = open;
		this.#closeDelimiter = close;
	}

	splitPieces(): TemplatePiece[] {
		if (this.#text.length > MAX_SOURCE_LENGTH) {
			throw new TemplateSyntaxError(1, `the text is longer than ${MAX_SOURCE_LENGTH} characters`);
		}
		const pieces: TemplatePiece[] = [];
		let trimsNextText = false;
		for (;;) {
			const actionStart = this.#findOpenDelimiter();
			let text = this.#readLiteral(actionStart === -1 ? this.#text.length : actionStart);
			if (trimsNextText) text = text.replace(/^[ \t\r\n]+/, '');
			if (actionStart === -1) {
				if (text !== '') pieces.push({ kind: 'text', text });
				return pieces;
			}
			this.#position = actionStart + this.#openDelimiter.length;
			const trimsAfter = this.#text[this.#position] === '-' && SPACE.test(this.#text[this.#position + 1] ?? '');
			if (trimsAfter) {
				text = trimEnd(text);
				this.#position++;
			}
			if (text !== '') pieces.push({ kind: 'text', text });
			const action = this.#parseComment(actionStart) ?? this.#parseAction(actionStart);
			if (action.tokens.length > 1) pieces.push({ kind: 'action', ...action });
			else if (!action.isComment) this.#fail(actionStart, 'missing value for command');
			trimsNextText = action.trimsAfter;
		}
	}

	/** Returns the offset of the next opening delimiter that has no data inside; −1 if there is none. */
	#findOpenDelimiter(): number {
		let searchStart = this.#position;
		for (;;) {
			const delimiterStart = this.#text.indexOf(this.#openDelimiter, searchStart);
			if (delimiterStart === -1) return -1;
			if (
				!this.#insertions.some(
					({ offset }) => offset > delimiterStart && offset < delimiterStart + this.#openDelimiter.length,
				)
			)
				return delimiterStart;
			searchStart = delimiterStart + 1;
		}
	}

	/** Returns the literal text up to an offset, including data. */
	#readLiteral(end: number): string {
		return this.#textWithData(this.#position, end);
	}

	/** Returns the text from `start` to `end` with the data that is inserted in it. Data up to `end` will not be inserted again. */
	#textWithData(start: number, end: number): string {
		let text = '';
		let textStart = start;
		// Data at the beginning of an action belongs to the text before the action. Data at the end of an action belongs to the
		// text after it.
		while (
			this.#nextInsertionIndex < this.#insertions.length &&
			this.#insertions[this.#nextInsertionIndex]!.offset <= end
		) {
			const { offset, value } = this.#insertions[this.#nextInsertionIndex++]!;
			text += this.#text.slice(textStart, offset) + value;
			textStart = offset;
		}
		return text + this.#text.slice(textStart, end);
	}

	#parseComment(start: number): ActionPiece | undefined {
		if (!this.#text.startsWith('/*', this.#commentStart())) return undefined;
		const commentStart = this.#commentStart();
		const end = this.#text.indexOf('*/', commentStart + 2);
		if (end === -1) return this.#fail(start, 'unclosed comment');
		this.#position = end + 2;
		const trimsAfter = this.#hasTrimMarker();
		if (trimsAfter)
			this.#position += /^[ \t\r\n]+/.exec(this.#text.slice(this.#position, this.#position + 64))![0].length + 1;
		if (!this.#text.startsWith(this.#closeDelimiter, this.#position))
			this.#fail(start, 'comment ends before closing delimiter');
		this.#position += this.#closeDelimiter.length;
		this.#refuseData(start, this.#position);
		return { tokens: [], start, end: this.#position, trimsAfter, isComment: true };
	}

	/** Returns the offset at which a comment may begin: after the delimiter, or after a trim marker and white space. */
	#commentStart(): number {
		let offset = this.#position;
		if (this.#text[offset - 1] === '-') while (SPACE.test(this.#text[offset] ?? '')) offset++;
		return offset;
	}

	#hasTrimMarker(): boolean {
		const markerMatch = /^[ \t\r\n]+-/.exec(this.#text.slice(this.#position, this.#position + 64));
		return markerMatch !== null && this.#text.startsWith(this.#closeDelimiter, this.#position + markerMatch[0].length);
	}

	#parseAction(start: number): ActionPiece {
		const tokens: Token[] = [];
		let depth = 0;
		for (;;) {
			const spaceStart = this.#position;
			while (SPACE.test(this.#text[this.#position] ?? '')) this.#position++;
			const isSpaced = this.#position > spaceStart || tokens.length === 0;
			const trimsAfter =
				this.#text[this.#position] === '-' && this.#position > spaceStart && this.#closesAt(this.#position + 1);
			if (trimsAfter || this.#closesAt(this.#position)) {
				if (depth > 0) this.#fail(start, 'unclosed left paren');
				this.#position += this.#closeDelimiter.length + (trimsAfter ? 1 : 0);
				this.#refuseData(spaceStart, this.#position);
				tokens.push({ kind: 'end', text: '', start: this.#position, end: this.#position, isSpaced: true });
				return { tokens, start, end: this.#position, trimsAfter, isComment: false };
			}
			if (this.#position >= this.#text.length) this.#fail(start, 'unclosed action');
			const token = this.#readToken(isSpaced);
			if (token.kind !== 'string') this.#refuseData(spaceStart, token.end);
			if (token.text === '(' && token.kind === 'operator') depth++;
			if (token.text === ')' && token.kind === 'operator' && --depth < 0)
				this.#fail(token.start, 'unexpected right paren');
			tokens.push(token);
		}
	}

	#closesAt(offset: number): boolean {
		return this.#text.startsWith(this.#closeDelimiter, offset);
	}

	/** Fails if data is to be inserted between `start` and `end`, inside an action, where it would become part of the template. */
	#refuseData(start: number, end: number): void {
		const insertion = this.#insertions[this.#nextInsertionIndex];
		if (insertion && insertion.offset < end) this.#fail(start, 'request data inside an action');
	}

	#readToken(isSpaced: boolean): Token {
		const start = this.#position;
		const c = this.#text[start]!;
		const createToken = (kind: TokenKind, text: string, end: number): Token => {
			this.#position = end;
			return { kind, text, start, end, isSpaced };
		};
		if (c === '"') return this.#readQuotedString(isSpaced);
		if (c === '`') {
			const end = this.#text.indexOf('`', start + 1);
			if (end === -1) this.#fail(start, 'unterminated raw quoted string');
			return createToken('string', this.#textWithData(start + 1, end).replaceAll('\r', ''), end + 1);
		}
		if (c === "'") return this.#readCharacter(isSpaced);
		if (c === '$') {
			const name = this.#matchAt(WORD, start + 1) ?? '';
			return createToken('variable', `$${name}`, start + 1 + name.length);
		}
		const number = this.#matchAt(NUMBER, start);
		if (number !== undefined && number !== '.') {
			const suffix = this.#matchAt(WORD, start + number.length);
			if (suffix !== undefined) this.#fail(start, `bad number syntax: "${number}${suffix}"`);
			return createToken('number', number, start + number.length);
		}
		if (c === '.') {
			const name = this.#matchAt(WORD, start + 1);
			return name === undefined
				? createToken('dot', '.', start + 1)
				: createToken('field', name, start + 1 + name.length);
		}
		for (const operator of OPERATORS) {
			if (this.#text.startsWith(operator, start)) return createToken('operator', operator, start + operator.length);
		}
		const word = this.#matchAt(WORD, start);
		if (word !== undefined && !/^\p{Nd}/u.test(word)) return createToken('word', word, start + word.length);
		const character = String.fromCodePoint(this.#text.codePointAt(start)!);
		return this.#fail(start, `unexpected ${JSON.stringify(character)} in an action`);
	}

	#matchAt(pattern: RegExp, offset: number): string | undefined {
		pattern.lastIndex = offset;
		return pattern.exec(this.#text)?.[0];
	}

	#readQuotedString(isSpaced: boolean): Token {
		const start = this.#position;
		let decodedText = '';
		let offset = start + 1;
		let partStart = offset;
		for (;;) {
			const c = this.#text[offset];
			if (c === undefined || c === '\n') this.#fail(start, 'unterminated quoted string');
			if (c !== '"' && c !== '\\') {
				offset++;
				continue;
			}
			decodedText += this.#textWithData(partStart, offset);
			if (c === '"') break;
			const decodedEscape = this.#decodeEscape(offset);
			decodedText += decodedEscape.value;
			offset = decodedEscape.end;
			partStart = offset;
			this.#refuseData(start, offset);
		}
		this.#position = offset + 1;
		return { kind: 'string', text: decodedText, start, end: offset + 1, isSpaced };
	}

	#readCharacter(isSpaced: boolean): Token {
		const start = this.#position;
		const codePoint = this.#text.codePointAt(start + 1);
		if (codePoint === undefined || codePoint === 39 || codePoint === 10)
			this.#fail(start, 'malformed character constant');
		const { value, end } =
			codePoint === 92
				? this.#decodeEscape(start + 1)
				: { value: String.fromCodePoint(codePoint!), end: start + 1 + (codePoint! > 0xffff ? 2 : 1) };
		if (this.#text[end] !== "'") this.#fail(start, 'malformed character constant');
		this.#position = end + 1;
		return { kind: 'character', text: value, start, end: end + 1, isSpaced };
	}

	/**
	 * Decodes an escape in a string or character constant. `\xNN` and octal escapes denote code points, not bytes as in Go, because
	 * strings here are text.
	 */
	#decodeEscape(offset: number): { value: string; end: number } {
		const c = this.#text[offset + 1] ?? '';
		const escapeIndex = 'abfnrtv\\\'"'.indexOf(c);
		if (escapeIndex !== -1 && c !== '') return { value: '\x07\b\f\n\r\t\v\\\'"'[escapeIndex]!, end: offset + 2 };
		const digitCount = { x: 2, u: 4, U: 8 }[c];
		const pattern = digitCount === undefined ? /^\\[0-7]{3}/ : new RegExp(`^\\\\.[0-9a-fA-F]{${digitCount}}`);
		const escapeText = pattern.exec(this.#text.slice(offset, offset + 12))?.[0];
		const codePoint =
			escapeText &&
			Number.parseInt(escapeText.slice(digitCount === undefined ? 1 : 2), digitCount === undefined ? 8 : 16);
		if (escapeText === undefined || codePoint === undefined || Number(codePoint) > 0x10ffff)
			return this.#fail(offset, 'unknown escape in a string');
		return { value: String.fromCodePoint(Number(codePoint)), end: offset + escapeText.length };
	}

	#fail(offset: number, reason: string): never {
		throw new TemplateSyntaxError(lineOfOffset(this.#text, offset), reason);
	}
}

interface ActionPiece {
	readonly tokens: readonly Token[];
	readonly start: number;
	readonly end: number;
	readonly trimsAfter: boolean;
	readonly isComment: boolean;
}

function trimEnd(text: string): string {
	let end = text.length;
	while (end > 0 && SPACE.test(text[end - 1]!)) end--;
	return text.slice(0, end);
}
