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

/** Maximum depth to which blocks and parentheses may be nested. */
const MAX_NESTING = 100;

const BLOCK_END_WORDS = new Set(['end', 'else']);

/**
 * Parses a template's source. `availabilityOf` returns true for the name of a function, and for any other name the reason why it
 * cannot be called. Throws TemplateSyntaxError.
 */
export function parseTemplate(
	source: TemplateSource,
	delimiters: Delimiters,
	availabilityOf: (name: string) => true | string,
): ParsedTemplate {
	const parser = new TemplateParser(source.text, splitTemplate(source, delimiters), availabilityOf);
	return { statements: parser.parseAll(), definitions: parser.definitions };
}

class TemplateParser {
	readonly definitions = new Map<string, readonly Statement[]>();
	readonly #text: string;
	readonly #pieces: readonly TemplatePiece[];
	readonly #availabilityOf: (name: string) => true | string;
	#pieceIndex = 0;
	#tokens: readonly Token[] = [];
	#tokenIndex = 0;
	/** Names of the variables in scope, by slot. */
	#variableNames: string[] = ['$'];
	#loopDepth = 0;
	#nestingDepth = 0;

	constructor(text: string, pieces: readonly TemplatePiece[], availabilityOf: (name: string) => true | string) {
		this.#text = text;
		this.#pieces = pieces;
		this.#availabilityOf = availabilityOf;
	}

	parseAll(): readonly Statement[] {
		const statements = this.#parseStatements(undefined);
		if (this.#tokens.length > 0) this.#fail(this.#tokens[0]!, `unexpected {{${this.#tokens[0]!.text}}}`);
		return statements;
	}

	/**
	 * Parses statements up to the action that ends their block. The tokens of that action are then in `#tokens`. `blockStart` is the
	 * first token of the block; undefined outside of blocks.
	 */
	#parseStatements(blockStart: Token | undefined): readonly Statement[] {
		const statements: Statement[] = [];
		while (this.#pieceIndex < this.#pieces.length) {
			const piece = this.#pieces[this.#pieceIndex++]!;
			if (piece.kind === 'text') {
				statements.push({ kind: 'text', text: piece.text });
				continue;
			}
			this.#tokens = piece.tokens;
			this.#tokenIndex = 0;
			const firstToken = this.#peek();
			if (firstToken.kind === 'word' && BLOCK_END_WORDS.has(firstToken.text)) return statements;
			const statement = this.#parseStatement(firstToken);
			if (statement) statements.push(statement);
		}
		this.#tokens = [];
		if (blockStart) this.#fail(blockStart, `unexpected EOF: {{${blockStart.text}}} has no {{end}}`);
		return statements;
	}

