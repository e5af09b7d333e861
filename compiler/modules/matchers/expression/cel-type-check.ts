/**
 * Checks the types of an expression when it is compiled, so that unknown names and calls that can only fail are rejected before
 * the configuration is served.
 */
import type { CelEnv, CelFunc, CelType } from '@bufbuild/cel';

/** The library's syntax tree. The library exports only the type of its root. */
export type CelSyntaxNode = NonNullable<ReturnType<typeof import('@bufbuild/cel')['parse']>['expr']>;

/** A type by its CEL name; lists and maps have an element type. `dyn` is a type known only at run time. */
export type ExprType = string | { readonly kind: 'list' | 'map'; readonly of: ExprType };

/** A type error; its message is one sentence. */
export class CelTypeError extends Error {}

type Scope = ReadonlyMap<string, ExprType>;

const NUMBERS: ReadonlySet<ExprType> = new Set(['int', 'uint', 'double']);
const TYPE_NAMES: ReadonlySet<string> = new Set([
	...['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'],
	...['google.protobuf.Timestamp', 'google.protobuf.Duration'],
]);

/** Returns the type of an expression. Throws {@link CelTypeError}. */
export function exprTypeOf(expr: CelSyntaxNode, env: CelEnv, scope: Scope = new Map()): ExprType {
	const kind = expr.exprKind;
	switch (kind.case) {
		case 'constExpr':
			return CONSTANTS[kind.value.constantKind.case ?? 'nullValue'] ?? 'dyn';
		case 'identExpr':
			return typeOfName(kind.value.name, scope);
		case 'selectExpr': {
			const operand = exprTypeOf(kind.value.operand!, env, scope);
			if (operand !== 'dyn' && exprTypeName(operand) !== 'map') {
				throw new CelTypeError(`type '${exprTypeName(operand)}' does not support field selection`);
			}
			return kind.value.testOnly ? 'bool' : elementOf(operand);
		}
		case 'listExpr':
			return { kind: 'list', of: joined(kind.value.elements.map(element => exprTypeOf(element, env, scope))) };
		case 'structExpr': {
			const values = kind.value.entries.map(entry => {
				if (entry.keyKind.case === 'mapKey') exprTypeOf(entry.keyKind.value, env, scope);
				return exprTypeOf(entry.value!, env, scope);
			});
			return kind.value.messageName === '' ? { kind: 'map', of: joined(values) } : 'dyn';
		}
		case 'comprehensionExpr': {
			const { accuVar, accuInit, iterVar, iterRange, loopCondition, loopStep, result } = kind.value;
			const range = exprTypeOf(iterRange!, env, scope);
			if (range !== 'dyn' && typeof range === 'string') {
				throw new CelTypeError(`expression of type '${range}' cannot be range of a comprehension`);
			}
			const item = typeof range === 'object' && range.kind === 'list' ? range.of : 'dyn';
			const first = exprTypeOf(accuInit!, env, scope);
			let inner = new Map([...scope, [accuVar, first], [iterVar, item]]);
			exprTypeOf(loopCondition!, env, inner);
			const step = exprTypeOf(loopStep!, env, inner);
			inner = new Map([...inner, [accuVar, exprTypeName(first) === 'list' ? step : first]]);
			return exprTypeOf(result!, env, inner);
		}
		case 'callExpr': {
			const { target, function: name, args } = kind.value;
			const qualified = target && qualifiedName(target, scope);
			const whole = qualified === undefined ? undefined : env.funcs.find(`${qualified}.${name}`);
			const types = args.map(arg => exprTypeOf(arg, env, scope));
			if (whole) return ofCall(`${qualified}.${name}`, undefined, types, whole);
			return ofCall(name, target && exprTypeOf(target, env, scope), types, env.funcs.find(name));
		}
		default:
			throw new CelTypeError('the expression is empty');
	}
}

