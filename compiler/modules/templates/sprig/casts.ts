/** Loose conversions between types, as sprig's functions make them. */
import { parseNumber } from '../literals.ts';
import { int64, isList, type Value } from '../value.ts';

/** An integer of nearly anything: texts are parsed, floats truncated, what is no number is 0. */
export function toInteger(value: Value): bigint {
	switch (typeof value) {
		case 'bigint':
			return value;
		case 'number':
			return truncated(value);
		case 'boolean':
			return value ? 1n : 0n;
		case 'string': {
			const number = parseNumber(value.trim());
			if (number === undefined) return 0n;
			return typeof number === 'bigint' ? number : truncated(number);
		}
		default:
			return 0n;
	}
}

function truncated(value: number): bigint {
	return Number.isFinite(value) ? int64(BigInt(Math.trunc(value))) : 0n;
}

/** A float of nearly anything. */
export function toFloat(value: Value): number {
	if (typeof value === 'number') return value;
	if (typeof value !== 'string') return Number(toInteger(value));
	const text = value.trim();
	return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : 0;
}

/** A list of what is one, or of the value alone; nil gives none. */
export function toList(value: Value): readonly Value[] {
	if (value === null) return [];
	return isList(value) ? value : [value];
}

/** A count that fits: an integer between 0 and what the caller allows. */
export function toCount(value: bigint, most: number): number {
	if (value <= 0n) return 0;
	return value > BigInt(most) ? most + 1 : Number(value);
}
