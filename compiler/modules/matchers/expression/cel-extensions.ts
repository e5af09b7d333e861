/** The functions of CEL's list, math and string extensions that the CEL library lacks. */
import type { CelFunc, CelList, CelValue } from '@bufbuild/cel';
import type { CelLibrary } from './cel-library.ts';

/** The function to which `list.sortBy(name, key)` expands. Its arguments are the list and a list with the key of each element. */
export const SORT_BY_FUNCTION = 'svc.sortBy';

/** Maximum number of elements of `lists.range`, so that an expression cannot exhaust memory. */
const MAX_RANGE_ELEMENTS = 10_000;

/** Returns the extension functions in the form that the CEL library needs. */
export function extensionFunctions(library: CelLibrary): CelFunc[] {
	const { celFunc, celMethod, celList, CelScalar, listType } = library;
	const { BOOL, DOUBLE, DYN, INT, STRING } = CelScalar;
	const LIST = listType(DYN);
	const numberTypes = [INT, DOUBLE] as const;
	const functions: CelFunc[] = [
		...textConversions(library),
		celMethod('slice', LIST, [INT, INT], LIST, function (this: CelList, start, end) {
			if (start < 0n || end < start || end > BigInt(this.size))
				throw new Error(`cannot slice(${start}, ${end}) a list of ${this.size}`);
			return celList([...this].slice(Number(start), Number(end)));
		}),
		celMethod('flatten', LIST, [], LIST, function (this: CelList) {
			return celList(flatten([...this], 1, library));
		}),
		celMethod('flatten', LIST, [INT], LIST, function (this: CelList, depth) {
			if (depth < 0n) throw new Error('level must be non-negative');
			return celList(flatten([...this], Math.min(Number(depth), 100), library));
		}),
		celMethod('reverse', LIST, [], LIST, function (this: CelList) {
			return celList([...this].reverse());
		}),
		celMethod('distinct', LIST, [], LIST, function (this: CelList) {
			const itemsByKey = new Map<string, CelValue>();
			for (const item of this) if (!itemsByKey.has(distinctKeyOf(item))) itemsByKey.set(distinctKeyOf(item), item);
			return celList([...itemsByKey.values()]);
		}),
		celMethod('sort', LIST, [], LIST, function (this: CelList) {
			return celList([...this].sort(compareValues));
		}),
		celFunc(SORT_BY_FUNCTION, [LIST, LIST], LIST, (list, keys) => {
			const keyedIndexes = [...keys].map((key, index) => ({ key, at: index }));
			const items = [...list];
			return celList(keyedIndexes.sort((a, b) => compareValues(a.key, b.key)).map(({ at: index }) => items[index]!));
		}),
		celMethod('reverse', STRING, [], STRING, function (this: string) {
			return [...this].reverse().join('');
		}),
		celFunc('lists.range', [INT], LIST, count => {
			if (count > BigInt(MAX_RANGE_ELEMENTS)) throw new Error(`range is limited to ${MAX_RANGE_ELEMENTS} elements`);
			return celList(Array.from({ length: Math.max(0, Number(count)) }, (_, index) => BigInt(index)));
		}),
		celFunc('math.isNaN', [DOUBLE], BOOL, Number.isNaN),
		celFunc('math.isInf', [DOUBLE], BOOL, x => Math.abs(x) === Number.POSITIVE_INFINITY),
		celFunc('math.isFinite', [DOUBLE], BOOL, Number.isFinite),
		celFunc('math.ceil', [DOUBLE], DOUBLE, Math.ceil),
		celFunc('math.floor', [DOUBLE], DOUBLE, Math.floor),
		celFunc('math.trunc', [DOUBLE], DOUBLE, Math.trunc),
		celFunc('math.round', [DOUBLE], DOUBLE, x => (x < 0 ? -Math.round(-x) : Math.round(x))),
		celFunc('math.sqrt', [DOUBLE], DOUBLE, Math.sqrt),
		celFunc('math.sqrt', [INT], DOUBLE, x => Math.sqrt(Number(x))),
		celFunc('math.abs', [INT], INT, x => (x < 0n ? -x : x)),
		celFunc('math.abs', [DOUBLE], DOUBLE, Math.abs),
		celFunc('math.sign', [INT], INT, x => (x > 0n ? 1n : x < 0n ? -1n : 0n)),
		celFunc('math.sign', [DOUBLE], DOUBLE, Math.sign),
		celFunc('math.bitAnd', [INT, INT], INT, (a, b) => a & b),
		celFunc('math.bitOr', [INT, INT], INT, (a, b) => a | b),
		celFunc('math.bitXor', [INT, INT], INT, (a, b) => a ^ b),
		celFunc('math.bitNot', [INT], INT, x => ~x),
		celFunc('math.bitShiftLeft', [INT, INT], INT, (x, shiftCount) => BigInt.asIntN(64, x << limitShift(shiftCount))),
		// A logical shift: zeros are shifted in, even for negative numbers.
		celFunc('math.bitShiftRight', [INT, INT], INT, (x, shiftCount) =>
			BigInt.asIntN(64, BigInt.asUintN(64, x) >> limitShift(shiftCount)),
		),
	];
	for (const [name, winningSign] of [
		['math.greatest', 1],
		['math.least', -1],
	] as const) {
		const bestOf = (values: readonly CelValue[]): CelValue => {
			if (values.length === 0) throw new Error(`${name}() needs a value`);
			return values.reduce((a, b) => (Math.sign(compareValues(b, a)) === winningSign ? b : a));
		};
		functions.push(celFunc(name, [LIST], DYN, list => bestOf([...list])));
		for (const type of numberTypes) {
			functions.push(celFunc(name, [type], type, value => value as never));
			functions.push(
				celFunc(name, [type, type], type, (...values: unknown[]) => bestOf(values as CelValue[]) as never),
			);
			functions.push(
				celFunc(name, [type, type, type], type, (...values: unknown[]) => bestOf(values as CelValue[]) as never),
			);
		}
		functions.push(celFunc(name, [INT, DOUBLE], DYN, (a, b) => bestOf([a, b])));
		functions.push(celFunc(name, [DOUBLE, INT], DYN, (a, b) => bestOf([a, b])));
	}
	return functions;
}

