/** Splits a template's source into literal text and actions, which are split into tokens. */
import { TemplateSyntaxError } from './template-error.ts';

/** Data inserted into a template's output at a place in its source, so that it is never interpreted as part of the template. */
export interface DataInsertion {
	/** Offset in the source at which the data is inserted. */
	readonly at: number;
	readonly value: string;
}

export interface TemplateSource {
	readonly text: string;
	/** Data to insert, in the order of their offsets. */
	readonly data?: readonly DataInsertion[];
}

/** Delimiters of actions. */
export interface Delimiters {
	readonly open: string;
	readonly close: string;
}

export type TokenKind = 'word' | 'field' | 'dot' | 'variable' | 'string' | 'character' | 'number' | 'operator' | 'end';

/** A token of an action. */
export interface Token {
	readonly kind: TokenKind;
	/** Name, operator or number as written; the value of a string; the name of a field without its dot. */
	readonly text: string;
	/** Offset of the token's start in the source. */
	readonly start: number;
	/** Offset of the token's end in the source. */
	readonly end: number;
	/** True if preceded by white space, which distinguishes `.A.B` and `.A .B`. */
	readonly spaced: boolean;
}

/** A part of a template: literal text or an action. */
export type TemplatePiece =
	| { readonly kind: 'text'; readonly text: string }
	| { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly start: number; readonly end: number };

/** Maximum characters of a template, including data. */
const MAX_SOURCE: number = 10 * 1024 * 1024;

