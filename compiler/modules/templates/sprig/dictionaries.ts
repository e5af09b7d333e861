/** sprig's functions for dictionaries. */
import { valueToText } from '../format-value.ts';
import { defineFunction, type FunctionList, type TemplateFunction } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { asDictionary, type Dictionary, isList, sortedKeys, type Value } from '../value.ts';
import { isEmpty } from './defaults.ts';

type Mutable = Map<string, Value>;

const deepCopy = defineFunction('any', (run, value: Value) => copied(run, value));
const merge = (overwrite: boolean): TemplateFunction =>
	defineFunction('dict dict...', (run, target: Dictionary, sources: Value[]) => {
		for (const source of sources) mergeInto(run, target as Mutable, asDictionary(source) ?? new Map(), overwrite);
		return target;
	});

/** sprig's functions from `dict` to `deepCopy`. `set`, `unset` and `merge` modify the given dictionary, as in sprig. */
export const DICTIONARY_FUNCTIONS: FunctionList = {
	dict: defineFunction('any...', (run, values: Value[]) => {
		const made: Mutable = new Map();
		for (let i = 0; i < values.length; i += 2) made.set(valueToText(run, values[i]!), values[i + 1] ?? '');
		return made;
	}),
	get: defineFunction('dict string', (_, dictionary: Dictionary, key: string) => dictionary.get(key) ?? ''),
	set: defineFunction('dict string any', (run, dictionary: Mutable, key: string, value: Value) => {
		run.budget.entries(dictionary.size + 1);
		return dictionary.set(key, value);
	}),
	unset: defineFunction('dict string', (_, dictionary: Mutable, key: string) => {
		dictionary.delete(key);
		return dictionary;
	}),
	hasKey: defineFunction('dict string', (_, dictionary: Dictionary, key: string) => dictionary.has(key)),
	pluck: defineFunction('string dict...', (_, key: string, dictionaries: Value[]) =>
		dictionaries.flatMap(value => {
			const found = asDictionary(value)?.get(key);
			return found === undefined ? [] : [found];
		}),
	),
	keys: defineFunction('dict...', (_, dictionaries: Value[]) =>
		dictionaries.flatMap(value => sortedKeys(asDictionary(value) ?? new Map())),
	),
	values: defineFunction('dict', (_, dictionary: Dictionary) =>
		sortedKeys(dictionary).map(key => dictionary.get(key)!),
	),
	pick: defineFunction('dict string...', (_, dictionary: Dictionary, keys: string[]) => {
		const kept = keys.filter(key => dictionary.has(key));
		return new Map(kept.map(key => [key, dictionary.get(key)!]));
	}),
	omit: defineFunction('dict string...', (_, dictionary: Dictionary, keys: string[]) => {
		const left: Mutable = new Map(dictionary);
		for (const key of keys) left.delete(key);
		return left;
	}),
	merge: merge(false),
	mustMerge: merge(false),
	mergeOverwrite: merge(true),
	mustMergeOverwrite: merge(true),
	dig: defineFunction('any...', (run, args: Value[]) => {
		if (args.length < 3) return run.fail('dig needs at least three arguments');
		const [fallback, dictionary] = args.slice(-2) as [Value, Value];
		let found: Value = dictionary;
		for (const key of args.slice(0, -2)) {
			const next = asDictionary(found)?.get(valueToText(run, key));
			if (next === undefined) return fallback;
			found = next;
		}
		return found;
	}),
	deepCopy,
	mustDeepCopy: deepCopy,
};

function copied(run: TemplateRun, value: Value): Value {
	run.budget.spend(1);
	if (value === null || typeof value !== 'object') return value;
	run.budget.enter();
	try {
		if (isList(value)) return value.map(item => copied(run, item));
		if (!(value instanceof Map)) return value;
		return new Map([...value].map(([key, item]) => [key, copied(run, item)]));
	} finally {
		run.budget.leave();
	}
}

/**
 * Merges dictionaries: copies values whose key the target lacks, or for which the target's value is empty. With `overwrite`,
 * copies all values that are not empty.
 */
function mergeInto(run: TemplateRun, target: Mutable, source: Dictionary, overwrite: boolean): void {
	run.budget.enter();
	for (const [key, value] of source) {
		run.budget.entries(target.size + 1);
		const mine = target.get(key);
		if (mine instanceof Map && value instanceof Map) mergeInto(run, mine as Mutable, value, overwrite);
		else if (mine === undefined || (overwrite ? !isEmpty(value) : isEmpty(mine))) target.set(key, value);
	}
	run.budget.leave();
}
