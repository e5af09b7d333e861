/**
 * The values of templates. Integers are bigints and floats are numbers, because the language distinguishes them; dictionaries
 * are Maps, so that no name in a template reaches a JavaScript prototype.
 */
import type { TemplateRun } from './run.ts';

/** A value. `null` stands for nil and for the value of a missing key. */
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

/** Key-value pairs, such as those made by `dict`. */
export type Dictionary = ReadonlyMap<string, Value>;

/** A function as a value, such as a method of an object. */
export class Callable {
	readonly name: string;
	readonly parameters: readonly string[];
	readonly call: (run: TemplateRun, args: readonly Value[]) => Value;

	constructor(name: string, parameters: readonly string[], call: (run: TemplateRun, args: readonly Value[]) => Value) {
		this.name = name;
		this.parameters = parameters;
		this.call = call;
	}
}

/** An object with its own fields and methods: only those returned by `member` are accessible. */
export interface TemplateObject {
	/** Name of its type in messages and for `typeOf`, such as `time.Time`. */
	readonly typeName: string;
	/** Returns a field, or a method as Callable; undefined for unknown names. */
	member(name: string): Value | undefined;
	/** Returns the string that is printed for the object. */
	text(): string;
	/** Returns the entries of an object that is also a dictionary. */
	entries?(): Dictionary;
	/** Returns the JSON fields of an object that is encoded neither as a dictionary nor as a string. */
	jsonFields?(): Dictionary;
	/** Reports whether templates treat the object as empty, as they do a zero time. */
	isEmpty?(): boolean;
}

export function isObject(value: Value): value is TemplateObject {
	return (
		typeof value === 'object' &&
		value !== null &&
		!Array.isArray(value) &&
		!(value instanceof Map) &&
		!(value instanceof Callable)
	);
}

export function isList(value: Value): value is readonly Value[] {
	return Array.isArray(value);
}

/** Returns a value as a dictionary; undefined if it is not one. */
export function asDictionary(value: Value): Dictionary | undefined {
	if (value instanceof Map) return value;
	return isObject(value) ? value.entries?.() : undefined;
}

/** Returns the name of a value's type in messages and for `typeOf`. */
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

/** Returns the kind of a value, such as `map`, for `kindOf`. */
export function kindName(value: Value): string {
	if (value === null) return 'invalid';
	if (isList(value)) return 'slice';
	if (asDictionary(value)) return 'map';
	if (isObject(value)) return 'struct';
	return typeName(value);
}

/** Reports whether `if` considers a value true: not false, 0, nil, or an empty string, list or dictionary. */
export function isTrue(value: Value): boolean {
	if (value === null || value === false || value === '') return false;
	if (typeof value === 'bigint') return value !== 0n;
	if (typeof value === 'number') return value !== 0;
	if (isList(value)) return value.length > 0;
	if (typeof value !== 'object') return true;
	const entries = asDictionary(value);
	return entries ? entries.size > 0 : true;
}

/** Returns the keys of a dictionary in the order of iteration and printing: by code point. */
export function sortedKeys(dictionary: Dictionary): string[] {
	return [...dictionary.keys()].sort(compareText);
}

/** Compares two strings by code points, which gives the order of their UTF-8 bytes. */
export function compareText(a: string, b: string): number {
	if (a === b) return 0;
	const length = Math.min(a.length, b.length);
	for (let i = 0; i < length; i++) {
		const leftUnit = a.charCodeAt(i);
		const rightUnit = b.charCodeAt(i);
		if (leftUnit === rightUnit) continue;
		// A surrogate is half of a code point above U+FFFF, which is greater than any code point of a single unit.
		const isLeftSurrogate = leftUnit >= 0xd800 && leftUnit <= 0xdfff;
		const isRightSurrogate = rightUnit >= 0xd800 && rightUnit <= 0xdfff;
		if (isLeftSurrogate !== isRightSurrogate) return isLeftSurrogate ? 1 : -1;
		return leftUnit - rightUnit;
	}
	return a.length - b.length;
}

/** Wraps an integer to 64 bits, like integer overflow in the language. */
export function wrapInt64(value: bigint): bigint {
	return BigInt.asIntN(64, value);
}
