/** Parses the pieces of a template into a syntax tree. */
import type { Command, ControlStatement, Operand, ParsedTemplate, Pipeline, Statement } from './ast.ts';
import {
	type Delimiters,
	lineOfOffset,
	splitTemplate,
	type TemplatePiece,
	type TemplateSource,
	type Token,
} from './lexer.ts';
import { parseCharacter, parseNumber } from './literals.ts';
import { TemplateSyntaxError } from './template-error.ts';

/** Maximum nesting of blocks and of parentheses. */
const MAX_NESTING = 100;

const END_OF_BLOCK = new Set(['end', 'else']);

/** Parses a source. `isFunction` reports known functions. Throws TemplateSyntaxError. */
export function parseTemplate(
	source: TemplateSource,
	delimiters: Delimiters,
	isFunction: (name: string) => true | string,
): ParsedTemplate {
	const parser = new Parser(source.text, splitTemplate(source, delimiters), isFunction);
	return { statements: parser.whole(), defines: parser.defines };
}

class Parser {
	readonly defines = new Map<string, readonly Statement[]>();
	readonly #text: string;
	readonly #pieces: readonly TemplatePiece[];
	readonly #isFunction: (name: string) => true | string;
	#piece = 0;
	#tokens: readonly Token[] = [];
	#token = 0;
	/** Names of the variables in scope, by slot. */
	#names: string[] = ['$'];
	#loops = 0;
	#nesting = 0;

	constructor(text: string, pieces: readonly TemplatePiece[], isFunction: (name: string) => true | string) {
		this.#text = text;
		this.#pieces = pieces;
		this.#isFunction = isFunction;
	}

	whole(): readonly Statement[] {
		const statements = this.#statements(undefined);
		if (this.#tokens.length > 0) this.#fail(this.#tokens[0]!, `unexpected {{${this.#tokens[0]!.text}}}`);
		return statements;
	}

	/**
	 * Parses statements up to the action that ends them, whose tokens become the current ones. `opened` is the beginning of the
	 * enclosing block.
	 */
	#statements(opened: Token | undefined): readonly Statement[] {
		const statements: Statement[] = [];
		while (this.#piece < this.#pieces.length) {
			const piece = this.#pieces[this.#piece++]!;
			if (piece.kind === 'text') {
				statements.push({ kind: 'text', text: piece.text });
				continue;
			}
			this.#tokens = piece.tokens;
			this.#token = 0;
			const first = this.#peek();
			if (first.kind === 'word' && END_OF_BLOCK.has(first.text)) return statements;
			const statement = this.#statement(first);
			if (statement) statements.push(statement);
		}
		this.#tokens = [];
		if (opened) this.#fail(opened, `unexpected EOF: {{${opened.text}}} has no {{end}}`);
		return statements;
	}

