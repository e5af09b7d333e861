/** sprig's functions for default values, conditional values and types. */
import { deepEqual } from '../compare.ts';
import { define, type FunctionList } from '../function.ts';
import { asDictionary, isObject, isTrue, kindName, typeName, type Value } from '../value.ts';

/** Reports whether a value is empty: nil, false, 0, an empty string, list or dictionary, or an object that counts as empty. */
export function isEmpty(value: Value): boolean {
	if (isObject(value) && !asDictionary(value)) return value.isEmpty?.() ?? false;
	return !isTrue(value);
}

/** sprig's functions from `default` to `deepEqual`. */
export const DEFAULT_FUNCTIONS: FunctionList = {
	default: define('any any...', (_, fallback: Value, given: Value[]) =>
		given.length === 0 || isEmpty(given[0]!) ? fallback : given[0]!,
	),
	empty: define('any', (_, value: Value) => isEmpty(value)),
	coalesce: define('any...', (_, values: Value[]) => values.find(value => !isEmpty(value)) ?? null),
	all: define('any...', (_, values: Value[]) => !values.some(isEmpty)),
	any: define('any...', (_, values: Value[]) => values.some(value => !isEmpty(value))),
	ternary: define('any any bool', (_, yes: Value, no: Value, test: boolean) => (test ? yes : no)),
	fail: define('string', (run, message: string) => run.fail(message)),
	typeOf: define('any', (_, value: Value) => typeName(value)),
	typeIs: define('string any', (_, name: string, value: Value) => typeName(value) === name),
	typeIsLike: define(
		'string any',
		(_, name: string, value: Value) => typeName(value) === name || typeName(value) === `*${name}`,
	),
	kindOf: define('any', (_, value: Value) => kindName(value)),
	kindIs: define('string any', (_, name: string, value: Value) => kindName(value) === name),
	deepEqual: define('any any', (run, a: Value, b: Value) => deepEqual(run, a, b)),
};
