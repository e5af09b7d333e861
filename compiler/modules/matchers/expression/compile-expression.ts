/** Compiles an expression: parses it, resolves its matchers and placeholders, checks its types, and plans its evaluation. */
import type { CelFunc, CelInput } from '@bufbuild/cel';
import { placeholderText } from '../../../codegen/placeholders/placeholder.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Predicate } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { extensionFunctions, SORT_BY_FUNCTION } from './cel-extensions.ts';
import { type CelModules, loadCel } from './cel-library.ts';
import { type CelSyntaxNode, CelTypeError, exprTypeName, exprTypeOf } from './cel-type-check.ts';
import type { ExpressionMatcher } from './expression.ts';
import {
	MATCHER_CALLS,
	MatcherCallError,
	type MatcherCallScope,
	matcherOfCall,
	placeholderName,
} from './matcher-calls.ts';
import { PLACEHOLDER_FUNCTION, replacePlaceholders, restorePlaceholders } from './placeholder-calls.ts';
import { describeSyntaxError } from './syntax-error.ts';

/** Maximum number of characters of an expression. The parser recurses for every parenthesis, and could overflow the stack. */
const MAX_EXPRESSION_LENGTH = 16 * 1024;

/** The only placeholder whose value is a time. */
const TIME_PLACEHOLDER = 'time.now';

/** Compiles an expression to a predicate. Rejects syntax errors, type errors and expressions that are not of type bool. */
export function compileExpression({ expression, name, files }: ExpressionMatcher, cx: CompileContext): Predicate {
	const fail = (message: string, hint?: string): never =>
		cx.refuse(`compiling CEL program: ${message}`, 'expression/invalid', hint);
	if (expression.length > MAX_EXPRESSION_LENGTH)
		return fail(`the expression is longer than ${MAX_EXPRESSION_LENGTH} characters`);
	const cel = loadCel();
	const { text: expressionText, fullNames: placeholderNames } = replacePlaceholders(expression);
	const binding = new ExpressionBinding({ placeholders: placeholderNames, name, files }, cel, cx);
	try {
		const root = parseCel(expressionText, cel, placeholderNames);
		binding.bindTree(root);
		const env = cel.library.celEnv({
			funcs: [...cel.stringFunctions, ...extensionFunctions(cel.library), ...binding.functions],
			re2: { compile: pattern => binding.regexpFor(pattern) },
		});
		const typeName = exprTypeName(exprTypeOf(root, env));
		if (typeName !== 'bool') {
			return cx.refuse(`CEL request matcher expects return type of bool, not ${typeName}`, 'expression/not-a-bool');
		}
		return createPredicate(cel.library.plan(env, root) as () => unknown, binding, cel);
	} catch (error) {
		if (error instanceof CelTypeError) return fail(error.message, error.hint);
		if (error instanceof MatcherCallError) return fail(error.message);
		if (error instanceof RangeError) return fail('the expression is nested too deeply');
		throw error;
	}
}

function parseCel(text: string, cel: CelModules, placeholderNames: readonly string[] = []): CelSyntaxNode {
	try {
		// The library requires a newline after a comment, even at the end of the text.
		return cel.library.parse(`${text}\n`).expr;
	} catch (error) {
		if (error instanceof RangeError) throw error;
		const { message, location } = error as Error & { location?: { start: { offset: number } } };
		const offset = location?.start.offset;
		if (offset === undefined) throw new CelTypeError(message);
		const write = (part: string): string => restorePlaceholders(part, placeholderNames).trim();
		throw describeSyntaxError(write(text.slice(0, offset)), write(text.slice(offset)), message);
	}
}

function createPredicate(evaluate: () => unknown, binding: ExpressionBinding, { library }: CelModules): Predicate {
	return x => {
		const outerExchange = binding.exchange;
		binding.exchange = x;
		binding.matcherError = undefined;
		let result: unknown;
		try {
			result = evaluate();
		} finally {
			binding.exchange = outerExchange;
		}
		if (typeof result === 'boolean') return result;
		if (binding.matcherError !== undefined) throw binding.matcherError;
		const reason = library.isCelError(result) ? result.message : 'the result is not a bool';
		throw new HttpError(500, `The expression failed: ${reason}`);
	};
}

/**
 * Binds the matchers and placeholders in one expression to the exchange being handled: each is replaced by the call of a function
 * without arguments that reads the exchange.
 */
