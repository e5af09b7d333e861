/** Lenient conversions between types, as in sprig. */
import { parseNumber } from '../literals.ts';
import { isList, type Value, wrapInt64 } from '../value.ts';

/** Converts any value to an integer: strings are parsed, floats are truncated, and inconvertible values become 0. */
export function toInteger(value: Value): bigint {
	switch (typeof value) {
		case 'bigint':
			return value;
		case 'number':
			return truncateToInteger(value);
		case 'boolean':
			return value ? 1n : 0n;
		case 'string': {
			const number = parseNumber(value.trim());
			if (number === undefined) return 0n;
			return typeof number === 'bigint' ? number : truncateToInteger(number);
		}
		default:
			return 0n;
	}
}

function truncateToInteger(value: number): bigint {
	return Number.isFinite(value) ? wrapInt64(BigInt(Math.trunc(value))) : 0n;
}

/** Converts any value to a float; inconvertible values become 0. */
export function toFloat(value: Value): number {
	if (typeof value === 'number') return value;
	if (typeof value !== 'string') return Number(toInteger(value));
	const text = value.trim();
	return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : 0;
}

/** Returns a list unchanged, a single value as a list, and nil as the empty list. */
export function toList(value: Value): readonly Value[] {
	if (value === null) return [];
	return isList(value) ? value : [value];
}

/**
 * Limits a count: returns 0 for negative values, and `max` + 1 for values above `max`, so that a later check finds that they exceed
 * the maximum.
 */
export function clampCount(value: bigint, max: number): number {
	if (value <= 0n) return 0;
	return value > BigInt(max) ? max + 1 : Number(value);
}
