/** sprig's functions for lists. */
import { deepEqual } from '../compare.ts';
import { defineFunction, type FunctionList, type TemplateFunction } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { isList, typeName, type Value } from '../value.ts';
import { isEmpty } from './defaults.ts';

type List = readonly Value[];

/**
 * Returns a function under its two names. In sprig, the `must` form of a function returns an error where the other form panics.
 * Here, both forms fail.
 */
function withMustForm(name: string, fn: TemplateFunction): FunctionList {
	return { [name]: fn, [`must${name[0]!.toUpperCase()}${name.slice(1)}`]: fn };
}

const appendFunction = defineFunction('any any', (run, value: Value, item: Value) => [
	...requireList(run, 'push', value),
	item,
]);

export const LIST_FUNCTIONS: FunctionList = {
	list: defineFunction('any...', (_, values: Value[]) => values),
	tuple: defineFunction('any...', (_, values: Value[]) => values),
	...withMustForm('append', appendFunction),
	...withMustForm('push', appendFunction),
	...withMustForm(
		'prepend',
		defineFunction('any any', (run, value: Value, item: Value) => [item, ...requireList(run, 'prepend', value)]),
	),
	...withMustForm(
		'first',
		defineFunction('any', (run, value: Value) => requireList(run, 'first', value)[0] ?? null),
	),
	...withMustForm(
		'last',
		defineFunction('any', (run, value: Value) => requireList(run, 'last', value).at(-1) ?? null),
	),
	...withMustForm(
		'rest',
		defineFunction('any', (run, value: Value) => requireList(run, 'rest', value).slice(1)),
	),
	...withMustForm(
		'initial',
		defineFunction('any', (run, value: Value) => requireList(run, 'initial', value).slice(0, -1)),
	),
	...withMustForm(
		'reverse',
		defineFunction('any', (run, value: Value) => [...requireList(run, 'reverse', value)].reverse()),
	),
	...withMustForm(
		'uniq',
		defineFunction('any', (run, value: Value) => {
			const distinctItems: Value[] = [];
			for (const item of requireList(run, 'uniq', value))
				if (!includesEqual(run, distinctItems, item)) distinctItems.push(item);
			return distinctItems;
		}),
	),
	...withMustForm(
		'without',
		defineFunction('any any...', (run, value: Value, removedItems: Value[]) =>
			requireList(run, 'without', value).filter(item => !includesEqual(run, removedItems, item)),
		),
	),
	...withMustForm(
		'has',
		defineFunction('any any', (run, item: Value, value: Value) =>
			value === null ? false : includesEqual(run, requireList(run, 'has', value), item),
		),
	),
	...withMustForm(
		'compact',
		defineFunction('any', (run, value: Value) => requireList(run, 'compact', value).filter(item => !isEmpty(item))),
	),
	...withMustForm(
		'chunk',
		defineFunction('int any', (run, chunkSize: bigint, value: Value) => {
			const list = requireList(run, 'chunk', value);
			if (chunkSize <= 0n) return run.fail('the size of a chunk must be positive');
			const clampedSize = chunkSize > BigInt(list.length) ? Math.max(list.length, 1) : Number(chunkSize);
			const chunks: Value[] = [];
			for (let i = 0; i < list.length; i += clampedSize) chunks.push(list.slice(i, i + clampedSize));
			return chunks;
		}),
	),
	concat: defineFunction('any...', (run, lists: Value[]) => {
		let itemCount = 0;
		for (const value of lists) {
			itemCount += requireList(run, 'concat', value).length;
			run.budget.chargeEntries(itemCount);
		}
		return lists.flatMap(value => [...(value as List)]);
	}),
	shuffle: defineFunction('string', (run, text: string) => run.once(() => shuffleCharacters(text))),
};

function shuffleCharacters(text: string): string {
	const characters = [...text];
	for (let i = characters.length - 1; i > 0; i--) {
		const j = Math.floor(Math.random() * (i + 1));
		[characters[i], characters[j]] = [characters[j]!, characters[i]!];
	}
	return characters.join('');
}

/** Returns the value if it is a list. Otherwise fails with a message that contains `name`, the name of the function. */
function requireList(run: TemplateRun, name: string, value: Value): List {
	if (!isList(value)) return run.fail(`Cannot ${name} on type ${typeName(value)}`);
	run.budget.chargeEntries(value.length);
	return value;
}

function includesEqual(run: TemplateRun, list: List, item: Value): boolean {
	return list.some(other => deepEqual(run, other, item));
}