	#parseStatement(firstToken: Token): Statement | undefined {
		if (firstToken.kind === 'word') {
			switch (firstToken.text) {
				case 'if':
				case 'with':
				case 'range':
					return this.#parseControl(this.#takeToken(), firstToken.text) as Statement;
				case 'define':
					this.#parseDefine(this.#takeToken());
					return undefined;
				case 'block':
					return this.#parseBlock(this.#takeToken());
				case 'template':
					return this.#parseTemplateCall(this.#takeToken());
				case 'break':
				case 'continue': {
					this.#takeToken();
					this.#expectEnd(firstToken.text);
					if (this.#loopDepth === 0) this.#fail(firstToken, `{{${firstToken.text}}} outside {{range}}`);
					return { kind: firstToken.text };
				}
			}
		}
		return { kind: 'print', pipeline: this.#parsePipelineToEnd('command') };
	}

	#parseControl<Kind extends 'if' | 'with' | 'range'>(blockStart: Token, kind: Kind): ControlStatement<Kind> {
		this.#enterBlock(blockStart);
		const variableCount = this.#variableNames.length;
		const pipeline = this.#parsePipelineToEnd(kind);
		if (kind === 'range') this.#loopDepth++;
		const body = this.#parseInScope(() => this.#parseStatements(blockStart));
		if (kind === 'range') this.#loopDepth--;
		let otherwise: readonly Statement[] = [];
		const endToken = this.#takeToken();
		if (endToken.text === 'else') {
			const nextToken = this.#peek();
			if (nextToken.kind === 'word' && nextToken.text === kind && kind !== 'range') {
				// `{{else if}}` has no `{{end}}` of its own.
				otherwise = [this.#parseControl(this.#takeToken(), kind) as Statement];
				this.#variableNames.length = variableCount;
				this.#nestingDepth--;
				return { kind, pipeline, body, otherwise };
			}
			this.#expectEnd('else');
			otherwise = this.#parseInScope(() => this.#parseStatements(blockStart));
			if (this.#takeToken().text === 'else') this.#fail(blockStart, 'expected end; found {{else}}');
		}
		this.#expectEnd('end');
		this.#variableNames.length = variableCount;
		this.#nestingDepth--;
		return { kind, pipeline, body, otherwise };
	}

	/** Runs `parse` for the inside of a block. Variables that are declared there go out of scope at its end. */
	#parseInScope<T>(parse: () => T): T {
		const variableCount = this.#variableNames.length;
		const result = parse();
		this.#variableNames.length = variableCount;
		return result;
	}

	#parseDefine(blockStart: Token): void {
		if (this.#nestingDepth > 0) this.#fail(blockStart, 'unexpected {{define}} inside a block');
		const nameToken = this.#takeToken();
		if (nameToken.kind !== 'string') this.#failUnexpected(nameToken, 'define clause');
		this.#expectEnd('define clause');
		this.#parseDefinitionBody(blockStart, nameToken.text);
	}

	/** Parses the body of a template definition, whose statements have variables of their own. */
	#parseDefinitionBody(blockStart: Token, name: string): void {
		this.#enterBlock(blockStart);
		const [outerVariableNames, outerLoopDepth] = [this.#variableNames, this.#loopDepth];
		this.#variableNames = ['$'];
		this.#loopDepth = 0;
		const statements = this.#parseStatements(blockStart);
		if (this.#takeToken().text === 'else') this.#fail(blockStart, 'unexpected {{else}}');
		this.#expectEnd('end');
		[this.#variableNames, this.#loopDepth] = [outerVariableNames, outerLoopDepth];
		this.#nestingDepth--;
		// An empty definition does not replace one that is not empty.
		if (!this.definitions.has(name) || !isBlank(statements)) {
			if (this.definitions.has(name) && !isBlank(this.definitions.get(name)!)) {
				this.#fail(blockStart, `template: multiple definition of template "${name}"`);
			}
			this.definitions.set(name, statements);
		}
	}

	#parseBlock(blockStart: Token): Statement {
		const nameToken = this.#takeToken();
		if (nameToken.kind !== 'string') this.#failUnexpected(nameToken, 'block clause');
		const pipeline = this.#parsePipelineToEnd('block clause');
		this.#parseDefinitionBody(blockStart, nameToken.text);
		return { kind: 'template', name: nameToken.text, pipeline, start: blockStart.start, end: nameToken.end };
	}

	#parseTemplateCall(blockStart: Token): Statement {
		const nameToken = this.#takeToken();
		if (nameToken.kind !== 'string') this.#failUnexpected(nameToken, 'template clause');
		const pipeline = this.#peek().kind === 'end' ? undefined : this.#parsePipelineToEnd('template clause');
		return { kind: 'template', name: nameToken.text, pipeline, start: blockStart.start, end: nameToken.end };
	}

	/** Parses a pipeline up to the end of the action. */
	#parsePipelineToEnd(context: string): Pipeline {
		const pipeline = this.#parsePipeline(context, context === 'range');
		this.#expectEnd(context);
		return pipeline;
	}

