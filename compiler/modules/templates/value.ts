/**
 * What a template computes with. Integers are bigints and floats numbers, because the language tells them apart;
 * dictionaries are Maps, so that no name a template writes ever reaches a JavaScript prototype.
 */
import type { Run } from './run.ts';

/** A value. `null` is nil and what a missing key gives. */
export type Value =
	| null
	| boolean
	| bigint
	| number
	| string
	| readonly Value[]
	| ReadonlyMap<string, Value>
	| TemplateObject
	| Callable;

/** Key-value pairs, such as those that `dict` makes. */
export type Dictionary = ReadonlyMap<string, Value>;

/** A function as a value: a method of an object. */
export class Callable {
	readonly name: string;
	readonly parameters: readonly string[];
	readonly call: (run: Run, args: readonly Value[]) => Value;

	constructor(name: string, parameters: readonly string[], call: (run: Run, args: readonly Value[]) => Value) {
		this.name = name;
		this.parameters = parameters;
		this.call = call;
	}
}

/** A thing with fields and methods of its own: only what `member` names can be reached. */
export interface TemplateObject {
	/** Name of its type in messages and for `typeOf`: `time.Time`. */
	readonly typeName: string;
	/** A field, or a method as Callable; undefined when there is none of that name. */
	member(name: string): Value | undefined;
	/** What printing it gives. */
	text(): string;
	/** Entries, for objects that are dictionaries too. */
	entries?(): Dictionary;
	/** What JSON of it holds, for objects that are no dictionaries and no texts. */
	jsonFields?(): Dictionary;
	/** True for an object that counts as empty (a zero time). */
	isEmpty?(): boolean;
}

/** True for an object with members. */
export function isObject(value: Value): value is TemplateObject {
	return (
		typeof value === 'object' &&
		value !== null &&
		!Array.isArray(value) &&
		!(value instanceof Map) &&
		!(value instanceof Callable)
	);
}

/** True for a list. */
export function isList(value: Value): value is readonly Value[] {
	return Array.isArray(value);
}

/** The dictionary that a value is, or undefined. */
export function asDictionary(value: Value): Dictionary | undefined {
	if (value instanceof Map) return value;
	return isObject(value) ? value.entries?.() : undefined;
}

/** Name of a value's type as messages and `typeOf` give it. */
export function typeName(value: Value): string {
	switch (typeof value) {
		case 'string':
			return 'string';
		case 'boolean':
			return 'bool';
		case 'bigint':
			return 'int';
		case 'number':
			return 'float64';
	}
	if (value === null) return '<nil>';
	if (isList(value)) return '[]interface {}';
	if (value instanceof Callable) return 'func';
	return isObject(value) ? value.typeName : 'map[string]interface {}';
}

/** Kind of a value, as `kindOf` gives it. */
export function kindName(value: Value): string {
	if (value === null) return 'invalid';
	if (isList(value)) return 'slice';
	if (asDictionary(value)) return 'map';
	if (isObject(value)) return 'struct';
	return typeName(value);
}

/** True for what `if` takes: not false, 0, nil, nor an empty text, list or dictionary. */
export function isTrue(value: Value): boolean {
	if (value === null || value === false || value === '') return false;
	if (typeof value === 'bigint') return value !== 0n;
	if (typeof value === 'number') return value !== 0;
	if (isList(value)) return value.length > 0;
	if (typeof value !== 'object') return true;
	const entries = asDictionary(value);
	return entries ? entries.size > 0 : true;
}

/** Keys of a dictionary in the order in which they are ranged over and printed: that of their code points. */
export function sortedKeys(dictionary: Dictionary): string[] {
	return [...dictionary.keys()].sort(compareText);
}

/** Order of two texts by code point, which is that of their UTF-8 bytes. */
export function compareText(a: string, b: string): number {
	if (a === b) return 0;
	const length = Math.min(a.length, b.length);
	for (let i = 0; i < length; i++) {
		const left = a.charCodeAt(i);
		const right = b.charCodeAt(i);
		if (left === right) continue;
		// A surrogate stands for a code point above every other unit.
		const leftHigh = left >= 0xd800 && left <= 0xdfff;
		const rightHigh = right >= 0xd800 && right <= 0xdfff;
		if (leftHigh !== rightHigh) return leftHigh ? 1 : -1;
		return left - right;
	}
	return a.length - b.length;
}

/** Keeps an integer in 64 bits, as the language's integers overflow. */
export function int64(value: bigint): bigint {
	return BigInt.asIntN(64, value);
}