class ExpressionBinding {
	readonly functions: CelFunc[] = [];
	/** The exchange for which the expression is evaluated. */
	exchange: Exchange | undefined = undefined;
	/** The error that a matcher has thrown. It is more specific than the error to which the library converts it. */
	matcherError: unknown = undefined;
	/** Compiled regular expressions that are written as literals, by source. */
	readonly #regexps = new Map<string, RegExp>();
	#lastDynamicRegexp: { readonly source: string; readonly regexp: RegExp } | undefined;
	readonly #scope: MatcherCallScope;
	readonly #cel: CelModules;
	readonly #cx: CompileContext;

	constructor(scope: MatcherCallScope, cel: CelModules, cx: CompileContext) {
		this.#scope = scope;
		this.#cel = cel;
		this.#cx = cx;
	}

	/** Replaces matchers, placeholders and macros in the tree, in place. */
	bindTree(expr: CelSyntaxNode): void {
		const kind = expr.exprKind;
		switch (kind.case) {
			case 'callExpr': {
				const { target, function: name, args } = kind.value;
				if (!target && name === PLACEHOLDER_FUNCTION) this.#bindPlaceholder(expr, placeholderName(args, this.#scope));
				else if (!target && MATCHER_CALLS.has(name)) this.#bindMatcher(expr, name, args);
				else if (target && name === 'bind' && isName(target, 'cel')) this.#expandBind(expr, args);
				else if (target && name === 'sortBy') this.#expandSortBy(expr, target, args);
				else {
					const lastArgument = args.at(-1)?.exprKind;
					const constant = lastArgument?.case === 'constExpr' ? lastArgument.value.constantKind : undefined;
					if (name === 'matches' && constant?.case === 'stringValue') this.#addRegexp(constant.value);
					if (target) this.bindTree(target);
					for (const arg of args) this.bindTree(arg);
				}
				return;
			}
			case 'selectExpr':
				this.bindTree(kind.value.operand!);
				return;
			case 'listExpr':
				for (const element of kind.value.elements) this.bindTree(element);
				return;
			case 'structExpr':
				for (const { keyKind, value } of kind.value.entries) {
					if (keyKind.case === 'mapKey') this.bindTree(keyKind.value);
					if (value) this.bindTree(value);
				}
				return;
			case 'comprehensionExpr': {
				const { accuInit, iterRange, loopCondition, loopStep, result } = kind.value;
				for (const part of [accuInit, iterRange, loopCondition, loopStep, result]) if (part) this.bindTree(part);
				return;
			}
		}
	}