	#statement(first: Token): Statement | undefined {
		if (first.kind === 'word') {
			switch (first.text) {
				case 'if':
				case 'with':
				case 'range':
					return this.#control(this.#take(), first.text) as Statement;
				case 'define':
					this.#define(this.#take());
					return undefined;
				case 'block':
					return this.#block(this.#take());
				case 'template':
					return this.#template(this.#take());
				case 'break':
				case 'continue': {
					this.#take();
					this.#noMore(first.text);
					if (this.#loops === 0) this.#fail(first, `{{${first.text}}} outside {{range}}`);
					return { kind: first.text };
				}
			}
		}
		return { kind: 'print', pipeline: this.#wholePipeline('command') };
	}

	#control<Kind extends 'if' | 'with' | 'range'>(opened: Token, kind: Kind): ControlStatement<Kind> {
		this.#deeper(opened);
		const scope = this.#names.length;
		const pipeline = this.#wholePipeline(kind);
		if (kind === 'range') this.#loops++;
		const body = this.#scoped(() => this.#statements(opened));
		if (kind === 'range') this.#loops--;
		let otherwise: readonly Statement[] = [];
		const stop = this.#take();
		if (stop.text === 'else') {
			const next = this.#peek();
			if (next.kind === 'word' && next.text === kind && kind !== 'range') {
				// `{{else if}}` has no `{{end}}` of its own.
				otherwise = [this.#control(this.#take(), kind) as Statement];
				this.#names.length = scope;
				this.#nesting--;
				return { kind, pipeline, body, otherwise };
			}
			this.#noMore('else');
			otherwise = this.#scoped(() => this.#statements(opened));
			if (this.#take().text === 'else') this.#fail(opened, 'expected end; found {{else}}');
		}
		this.#noMore('end');
		this.#names.length = scope;
		this.#nesting--;
		return { kind, pipeline, body, otherwise };
	}

	/** Parses the inside of a block: variables declared there go out of scope at its end. */
	#scoped<T>(parse: () => T): T {
		const scope = this.#names.length;
		const result = parse();
		this.#names.length = scope;
		return result;
	}

	#define(opened: Token): void {
		if (this.#nesting > 0) this.#fail(opened, 'unexpected {{define}} inside a block');
		const name = this.#take();
		if (name.kind !== 'string') this.#unexpected(name, 'define clause');
		this.#noMore('define clause');
		this.#body(opened, name.text);
	}

	/** Parses a template definition: its statements have their own variables. */
	#body(opened: Token, name: string): void {
		this.#deeper(opened);
		const [names, loops] = [this.#names, this.#loops];
		this.#names = ['$'];
		this.#loops = 0;
		const statements = this.#statements(opened);
		if (this.#take().text === 'else') this.#fail(opened, 'unexpected {{else}}');
		this.#noMore('end');
		[this.#names, this.#loops] = [names, loops];
		this.#nesting--;
		// An empty definition does not replace one that is not empty.
		if (!this.defines.has(name) || !isBlank(statements)) {
			if (this.defines.has(name) && !isBlank(this.defines.get(name)!)) {
				this.#fail(opened, `template: multiple definition of template "${name}"`);
			}
			this.defines.set(name, statements);
		}
	}

	#block(opened: Token): Statement {
		const name = this.#take();
		if (name.kind !== 'string') this.#unexpected(name, 'block clause');
		const pipeline = this.#wholePipeline('block clause');
		this.#body(opened, name.text);
		return { kind: 'template', name: name.text, pipeline, start: opened.start, end: name.end };
	}

	#template(opened: Token): Statement {
		const name = this.#take();
		if (name.kind !== 'string') this.#unexpected(name, 'template clause');
		const pipeline = this.#peek().kind === 'end' ? undefined : this.#wholePipeline('template clause');
		return { kind: 'template', name: name.text, pipeline, start: opened.start, end: name.end };
	}

	/** Parses a pipeline up to the end of the action. */
	#wholePipeline(context: string): Pipeline {
		const pipeline = this.#pipeline(context, context === 'range');
		this.#noMore(context);
		return pipeline;
	}

