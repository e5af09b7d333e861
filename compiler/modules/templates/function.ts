/** The functions that templates call: their parameters, checked before a call, and their implementation. */
import type { TemplateRun } from './run.ts';
import { asDictionary, isList, typeName, type Value } from './value.ts';

/** The type of a parameter. `int` also accepts floats without a fraction, `float` accepts integers. */
export type ParameterKind = 'any' | 'string' | 'int' | 'float' | 'bool' | 'list' | 'dict';

export interface TemplateFunction {
	readonly parameters: readonly ParameterKind[];
	/** True if the last parameter takes any number of arguments, including none. */
	readonly isVariadic: boolean;
	/** Implements the function for checked arguments. Throws FunctionError through `run.fail`. */
	readonly call: (callBody: TemplateRun, args: readonly Value[]) => Value;
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
	body: (callBody: TemplateRun, ...args: never[]) => Value,
): TemplateFunction {
	const words = signature === '' ? [] : signature.split(' ');
	const isVariadic = words.at(-1)?.endsWith('...') ?? false;
	const parameters = words.map(word => word.replace('...', '') as ParameterKind);
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

/** Returns the message for an argument of the wrong type. */
export function argumentTypeMistake(value: Value, kind: ParameterKind): string {
	const expected = TYPE_NAMES[kind];
	return value === null
		? `invalid value; expected ${expected}`
		: `wrong type for value; expected ${expected}; got ${typeName(value)}`;
}

/** Checks the arguments and calls the function. Throws FunctionError. */
export function callChecked(callBody: TemplateRun, name: string, fn: TemplateFunction, args: readonly Value[]): Value {
	const mistake = argumentCountMistake(name, fn, args.length);
	if (mistake) callBody.fail(mistake);
	const converted = args.map((value, i) => {
		const kind = parameterKind(fn, i);
		const argument = convertArgument(value, kind);
		return argument === undefined ? callBody.fail(argumentTypeMistake(value, kind)) : argument;
	});
	return chargeResult(callBody, fn.call(callBody, converted));
}

/** Charges the result of a call to the budget, and returns it. */
export function chargeResult(callBody: TemplateRun, value: Value): Value {
	if (typeof value === 'string') callBody.budget.chargeText(value.length);
	else if (typeof value === 'object' && value !== null) {
		if (isList(value)) callBody.budget.chargeEntries(value.length);
		else if (value instanceof Map) callBody.budget.chargeEntries(value.size);
	}
	return value;
}
