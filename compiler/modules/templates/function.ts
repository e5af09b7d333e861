/**
 * Defines the functions that templates call: the types of their parameters, which are checked before a call, and their
 * implementation.
 */
import type { TemplateRun } from './run.ts';
import { asDictionary, isList, typeName, type Value } from './value.ts';

/** The type of a parameter. `int` also accepts floats without a fraction, `float` accepts integers. */
export type ParameterKind = 'any' | 'string' | 'int' | 'float' | 'bool' | 'list' | 'dict';

export interface TemplateFunction {
	readonly parameters: readonly ParameterKind[];
	/** True if the last parameter takes any number of arguments, including none. */
	readonly isVariadic: boolean;
	/** Runs the function with arguments that have been checked. Throws FunctionError. */
	readonly call: (run: TemplateRun, args: readonly Value[]) => Value;
}

export type FunctionTable = ReadonlyMap<string, TemplateFunction>;

/** The definitions of functions, by name. */
export type FunctionList = { readonly [name: string]: TemplateFunction };

/**
 * Defines a function. The signature lists the types of its parameters, such as `string int any...`. The body is called with the
 * run and one argument per parameter; for `...`, the argument is a list.
 */
export function defineFunction(
	signature: string,
	body: (run: TemplateRun, ...args: never[]) => Value,
): TemplateFunction {
	const typeWords = signature === '' ? [] : signature.split(' ');
	const isVariadic = typeWords.at(-1)?.endsWith('...') ?? false;
	const parameters = typeWords.map(word => word.replace('...', '') as ParameterKind);
	const fixedCount = isVariadic ? parameters.length - 1 : parameters.length;
	const callBody = body as (run: TemplateRun, ...args: unknown[]) => Value;
	return {
		parameters,
		isVariadic,
		call: isVariadic
			? (run, args) => callBody(run, ...args.slice(0, fixedCount), args.slice(fixedCount))
			: (run, args) => callBody(run, ...args),
	};
}

/** Returns a message if the number of arguments is wrong, otherwise undefined. */
export function argumentCountMistake(name: string, fn: TemplateFunction, count: number): string | undefined {
	const { length } = fn.parameters;
	if (fn.isVariadic) {
		if (count >= length - 1) return undefined;
		return `wrong number of args for ${name}: want at least ${length - 1} got ${count}`;
	}
	return count === length ? undefined : `wrong number of args for ${name}: want ${length} got ${count}`;
}

/** Returns the type of the parameter for the argument at an index. */
export function parameterKind(fn: TemplateFunction, index: number): ParameterKind {
	return fn.parameters[Math.min(index, fn.parameters.length - 1)]!;
}

/** Converts an argument to the type of its parameter; undefined if that is impossible. */
export function convertArgument(value: Value, kind: ParameterKind): Value | undefined {
	switch (kind) {
		case 'any':
			return value;
		case 'string':
			return typeof value === 'string' ? value : undefined;
		case 'bool':
			return typeof value === 'boolean' ? value : undefined;
		case 'int':
			if (typeof value === 'bigint') return value;
			return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined;
		case 'float':
			if (typeof value === 'number') return value;
			return typeof value === 'bigint' ? Number(value) : undefined;
		case 'list':
			return isList(value) ? value : undefined;
		case 'dict':
			return asDictionary(value);
	}
}

const TYPE_NAMES: { readonly [kind in ParameterKind]: string } = {
	any: 'interface {}',
	string: 'string',
	int: 'int',
	float: 'float64',
	bool: 'bool',
	list: '[]interface {}',
	dict: 'map[string]interface {}',
};

/** Returns the message for an argument whose type is wrong for the parameter. */
export function argumentTypeMistake(value: Value, kind: ParameterKind): string {
	const expectedType = TYPE_NAMES[kind];
	return value === null
		? `invalid value; expected ${expectedType}`
		: `wrong type for value; expected ${expectedType}; got ${typeName(value)}`;
}

/** Checks the arguments and calls the function. Throws FunctionError if the arguments are invalid or the function fails. */
export function callChecked(run: TemplateRun, name: string, fn: TemplateFunction, args: readonly Value[]): Value {
	const countMistake = argumentCountMistake(name, fn, args.length);
	if (countMistake) run.fail(countMistake);
	const convertedArgs = args.map((value, i) => {
		const kind = parameterKind(fn, i);
		const argument = convertArgument(value, kind);
		return argument === undefined ? run.fail(argumentTypeMistake(value, kind)) : argument;
	});
	return chargeResult(run, fn.call(run, convertedArgs));
}

/** Charges the result of a call to the budget, and returns it. */
export function chargeResult(run: TemplateRun, value: Value): Value {
	if (typeof value === 'string') run.budget.chargeText(value.length);
	else if (typeof value === 'object' && value !== null) {
		if (isList(value)) run.budget.chargeEntries(value.length);
		else if (value instanceof Map) run.budget.chargeEntries(value.size);
	}
	return value;
}
