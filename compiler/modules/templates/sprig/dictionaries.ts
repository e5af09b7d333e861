/** sprig's functions for dictionaries. */
import { valueToText } from '../format-value.ts';
import { defineFunction, type FunctionList, type TemplateFunction } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { asDictionary, type Dictionary, isList, sortedKeys, type Value } from '../value.ts';
import { isEmpty } from './defaults.ts';

type MutableDictionary = Map<string, Value>;

const deepCopy = defineFunction('any', (run, value: Value) => copyDeeply(run, value));
const defineMergeFunction = (overwrites: boolean): TemplateFunction =>
	defineFunction('dict dict...', (run, target: Dictionary, sources: Value[]) => {
		for (const source of sources)
			mergeInto(run, target as MutableDictionary, asDictionary(source) ?? new Map(), overwrites);
		return target;
	});

/** `set`, `unset` and `merge` modify the given dictionary, as in sprig. */
export const DICTIONARY_FUNCTIONS: FunctionList = {
	dict: defineFunction('any...', (run, values: Value[]) => {
		const dictionary: MutableDictionary = new Map();
		for (let i = 0; i < values.length; i += 2) dictionary.set(valueToText(run, values[i]!), values[i + 1] ?? '');
		return dictionary;
	}),
	get: defineFunction('dict string', (_, dictionary: Dictionary, key: string) => dictionary.get(key) ?? ''),
	set: defineFunction('dict string any', (run, dictionary: MutableDictionary, key: string, value: Value) => {
		run.budget.chargeEntries(dictionary.size + 1);
		return dictionary.set(key, value);
	}),
	unset: defineFunction('dict string', (_, dictionary: MutableDictionary, key: string) => {
		dictionary.delete(key);
		return dictionary;
	}),
	hasKey: defineFunction('dict string', (_, dictionary: Dictionary, key: string) => dictionary.has(key)),
	pluck: defineFunction('string dict...', (_, key: string, dictionaries: Value[]) =>
		dictionaries.flatMap(value => {
			const item = asDictionary(value)?.get(key);
			return item === undefined ? [] : [item];
		}),
	),
	keys: defineFunction('dict...', (_, dictionaries: Value[]) =>
		dictionaries.flatMap(value => sortedKeys(asDictionary(value) ?? new Map())),
	),
	values: defineFunction('dict', (_, dictionary: Dictionary) =>
		sortedKeys(dictionary).map(key => dictionary.get(key)!),
	),
	pick: defineFunction('dict string...', (_, dictionary: Dictionary, keys: string[]) => {
		const presentKeys = keys.filter(key => dictionary.has(key));
		return new Map(presentKeys.map(key => [key, dictionary.get(key)!]));
	}),
	omit: defineFunction('dict string...', (_, dictionary: Dictionary, keys: string[]) => {
		const remainingEntries: MutableDictionary = new Map(dictionary);
		for (const key of keys) remainingEntries.delete(key);
		return remainingEntries;
	}),
	merge: defineMergeFunction(false),
	mustMerge: defineMergeFunction(false),
	mergeOverwrite: defineMergeFunction(true),
	mustMergeOverwrite: defineMergeFunction(true),
	dig: defineFunction('any...', (run, args: Value[]) => {
		if (args.length < 3) return run.fail('dig needs at least three arguments');
		const [fallback, dictionary] = args.slice(-2) as [Value, Value];
		let value: Value = dictionary;
		for (const key of args.slice(0, -2)) {
			const innerValue = asDictionary(value)?.get(valueToText(run, key));
			if (innerValue === undefined) return fallback;
			value = innerValue;
		}
		return value;
	}),
	deepCopy,
	mustDeepCopy: deepCopy,
};

function copyDeeply(run: TemplateRun, value: Value): Value {
	run.budget.spendSteps(1);
	if (value === null || typeof value !== 'object') return value;
	run.budget.enterLevel();
	try {
		if (isList(value)) return value.map(item => copyDeeply(run, item));
		if (!(value instanceof Map)) return value;
		return new Map([...value].map(([key, item]) => [key, copyDeeply(run, item)]));
	} finally {
		run.budget.leaveLevel();
	}
}

/**
 * Merges `source` into `target`, recursively. A value is copied if the target does not have its key or has an empty value for it.
 * If `overwrites`, all values that are not empty are copied.
 */
function mergeInto(run: TemplateRun, target: MutableDictionary, source: Dictionary, overwrites: boolean): void {
	run.budget.enterLevel();
	for (const [key, value] of source) {
		run.budget.chargeEntries(target.size + 1);
		const targetValue = target.get(key);
		if (targetValue instanceof Map && value instanceof Map)
			mergeInto(run, targetValue as MutableDictionary, value, overwrites);
		else if (targetValue === undefined || (overwrites ? !isEmpty(value) : isEmpty(targetValue))) target.set(key, value);
	}
	run.budget.leaveLevel();
}
