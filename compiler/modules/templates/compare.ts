/** Equality and order of values. */
import type { TemplateRun } from './run.ts';
import { asDictionary, compareText, isList, isObject, typeName, type Value } from './value.ts';

/** Implements `eq` for two values of the same basic type. Fails for values that cannot be compared; nil is equal only to nil. */
export function basicEqual(run: TemplateRun, a: Value, b: Value): boolean {
	if (a === null || b === null) return a === b;
	if (typeof a === 'object' || typeof b === 'object') {
		if (typeof a === typeof b && isObject(a) && isObject(b) && a.typeName === b.typeName) return a.text() === b.text();
		if (isList(a) || isList(b) || asDictionary(a) || asDictionary(b)) {
			return run.fail(`non-comparable type ${typeName(isObject(a) || typeof a !== 'object' ? b : a)}`);
		}
	}
	if (typeof a !== typeof b) return run.fail('incompatible types for comparison');
	return a === b;
}

/** Implements `lt` for two numbers of the same kind or two strings. Fails for all other values. */
export function basicLess(run: TemplateRun, a: Value, b: Value): boolean {
	if (typeof a !== typeof b) return run.fail('incompatible types for comparison');
	if (typeof a === 'string') return compareText(a, b as string) < 0;
	if (typeof a === 'bigint' || typeof a === 'number') return a < (b as typeof a);
	return run.fail('invalid type for comparison');
}

/** Implements deep equality, which is defined for all values. */
export function deepEqual(run: TemplateRun, a: Value, b: Value): boolean {
	run.budget.spendSteps(1);
	if (a === b) return true;
	if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object')
		return Number.isNaN(a) && Number.isNaN(b);
	run.budget.enterLevel();
	try {
		if (isList(a)) {
			return isList(b) && a.length === b.length && a.every((item, i) => deepEqual(run, item, b[i]!));
		}
		const [leftEntries, rightEntries] = [asDictionary(a), asDictionary(b)];
		if (leftEntries && rightEntries) {
			if (leftEntries.size !== rightEntries.size) return false;
			for (const [key, value] of leftEntries)
				if (!rightEntries.has(key) || !deepEqual(run, value, rightEntries.get(key)!)) return false;
			return true;
		}
		return isObject(a) && isObject(b) && a.typeName === b.typeName && a.text() === b.text();
	} finally {
		run.budget.leaveLevel();
	}
}
