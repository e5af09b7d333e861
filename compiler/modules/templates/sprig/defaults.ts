/** sprig's functions that choose between values, and that inspect or compare them. */
import { deepEqual } from '../compare.ts';
import { defineFunction, type FunctionList } from '../function.ts';
import { asDictionary, isObject, isTrue, kindName, typeName, type Value } from '../value.ts';

/** Reports whether a value is nil, false, 0, an empty string, list or dictionary, or an object whose `isEmpty` returns true. */
export function isEmpty(value: Value): boolean {
	if (isObject(value) && !asDictionary(value)) return value.isEmpty?.() ?? false;
	return !isTrue(value);
}

export const DEFAULT_FUNCTIONS: FunctionList = {
	default: defineFunction('any any...', (_, fallback: Value, values: Value[]) =>
		values.length === 0 || isEmpty(values[0]!) ? fallback : values[0]!,
	),
	empty: defineFunction('any', (_, value: Value) => isEmpty(value)),
	coalesce: defineFunction('any...', (_, values: Value[]) => values.find(value => !isEmpty(value)) ?? null),
	all: defineFunction('any...', (_, values: Value[]) => !values.some(isEmpty)),
	any: defineFunction('any...', (_, values: Value[]) => values.some(value => !isEmpty(value))),
	ternary: defineFunction('any any bool', (_, yes: Value, no: Value, test: boolean) => (test ? yes : no)),
	fail: defineFunction('string', (run, message: string) => run.fail(message)),
	typeOf: defineFunction('any', (_, value: Value) => typeName(value)),
	typeIs: defineFunction('string any', (_, name: string, value: Value) => typeName(value) === name),
	typeIsLike: defineFunction(
		'string any',
		(_, name: string, value: Value) => typeName(value) === name || typeName(value) === `*${name}`,
	),
	kindOf: defineFunction('any', (_, value: Value) => kindName(value)),
	kindIs: defineFunction('string any', (_, name: string, value: Value) => kindName(value) === name),
	deepEqual: defineFunction('any any', (run, a: Value, b: Value) => deepEqual(run, a, b)),
};