	#pipeline(context: string, range: boolean): Pipeline {
		const first = this.#peek();
		const declared: Token[] = [];
		let declares = false;
		if (first.kind === 'variable') {
			const second = this.#tokens[this.#token + 1];
			const pair = range && isOperator(second, ',');
			const operator = pair ? this.#tokens[this.#token + 3] : second;
			if (pair && this.#tokens[this.#token + 2]?.kind !== 'variable')
				this.#fail(first, 'range can only initialize variables');
			if (isOperator(operator, ':=') || isOperator(operator, '=')) {
				declared.push(this.#take());
				if (pair) {
					this.#take();
					declared.push(this.#take());
				}
				declares = this.#take().text === ':=';
			} else if (isOperator(second, ',')) this.#fail(first, `too many declarations in ${context}`);
		}
		const commands: Command[] = [];
		for (;;) {
			commands.push(this.#command(context));
			if (!isOperator(this.#peek(), '|')) break;
			this.#take();
			if (this.#peek().kind === 'end') this.#fail(this.#peek(), `missing value for ${context}`);
		}
		for (const [i, { operands }] of commands.entries()) {
			const { kind } = operands[0]!;
			if (i > 0 && (kind === 'dot' || kind === 'nil' || kind === 'literal')) {
				this.#fail(operands[0]!, `non executable command in pipeline stage ${i + 1}`);
			}
		}
		const slots = declared.map(token => (declares ? this.#declare(token) : this.#slot(token)));
		return { commands, slots, declares, start: first.start, end: commands.at(-1)!.end };
	}

	#declare(token: Token): number {
		if (token.text === '$') this.#fail(token, 'cannot declare $');
		return this.#names.push(token.text) - 1;
	}

	#slot(token: Token): number {
		const slot = this.#names.lastIndexOf(token.text);
		if (slot === -1) this.#fail(token, `undefined variable "${token.text}"`);
		return slot;
	}

	#command(context: string): Command {
		const operands: Operand[] = [];
		for (;;) {
			const token = this.#peek();
			if (token.kind === 'end' || isOperator(token, '|') || isOperator(token, ')')) break;
			if (!token.spaced && operands.length > 0) this.#unexpected(token, 'operand');
			operands.push(this.#operand(context));
		}
		if (operands.length === 0) this.#fail(this.#peek(), `missing value for ${context}`);
		const first = operands[0]!;
		if (first.kind === 'nil') this.#fail(first, 'nil is not a command');
		return { operands, start: first.start, end: operands.at(-1)!.end };
	}

	#operand(context: string): Operand {
		let operand = this.#term(context);
		for (let next = this.#peek(); next.kind === 'field' && !next.spaced; next = this.#peek()) {
			this.#take();
			if (operand.kind === 'nil' || operand.kind === 'literal') {
				this.#fail(next, `unexpected .${next.text} after term`);
			}
			operand = { kind: 'field', of: operand, name: next.text, start: operand.start, end: next.end };
		}
		return operand;
	}

	#term(context: string): Operand {
		const token = this.#take();
		const { start, end } = token;
		switch (token.kind) {
			case 'dot':
				return { kind: 'dot', start, end };
			case 'field':
				return { kind: 'field', of: { kind: 'dot', start, end }, name: token.text, start, end };
			case 'variable':
				return { kind: 'variable', slot: this.#slot(token), start, end };
			case 'string':
				return { kind: 'literal', value: token.text, start, end };
			case 'character':
				return { kind: 'literal', value: parseCharacter(token.text), start, end };
			case 'number': {
				const value = parseNumber(token.text);
				if (value === undefined) this.#fail(token, `bad number syntax: "${token.text}"`);
				return { kind: 'literal', value: value!, start, end };
			}
			case 'word':
				return this.#word(token);
			default:
				break;
		}
		if (!isOperator(token, '(')) this.#unexpected(token, context);
		this.#deeper(token);
		const pipeline = this.#pipeline('parenthesized pipeline', false);
		const close = this.#take();
		if (!isOperator(close, ')')) this.#unexpected(close, 'parenthesized pipeline');
		this.#nesting--;
		return { kind: 'pipeline', pipeline, start, end: close.end };
	}

	#word(token: Token): Operand {
		const { text, start, end } = token;
		if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true', start, end };
		if (text === 'nil') return { kind: 'nil', start, end };
		const known = this.#isFunction(text);
		if (known !== true) this.#fail(token, known);
		return { kind: 'function', name: text, start, end };
	}

	#deeper(at: { start: number }): void {
		if (++this.#nesting > MAX_NESTING) this.#fail(at, `blocks nest deeper than ${MAX_NESTING}`);
	}

	#peek(): Token {
		return this.#tokens[this.#token]!;
	}

	/** Returns the next token; stays at the token that ends the action. */
	#take(): Token {
		const token = this.#tokens[this.#token]!;
		if (token.kind !== 'end') this.#token++;
		return token;
	}

	#noMore(context: string): void {
		const token = this.#peek();
		if (token.kind !== 'end') this.#unexpected(token, context);
	}

	#unexpected(token: Token, context: string): never {
		const what = token.kind === 'end' ? 'the end of the action' : `"${this.#text.slice(token.start, token.end)}"`;
		this.#fail(token, `unexpected ${what} in ${context}`);
	}

	#fail(at: { start: number }, reason: string): never {
		throw new TemplateSyntaxError(lineOfOffset(this.#text, at.start), reason);
	}
}

function isOperator(token: Token | undefined, text: string): boolean {
	return token?.kind === 'operator' && token.text === text;
}

function isBlank(statements: readonly Statement[]): boolean {
	return statements.every(statement => statement.kind === 'text' && statement.text.trim() === '');
}