	#parsePipeline(context: string, isRange: boolean): Pipeline {
		const firstToken = this.#peek();
		const declaredVariables: Token[] = [];
		let isDeclaration = false;
		if (firstToken.kind === 'variable') {
			const secondToken = this.#tokens[this.#tokenIndex + 1];
			const hasTwoVariables = isRange && isOperator(secondToken, ',');
			const operator = hasTwoVariables ? this.#tokens[this.#tokenIndex + 3] : secondToken;
			if (hasTwoVariables && this.#tokens[this.#tokenIndex + 2]?.kind !== 'variable')
				this.#fail(firstToken, 'range can only initialize variables');
			if (isOperator(operator, ':=') || isOperator(operator, '=')) {
				declaredVariables.push(this.#takeToken());
				if (hasTwoVariables) {
					this.#takeToken();
					declaredVariables.push(this.#takeToken());
				}
				isDeclaration = this.#takeToken().text === ':=';
			} else if (isOperator(secondToken, ',')) this.#fail(firstToken, `too many declarations in ${context}`);
		}
		const commands: Command[] = [];
		for (;;) {
			commands.push(this.#parseCommand(context));
			if (!isOperator(this.#peek(), '|')) break;
			this.#takeToken();
			if (this.#peek().kind === 'end') this.#fail(this.#peek(), `missing value for ${context}`);
		}
		for (const [i, { operands }] of commands.entries()) {
			const { kind } = operands[0]!;
			if (i > 0 && (kind === 'dot' || kind === 'nil' || kind === 'literal')) {
				this.#fail(operands[0]!, `non executable command in pipeline stage ${i + 1}`);
			}
		}
		const slots = declaredVariables.map(token => (isDeclaration ? this.#declareVariable(token) : this.#slotOf(token)));
		return { commands, slots, isDeclaration, start: firstToken.start, end: commands.at(-1)!.end };
	}

	#declareVariable(token: Token): number {
		if (token.text === '$') this.#fail(token, 'cannot declare $');
		return this.#variableNames.push(token.text) - 1;
	}

	#slotOf(token: Token): number {
		const slot = this.#variableNames.lastIndexOf(token.text);
		if (slot === -1) this.#fail(token, `undefined variable "${token.text}"`);
		return slot;
	}

	#parseCommand(context: string): Command {
		const operands: Operand[] = [];
		for (;;) {
			const token = this.#peek();
			if (token.kind === 'end' || isOperator(token, '|') || isOperator(token, ')')) break;
			if (!token.isSpaced && operands.length > 0) this.#failUnexpected(token, 'operand');
			operands.push(this.#parseOperand(context));
		}
		if (operands.length === 0) this.#fail(this.#peek(), `missing value for ${context}`);
		const firstOperand = operands[0]!;
		if (firstOperand.kind === 'nil') this.#fail(firstOperand, 'nil is not a command');
		return { operands, start: firstOperand.start, end: operands.at(-1)!.end };
	}

	#parseOperand(context: string): Operand {
		let operand = this.#parseTerm(context);
		for (let nextToken = this.#peek(); nextToken.kind === 'field' && !nextToken.isSpaced; nextToken = this.#peek()) {
			this.#takeToken();
			if (operand.kind === 'nil' || operand.kind === 'literal') {
				this.#fail(nextToken, `unexpected .${nextToken.text} after term`);
			}
			operand = { kind: 'field', operand, name: nextToken.text, start: operand.start, end: nextToken.end };
		}
		return operand;
	}

	#parseTerm(context: string): Operand {
		const token = this.#takeToken();
		const { start, end } = token;
		switch (token.kind) {
			case 'dot':
				return { kind: 'dot', start, end };
			case 'field':
				return { kind: 'field', operand: { kind: 'dot', start, end }, name: token.text, start, end };
			case 'variable':
				return { kind: 'variable', slot: this.#slotOf(token), start, end };
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
				return this.#parseWord(token);
			default:
				break;
		}
		if (!isOperator(token, '(')) this.#failUnexpected(token, context);
		this.#enterBlock(token);
		const pipeline = this.#parsePipeline('parenthesized pipeline', false);
		const closingParen = this.#takeToken();
		if (!isOperator(closingParen, ')')) this.#failUnexpected(closingParen, 'parenthesized pipeline');
		this.#nestingDepth--;
		return { kind: 'pipeline', pipeline, start, end: closingParen.end };
	}

	#parseWord(token: Token): Operand {
		const { text, start, end } = token;
		if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true', start, end };
		if (text === 'nil') return { kind: 'nil', start, end };
		const availability = this.#availabilityOf(text);
		if (availability !== true) this.#fail(token, availability);
		return { kind: 'function', name: text, start, end };
	}

	#enterBlock(place: { start: number }): void {
		if (++this.#nestingDepth > MAX_NESTING) this.#fail(place, `blocks nest deeper than ${MAX_NESTING}`);
	}

	#peek(): Token {
		return this.#tokens[this.#tokenIndex]!;
	}

	/** Returns the current token and advances to the next one, except at the token that ends the action. */
	#takeToken(): Token {
		const token = this.#tokens[this.#tokenIndex]!;
		if (token.kind !== 'end') this.#tokenIndex++;
		return token;
	}

	#expectEnd(context: string): void {
		const token = this.#peek();
		if (token.kind !== 'end') this.#failUnexpected(token, context);
	}

	#failUnexpected(token: Token, context: string): never {
		const tokenText = token.kind === 'end' ? 'the end of the action' : `"${this.#text.slice(token.start, token.end)}"`;
		this.#fail(token, `unexpected ${tokenText} in ${context}`);
	}

	#fail(place: { start: number }, reason: string): never {
		throw new TemplateSyntaxError(lineOfOffset(this.#text, place.start), reason);
	}
}

function isOperator(token: Token | undefined, text: string): boolean {
	return token?.kind === 'operator' && token.text === text;
}

function isBlank(statements: readonly Statement[]): boolean {
	return statements.every(statement => statement.kind === 'text' && statement.text.trim() === '');
}