const SPACE = /[ \t\r\n]/;
const WORD = /[\p{L}\p{Nd}_]+/uy;
const NUMBER =
	/[+-]?(?:0[xX][0-9a-fA-F_]+(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?\d+)?|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/y;
const OPERATORS = [':=', '=', '|', '(', ')', ','];

/** Splits a source. Throws TemplateSyntaxError. */
export function splitTemplate(source: TemplateSource, delimiters: Delimiters): TemplatePiece[] {
	return new Splitter(source, delimiters).pieces();
}

/** Returns the line of an offset, starting at 1. */
export function lineOfOffset(text: string, offset: number): number {
	let line = 1;
	for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++;
	return line;
}

class Splitter {
	readonly #text: string;
	readonly #data: readonly DataInsertion[];
	readonly #open: string;
	readonly #close: string;
	#at = 0;
	/** Index of the next insertion at or after the current position. */
	#next = 0;

	constructor(source: TemplateSource, { open, close }: Delimiters) {
		this.#text = source.text;
		this.#data = source.data ?? [];
		this.#open = open;
		this.#close = close;
	}

	pieces(): TemplatePiece[] {
		if (this.#text.length > MAX_SOURCE) {
			throw new TemplateSyntaxError(1, `the text is longer than ${MAX_SOURCE} characters`);
		}
		const pieces: TemplatePiece[] = [];
		let trimNext = false;
		for (;;) {
			const found = this.#findOpen();
			let text = this.#literal(found === -1 ? this.#text.length : found);
			if (trimNext) text = text.replace(/^[ \t\r\n]+/, '');
			if (found === -1) {
				if (text !== '') pieces.push({ kind: 'text', text });
				return pieces;
			}
			this.#at = found + this.#open.length;
			const trim = this.#text[this.#at] === '-' && SPACE.test(this.#text[this.#at + 1] ?? '');
			if (trim) {
				text = trimmedRight(text);
				this.#at++;
			}
			if (text !== '') pieces.push({ kind: 'text', text });
			const action = this.#comment(found) ?? this.#action(found);
			if (action.tokens.length > 1) pieces.push({ kind: 'action', ...action });
			else if (!action.comment) this.#fail(found, 'missing value for command');
			trimNext = action.trim;
		}
	}

	/** Returns the offset of the next opening delimiter that has no data inside; −1 if there is none. */
	#findOpen(): number {
		let from = this.#at;
		for (;;) {
			const found = this.#text.indexOf(this.#open, from);
			if (found === -1) return -1;
			if (!this.#data.some(({ at }) => at > found && at < found + this.#open.length)) return found;
			from = found + 1;
		}
	}

	/** Returns the literal text up to an offset, including data. */
	#literal(end: number): string {
		return this.#withData(this.#at, end);
	}

	/** Returns the text from `start` to `end`, including its data. All data up to `end` counts as used. */
	#withData(start: number, end: number): string {
		let text = '';
		let from = start;
		// Data inserted exactly where an action begins belongs to the text before the action. Data inserted where an action ends
		// belongs to the text after it.
		while (this.#next < this.#data.length && this.#data[this.#next]!.at <= end) {
			const { at, value } = this.#data[this.#next++]!;
			text += this.#text.slice(from, at) + value;
			from = at;
		}
		return text + this.#text.slice(from, end);
	}

	#comment(start: number): ActionPiece | undefined {
		if (!this.#text.startsWith('/*', this.#skipped())) return undefined;
		const at = this.#skipped();
		const end = this.#text.indexOf('*/', at + 2);
		if (end === -1) return this.#fail(start, 'unclosed comment');
		this.#at = end + 2;
		const trim = this.#trimsAfter();
		if (trim) this.#at += /^[ \t\r\n]+/.exec(this.#text.slice(this.#at, this.#at + 64))![0].length + 1;
		if (!this.#text.startsWith(this.#close, this.#at)) this.#fail(start, 'comment ends before closing delimiter');
		this.#at += this.#close.length;
		this.#noData(start, this.#at);
		return { tokens: [], start, end: this.#at, trim, comment: true };
	}

	/** Returns the offset at which a comment may begin: after the delimiter, or after a trim marker and white space. */
	#skipped(): number {
		let at = this.#at;
		if (this.#text[at - 1] === '-') while (SPACE.test(this.#text[at] ?? '')) at++;
		return at;
	}

	#trimsAfter(): boolean {
		const gap = /^[ \t\r\n]+-/.exec(this.#text.slice(this.#at, this.#at + 64));
		return gap !== null && this.#text.startsWith(this.#close, this.#at + gap[0].length);
	}

	#action(start: number): ActionPiece {
		const tokens: Token[] = [];
		let depth = 0;
		for (;;) {
			const before = this.#at;
			while (SPACE.test(this.#text[this.#at] ?? '')) this.#at++;
			const spaced = this.#at > before || tokens.length === 0;
			const trim = this.#text[this.#at] === '-' && this.#at > before && this.#closesAt(this.#at + 1);
			if (trim || this.#closesAt(this.#at)) {
				if (depth > 0) this.#fail(start, 'unclosed left paren');
				this.#at += this.#close.length + (trim ? 1 : 0);
				this.#noData(before, this.#at);
				tokens.push({ kind: 'end', text: '', start: this.#at, end: this.#at, spaced: true });
				return { tokens, start, end: this.#at, trim, comment: false };
			}
			if (this.#at >= this.#text.length) this.#fail(start, 'unclosed action');
			const token = this.#token(spaced);
			if (token.kind !== 'string') this.#noData(before, token.end);
			if (token.text === '(' && token.kind === 'operator') depth++;
			if (token.text === ')' && token.kind === 'operator' && --depth < 0)
				this.#fail(token.start, 'unexpected right paren');
			tokens.push(token);
		}
	}

	#closesAt(at: number): boolean {
		return this.#text.startsWith(this.#close, at);
	}

	/** Fails if there is data inside an action, where it would become part of the program. */
	#noData(start: number, end: number): void {
		const next = this.#data[this.#next];
		if (next && next.at < end) this.#fail(start, 'request data inside an action');
	}

	#token(spaced: boolean): Token {
		const start = this.#at;
		const c = this.#text[start]!;
		const make = (kind: TokenKind, text: string, end: number): Token => {
			this.#at = end;
			return { kind, text, start, end, spaced };
		};
		if (c === '"') return this.#quoted(spaced);
		if (c === '`') {
			const end = this.#text.indexOf('`', start + 1);
			if (end === -1) this.#fail(start, 'unterminated raw quoted string');
			return make('string', this.#withData(start + 1, end).replaceAll('\r', ''), end + 1);
		}
		if (c === "'") return this.#character(spaced);
		if (c === '$') {
			const name = this.#match(WORD, start + 1) ?? '';
			return make('variable', `$${name}`, start + 1 + name.length);
		}
		const number = this.#match(NUMBER, start);
		if (number !== undefined && number !== '.') {
			const after = this.#match(WORD, start + number.length);
			if (after !== undefined) this.#fail(start, `bad number syntax: "${number}${after}"`);
			return make('number', number, start + number.length);
		}
		if (c === '.') {
			const name = this.#match(WORD, start + 1);
			return name === undefined ? make('dot', '.', start + 1) : make('field', name, start + 1 + name.length);
		}
		for (const operator of OPERATORS) {
			if (this.#text.startsWith(operator, start)) return make('operator', operator, start + operator.length);
		}
		const word = this.#match(WORD, start);
		if (word !== undefined && !/^\p{Nd}/u.test(word)) return make('word', word, start + word.length);
		const character = String.fromCodePoint(this.#text.codePointAt(start)!);
		return this.#fail(start, `unexpected ${JSON.stringify(character)} in an action`);
	}

	#match(pattern: RegExp, at: number): string | undefined {
		pattern.lastIndex = at;
		return pattern.exec(this.#text)?.[0];
	}

	#quoted(spaced: boolean): Token {
		const start = this.#at;
		let value = '';
		let at = start + 1;
		let from = at;
		for (;;) {
			const c = this.#text[at];
			if (c === undefined || c === '\n') this.#fail(start, 'unterminated quoted string');
			if (c !== '"' && c !== '\\') {
				at++;
				continue;
			}
			value += this.#withData(from, at);
			if (c === '"') break;
			const escaped = this.#escape(at);
			value += escaped.value;
			at = escaped.end;
			from = at;
			this.#noData(start, at);
		}
		this.#at = at + 1;
		return { kind: 'string', text: value, start, end: at + 1, spaced };
	}

	#character(spaced: boolean): Token {
		const start = this.#at;
		const point = this.#text.codePointAt(start + 1);
		if (point === undefined || point === 39 || point === 10) this.#fail(start, 'malformed character constant');
		const { value, end } =
			point === 92
				? this.#escape(start + 1)
				: { value: String.fromCodePoint(point!), end: start + 1 + (point! > 0xffff ? 2 : 1) };
		if (this.#text[end] !== "'") this.#fail(start, 'malformed character constant');
		this.#at = end + 1;
		return { kind: 'character', text: value, start, end: end + 1, spaced };
	}

	/**
	 * Decodes an escape in a quoted string or character. `\xNN` and octal escapes are code points, and not bytes as in Go, because
	 * strings here are text.
	 */
	#escape(at: number): { value: string; end: number } {
		const c = this.#text[at + 1] ?? '';
		const plain = 'abfnrtv\\\'"'.indexOf(c);
		if (plain !== -1 && c !== '') return { value: '\x07\b\f\n\r\t\v\\\'"'[plain]!, end: at + 2 };
		const digits = { x: 2, u: 4, U: 8 }[c];
		const pattern = digits === undefined ? /^\\[0-7]{3}/ : new RegExp(`^\\\\.[0-9a-fA-F]{${digits}}`);
		const found = pattern.exec(this.#text.slice(at, at + 12))?.[0];
		const code = found && Number.parseInt(found.slice(digits === undefined ? 1 : 2), digits === undefined ? 8 : 16);
		if (found === undefined || code === undefined || Number(code) > 0x10ffff)
			return this.#fail(at, 'unknown escape in a string');
		return { value: String.fromCodePoint(Number(code)), end: at + found.length };
	}

	#fail(at: number, reason: string): never {
		throw new TemplateSyntaxError(lineOfOffset(this.#text, at), reason);
	}
}

interface ActionPiece {
	readonly tokens: readonly Token[];
	readonly start: number;
	readonly end: number;
	readonly trim: boolean;
	readonly comment: boolean;
}

function trimmedRight(text: string): string {
	let end = text.length;
	while (end > 0 && SPACE.test(text[end - 1]!)) end--;
	return text.slice(0, end);
}