/**
 * Returns conversions from strings to numbers. They replace the library's conversions, which accept whatever JavaScript does: '' as
 * 0, surrounding spaces, other bases.
 */
function textConversions({ celFunc, CelScalar, celUint }: CelLibrary): CelFunc[] {
	const { DOUBLE, INT, STRING, UINT } = CelScalar;
	const parseInteger = (text: string, pattern: RegExp, typeName: string): bigint => {
		if (!pattern.test(text)) throw new Error(`type conversion error from '${text}' to ${typeName}`);
		return BigInt(text.replace('+', ''));
	};
	return [
		celFunc('int', [STRING], INT, text => {
			const value = parseInteger(text, /^[+-]?\d{1,40}$/, 'int');
			if (BigInt.asIntN(64, value) !== value) throw new Error('integer overflow');
			return value;
		}),
		celFunc('uint', [STRING], UINT, text => {
			const value = parseInteger(text, /^\d{1,40}$/, 'uint');
			if (BigInt.asUintN(64, value) !== value) throw new Error('unsigned integer overflow');
			return celUint(value);
		}),
		celFunc('double', [STRING], DOUBLE, text => {
			if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text);
			const specialMatch = /^([+-]?)(?:inf(?:inity)?|(nan))$/i.exec(text);
			if (!specialMatch) throw new Error(`type conversion error from '${text}' to double`);
			return specialMatch[2]
				? Number.NaN
				: specialMatch[1] === '-'
					? Number.NEGATIVE_INFINITY
					: Number.POSITIVE_INFINITY;
		}),
	];
}

/** Reduces a shift count to at most 64. Larger counts give the same result. Throws for a negative count. */
function limitShift(shiftCount: bigint): bigint {
	if (shiftCount < 0n) throw new Error(`math.bitShift() negative offset: ${shiftCount}`);
	return shiftCount > 64n ? 64n : shiftCount;
}

function flatten(items: readonly CelValue[], depth: number, library: CelLibrary): CelValue[] {
	return items.flatMap(item =>
		depth > 0 && library.isCelList(item) ? flatten([...item], depth - 1, library) : [item],
	);
}

function distinctKeyOf(value: CelValue): string {
	return typeof value === 'object'
		? `object ${JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}` : part))}`
		: `${typeof value} ${value}`;
}

function compareValues(a: CelValue, b: CelValue): number {
	const orderedTypes = ['string', 'number', 'bigint', 'boolean'];
	const areBothNumeric = typeof a !== 'string' && typeof b !== 'string';
	if (
		!orderedTypes.includes(typeof a) ||
		!orderedTypes.includes(typeof b) ||
		(typeof a !== typeof b && !areBothNumeric)
	) {
		throw new Error('values of these types have no order');
	}
	return a! < b! ? -1 : a! > b! ? 1 : 0;
}
