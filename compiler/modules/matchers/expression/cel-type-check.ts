/**
 * Checks the types of an expression when it is compiled, so that unknown names and calls that can only fail are rejected before
 * the configuration is served.
 */
import type { CelEnv, CelFunc, CelType } from '@bufbuild/cel';

/** A node of the library's syntax tree. Derived from the type of the tree's root, because the library exports no type of nodes. */
export type CelSyntaxNode = NonNullable<ReturnType<typeof import('@bufbuild/cel')['parse']>['expr']>;

/** A CEL type: its name or, for lists and maps, an object with the element type. The type `dyn` is known only at run time. */
export type ExprType = string | { readonly kind: 'list' | 'map'; readonly element: ExprType };

/** A syntax or type error; its message is one sentence. */
export class CelTypeError extends Error {
	/** What to write instead, if that is clear. */
	readonly hint: string | undefined;

	constructor(message: string, hint?: string) {
		super(message);
		this.hint = hint;
	}
}

type Scope = ReadonlyMap<string, ExprType>;

const NUMBER_TYPES: ReadonlySet<ExprType> = new Set(['int', 'uint', 'double']);
const TYPE_NAMES: ReadonlySet<string> = new Set([
	...['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'],
	...['google.protobuf.Timestamp', 'google.protobuf.Duration'],
]);

/** Returns the type of an expression. Throws {@link CelTypeError} if it has none. `scope` has the types of variables. */
export function exprTypeOf(expr: CelSyntaxNode, env: CelEnv, scope: Scope = new Map()): ExprType {
	const kind = expr.exprKind;
	switch (kind.case) {
		case 'constExpr':
			return TYPES_BY_CONSTANT_KIND[kind.value.constantKind.case ?? 'nullValue'] ?? 'dyn';
		case 'identExpr':
			return typeOfName(kind.value.name, scope);
		case 'selectExpr': {
			const operandType = exprTypeOf(kind.value.operand!, env, scope);
			if (operandType !== 'dyn' && exprTypeName(operandType) !== 'map') {
				throw new CelTypeError(`type '${exprTypeName(operandType)}' does not support field selection`);
			}
			return kind.value.testOnly ? 'bool' : elementTypeOf(operandType);
		}
		case 'listExpr':
			return { kind: 'list', element: commonType(kind.value.elements.map(element => exprTypeOf(element, env, scope))) };
		case 'structExpr': {
			const valueTypes = kind.value.entries.map(entry => {
				if (entry.keyKind.case === 'mapKey') exprTypeOf(entry.keyKind.value, env, scope);
				return exprTypeOf(entry.value!, env, scope);
			});
			return kind.value.messageName === '' ? { kind: 'map', element: commonType(valueTypes) } : 'dyn';
		}
		case 'comprehensionExpr': {
			const { accuVar, accuInit, iterVar, iterRange, loopCondition, loopStep, result } = kind.value;
			const rangeType = exprTypeOf(iterRange!, env, scope);
			if (rangeType !== 'dyn' && typeof rangeType === 'string') {
				throw new CelTypeError(`expression of type '${rangeType}' cannot be range of a comprehension`);
			}
			const itemType = typeof rangeType === 'object' && rangeType.kind === 'list' ? rangeType.element : 'dyn';
			const accumulatorType = exprTypeOf(accuInit!, env, scope);
			let loopScope = new Map([...scope, [accuVar, accumulatorType], [iterVar, itemType]]);
			exprTypeOf(loopCondition!, env, loopScope);
			const stepType = exprTypeOf(loopStep!, env, loopScope);
			loopScope = new Map([
				...loopScope,
				[accuVar, exprTypeName(accumulatorType) === 'list' ? stepType : accumulatorType],
			]);
			return exprTypeOf(result!, env, loopScope);
		}
		case 'callExpr': {
			const { target, function: name, args } = kind.value;
			const qualifier = target && qualifierOf(target, scope);
			const qualifiedFunctions = qualifier === undefined ? undefined : env.funcs.find(`${qualifier}.${name}`);
			const argumentTypes = args.map(arg => exprTypeOf(arg, env, scope));
			if (qualifiedFunctions) return typeOfCall(`${qualifier}.${name}`, undefined, argumentTypes, qualifiedFunctions);
			return typeOfCall(name, target && exprTypeOf(target, env, scope), argumentTypes, env.funcs.find(name));
		}
		default:
			throw new CelTypeError('the expression is empty');
	}
}