	#addRegexp(source: string): void {
		this.#regexps.set(source, this.#cx.regexpFor(source));
	}

	/** Returns the compiled regular expression for a call of `matches`. Throws RegexpError. */
	regexpFor(source: string): RegExp {
		const literalRegexp = this.#regexps.get(source);
		if (literalRegexp) return literalRegexp;
		if (this.#lastDynamicRegexp?.source !== source) {
			this.#lastDynamicRegexp = { source, regexp: this.#cx.dynamicRegexp(source) };
		}
		return this.#lastDynamicRegexp.regexp;
	}

	#bindMatcher(expr: CelSyntaxNode, name: string, args: readonly CelSyntaxNode[]): void {
		const predicate = this.#cx.matcher(matcherOfCall(name, args, this.#scope), 'expression');
		const { celFunc, CelScalar } = this.#cel.library;
		this.#replaceByCall(expr, (functionName: string) =>
			celFunc(functionName, [], CelScalar.BOOL, () => {
				try {
					return predicate(this.exchange!);
				} catch (error) {
					this.matcherError = error;
					throw error;
				}
			}),
		);
	}

	#bindPlaceholder(expr: CelSyntaxNode, name: string): void {
		const { celFunc, CelScalar, celList } = this.#cel.library;
		if (name === TIME_PLACEHOLDER) {
			// The function returns milliseconds, which the library's `timestamp` converts to a time.
			this.#replaceByCall(expr, functionName =>
				celFunc(functionName, [], CelScalar.INT, () => BigInt(Math.floor(this.exchange!.now()))),
			);
			const originalExpr = { ...expr };
			expr.exprKind = createCallExpr('timestamp', [originalExpr]);
			return;
		}
		const readPlaceholder = this.#cx.placeholder(name);
		this.#replaceByCall(expr, functionName =>
			celFunc(functionName, [], CelScalar.DYN, () =>
				readPlaceholder ? toCelInput(readPlaceholder(this.exchange!), celList) : null,
			),
		);
	}

	#replaceByCall(expr: CelSyntaxNode, createFunction: (functionName: string) => CelFunc): void {
		const functionName = `svc.bound${this.functions.length}`;
		this.functions.push(createFunction(functionName));
		expr.exprKind = createCallExpr(functionName, []);
	}

	/** Expands `list.sortBy(name, key)` to the list and the keys of its elements, computed by `list.map(name, key)`. */
	#expandSortBy(expr: CelSyntaxNode, list: CelSyntaxNode, args: readonly CelSyntaxNode[]): void {
		const [variable, key] = args;
		if (args.length !== 2 || variable?.exprKind.case !== 'identExpr') {
			throw new CelTypeError('sortBy() takes a name and an expression');
		}
		this.bindTree(list);
		this.bindTree(key!);
		const keysExpr = parseCel('list.map(name, key)', this.#cel);
		const comprehension = keysExpr.exprKind.value as Comprehension;
		comprehension.iterRange = list;
		comprehension.iterVar = variable.exprKind.value.name;
		replaceName(comprehension.loopStep!, 'key', key!);
		expr.exprKind = createCallExpr(SORT_BY_FUNCTION, [list, keysExpr]);
	}

	/**
	 * Expands `cel.bind(name, value, expression)` to a comprehension over an empty list. The accumulator is `name`, with the initial
	 * value `value`; the result is `expression`.
	 */
	#expandBind(expr: CelSyntaxNode, args: readonly CelSyntaxNode[]): void {
		const [variable, valueExpr, resultExpr] = args;
		if (args.length !== 3 || variable?.exprKind.case !== 'identExpr') {
			throw new CelTypeError('cel.bind() takes a name, a value and an expression');
		}
		this.bindTree(valueExpr!);
		this.bindTree(resultExpr!);
		const { name } = variable.exprKind.value;
		const exprWithKind = (exprKind: CelSyntaxNode['exprKind']): CelSyntaxNode => ({ ...expr, exprKind });
		expr.exprKind = {
			case: 'comprehensionExpr',
			value: {
				$typeName: 'cel.expr.Expr.Comprehension',
				iterVar: '#unused',
				iterVar2: '',
				iterRange: exprWithKind({
					case: 'listExpr',
					value: { $typeName: 'cel.expr.Expr.CreateList', elements: [], optionalIndices: [] },
				}),
				accuVar: name,
				accuInit: valueExpr!,
				loopCondition: exprWithKind({
					case: 'constExpr',
					value: { $typeName: 'cel.expr.Constant', constantKind: { case: 'boolValue', value: false } },
				}),
				loopStep: variable,
				result: resultExpr!,
			},
		};
	}
}

function createCallExpr(name: string, args: CelSyntaxNode[]): CelSyntaxNode['exprKind'] {
	return { case: 'callExpr', value: { $typeName: 'cel.expr.Expr.Call', function: name, args } };
}

type Comprehension = Extract<CelSyntaxNode['exprKind'], { case: 'comprehensionExpr' }>['value'];

/** Replaces a name with an expression in the arguments of calls and in lists, in place. */
function replaceName(expr: CelSyntaxNode, name: string, replacement: CelSyntaxNode): void {
	const { exprKind } = expr;
	const parts =
		exprKind.case === 'callExpr' ? exprKind.value.args : exprKind.case === 'listExpr' ? exprKind.value.elements : [];
	for (const [index, part] of parts.entries()) {
		if (isName(part, name)) parts[index] = replacement;
		else replaceName(part, name, replacement);
	}
}

function isName(expr: CelSyntaxNode, name: string): boolean {
	return expr.exprKind.case === 'identExpr' && expr.exprKind.value.name === name;
}

/** Converts the value of a placeholder to a CEL value: whole numbers become ints, missing values null. */
function toCelInput(value: unknown, createList: CelModules['library']['celList']): CelInput {
	if (value === undefined || value === null) return null;
	if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint') return value;
	if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
	if (Array.isArray(value)) return createList(value.map(item => toCelInput(item, createList)));
	return placeholderText(value);
}