const CONSTANTS: { readonly [kind: string]: ExprType } = {
	boolValue: 'bool',
	bytesValue: 'bytes',
	doubleValue: 'double',
	int64Value: 'int',
	nullValue: 'null_type',
	stringValue: 'string',
	uint64Value: 'uint',
};

/** Returns the name of a type without its element type: `int` for `int`, `list` for any list. */
export function exprTypeName(type: ExprType): string {
	return typeof type === 'string' ? type : type.kind;
}

function typeOfName(name: string, scope: Scope): ExprType {
	const known = scope.get(name);
	if (known !== undefined) return known;
	if (TYPE_NAMES.has(name)) return 'type';
	throw new CelTypeError(`undeclared reference to '${name}' (in container '')`);
}

/** Returns a name such as `math.greatest` if the target of a call is a name and not a variable. */
function qualifiedName(expr: CelSyntaxNode, scope: Scope): string | undefined {
	if (expr.exprKind.case !== 'identExpr') return undefined;
	return scope.has(expr.exprKind.value.name) ? undefined : expr.exprKind.value.name;
}

function elementOf(type: ExprType): ExprType {
	return typeof type === 'object' ? type.of : 'dyn';
}

function joined(types: readonly ExprType[]): ExprType {
	const [first] = types;
	return first !== undefined && types.every(type => sameType(type, first)) ? first : 'dyn';
}

function sameType(a: ExprType, b: ExprType): boolean {
	if (typeof a === 'string' || typeof b === 'string') return a === b;
	return a.kind === b.kind && sameType(a.of, b.of);
}

function ofCall(
	name: string,
	target: ExprType | undefined,
	args: readonly ExprType[],
	known: Iterable<CelFunc> | undefined,
): ExprType {
	const refuse = (): never => {
		const shown = `(${args.map(exprTypeName).join(', ')})`;
		throw new CelTypeError(
			`found no matching overload for '${name}' applied to '${target === undefined ? shown : `${exprTypeName(target)}.${shown}`}'`,
		);
	};
	switch (name) {
		case '_&&_':
		case '_||_':
			return args.every(type => fits(type, 'bool')) ? 'bool' : refuse();
		case '@not_strictly_false':
			return 'bool';
		case '_?_:_':
			return fits(args[0]!, 'bool') ? joined(args.slice(1)) : refuse();
		case '_[_]':
			return fits(args[0]!, 'list') || fits(args[0]!, 'map') ? elementOf(args[0]!) : refuse();
		case '_==_':
		case '_!=_':
			return comparable(args[0]!, args[1]!) ? 'bool' : refuse();
		case '_+_':
			if (args.every(type => exprTypeName(type) === 'list')) return joined(args);
	}
	if (!known) throw new CelTypeError(`undeclared reference to '${name}' (in container '')`);
	const results: ExprType[] = [];
	for (const func of known) if (accepts(func, target, args)) results.push(ofLibrary(func.result));
	return results.length === 0 ? refuse() : joined(results);
}

function accepts(func: CelFunc, target: ExprType | undefined, args: readonly ExprType[]): boolean {
	if ((func.target === undefined) !== (target === undefined) || func.arguments.length !== args.length) return false;
	if (func.target !== undefined && !fits(target!, func.target.name)) return false;
	return func.arguments.every((type, at) => fits(args[at]!, type.name));
}

function fits(type: ExprType, wanted: string): boolean {
	return type === 'dyn' || wanted === 'dyn' || exprTypeName(type) === wanted;
}

function comparable(a: ExprType, b: ExprType): boolean {
	if (a === 'dyn' || b === 'dyn' || a === 'null_type' || b === 'null_type') return true;
	if (NUMBERS.has(a) && NUMBERS.has(b)) return true;
	return exprTypeName(a) === exprTypeName(b);
}

function ofLibrary(type: CelType): ExprType {
	if (type.kind === 'list') return { kind: 'list', of: ofLibrary(type.element) };
	if (type.kind === 'map') return { kind: 'map', of: ofLibrary(type.value) };
	return type.name;
}