const TYPES_BY_CONSTANT_KIND: { readonly [kind: string]: ExprType } = {
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
	const variableType = scope.get(name);
	if (variableType !== undefined) return variableType;
	if (TYPE_NAMES.has(name)) return 'type';
	throw new CelTypeError(`undeclared reference to '${name}' (in container '')`, `Text needs quotes: \`"${name}"\`.`);
}

/** Returns the target of a call if it is a name and not a variable, such as `math` in `math.greatest(x)`. */
function qualifierOf(expr: CelSyntaxNode, scope: Scope): string | undefined {
	if (expr.exprKind.case !== 'identExpr') return undefined;
	return scope.has(expr.exprKind.value.name) ? undefined : expr.exprKind.value.name;
}

function elementTypeOf(type: ExprType): ExprType {
	return typeof type === 'object' ? type.element : 'dyn';
}

function commonType(types: readonly ExprType[]): ExprType {
	const [firstType] = types;
	return firstType !== undefined && types.every(type => isSameType(type, firstType)) ? firstType : 'dyn';
}

function isSameType(a: ExprType, b: ExprType): boolean {
	if (typeof a === 'string' || typeof b === 'string') return a === b;
	return a.kind === b.kind && isSameType(a.element, b.element);
}

function typeOfCall(
	name: string,
	targetType: ExprType | undefined,
	argumentTypes: readonly ExprType[],
	overloads: Iterable<CelFunc> | undefined,
): ExprType {
	const throwNoOverload = (): never => {
		const signature = `(${argumentTypes.map(exprTypeName).join(', ')})`;
		throw new CelTypeError(
			`found no matching overload for '${name}' applied to '${targetType === undefined ? signature : `${exprTypeName(targetType)}.${signature}`}'`,
		);
	};
	switch (name) {
		case '_&&_':
		case '_||_':
			return argumentTypes.every(type => isAssignable(type, 'bool')) ? 'bool' : throwNoOverload();
		case '@not_strictly_false':
			return 'bool';
		case '_?_:_':
			return isAssignable(argumentTypes[0]!, 'bool') ? commonType(argumentTypes.slice(1)) : throwNoOverload();
		case '_[_]':
			return isAssignable(argumentTypes[0]!, 'list') || isAssignable(argumentTypes[0]!, 'map')
				? elementTypeOf(argumentTypes[0]!)
				: throwNoOverload();
		case '_==_':
		case '_!=_':
			return areComparable(argumentTypes[0]!, argumentTypes[1]!) ? 'bool' : throwNoOverload();
		case '_+_':
			if (argumentTypes.every(type => exprTypeName(type) === 'list')) return commonType(argumentTypes);
	}
	if (!overloads) throw new CelTypeError(`undeclared reference to '${name}' (in container '')`);
	const resultTypes: ExprType[] = [];
	for (const func of overloads)
		if (acceptsArguments(func, targetType, argumentTypes)) resultTypes.push(fromLibraryType(func.result));
	return resultTypes.length === 0 ? throwNoOverload() : commonType(resultTypes);
}

function acceptsArguments(
	func: CelFunc,
	targetType: ExprType | undefined,
	argumentTypes: readonly ExprType[],
): boolean {
	if ((func.target === undefined) !== (targetType === undefined) || func.arguments.length !== argumentTypes.length)
		return false;
	if (func.target !== undefined && !isAssignable(targetType!, func.target.name)) return false;
	return func.arguments.every((type, index) => isAssignable(argumentTypes[index]!, type.name));
}

function isAssignable(type: ExprType, expectedName: string): boolean {
	return type === 'dyn' || expectedName === 'dyn' || exprTypeName(type) === expectedName;
}

function areComparable(a: ExprType, b: ExprType): boolean {
	if (a === 'dyn' || b === 'dyn' || a === 'null_type' || b === 'null_type') return true;
	if (NUMBER_TYPES.has(a) && NUMBER_TYPES.has(b)) return true;
	return exprTypeName(a) === exprTypeName(b);
}

function fromLibraryType(type: CelType): ExprType {
	if (type.kind === 'list') return { kind: 'list', element: fromLibraryType(type.element) };
	if (type.kind === 'map') return { kind: 'map', element: fromLibraryType(type.value) };
	return type.name;
}
