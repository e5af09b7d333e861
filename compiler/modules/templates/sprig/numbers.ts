/** sprig's functions for numbers. */
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { type Value, wrapInt64 } from '../value.ts';
import { toFloat, toInteger } from './casts.ts';

export const NUMBER_FUNCTIONS: FunctionList = {
	int: defineFunction('any', (_, value: Value) => toInteger(value)),
	int64: defineFunction('any', (_, value: Value) => toInteger(value)),
	float64: defineFunction('any', (_, value: Value) => toFloat(value)),
	atoi: defineFunction('string', (_, s: string) => (/^[+-]?\d+$/.test(s) ? wrapInt64(BigInt(s.replace('+', ''))) : 0n)),
	toDecimal: defineFunction('any', (_, value: Value) => {
		const text = String(typeof value === 'object' ? 0 : value);
		return /^[0-7]+$/.test(text) ? wrapInt64(BigInt(`0o${text}`)) : 0n;
	}),
	add: defineFunction('any...', (_, values: Value[]) => wrapInt64(values.map(toInteger).reduce((a, b) => a + b, 0n))),
	add1: defineFunction('any', (_, value: Value) => wrapInt64(toInteger(value) + 1n)),
	sub: defineFunction('any any', (_, a: Value, b: Value) => wrapInt64(toInteger(a) - toInteger(b))),
	mul: defineFunction('any any...', (_, a: Value, others: Value[]) =>
		others.map(toInteger).reduce((x, y) => wrapInt64(x * y), toInteger(a)),
	),
	div: defineFunction('any any', (run, a: Value, b: Value) => wrapInt64(toInteger(a) / toDivisor(run, b))),
	mod: defineFunction('any any', (run, a: Value, b: Value) => toInteger(a) % toDivisor(run, b)),
	addf: defineFunction('any...', (_, values: Value[]) =>
		roundBinaryError(values.map(toFloat).reduce((a, b) => a + b, 0)),
	),
	add1f: defineFunction('any', (_, value: Value) => roundBinaryError(toFloat(value) + 1)),
	subf: defineFunction('any any...', (_, a: Value, others: Value[]) =>
		roundBinaryError(others.map(toFloat).reduce((x, y) => x - y, toFloat(a))),
	),
	mulf: defineFunction('any any...', (_, a: Value, others: Value[]) =>
		roundBinaryError(others.map(toFloat).reduce((x, y) => x * y, toFloat(a))),
	),
	divf: defineFunction('any any...', (run, a: Value, others: Value[]) =>
		roundBinaryError(
			others.map(toFloat).reduce((x, y) => (y === 0 ? run.fail('decimal division by 0') : x / y), toFloat(a)),
		),
	),
	max: defineFunction('any any...', (_, a: Value, others: Value[]) => maxInteger(a, others)),
	biggest: defineFunction('any any...', (_, a: Value, others: Value[]) => maxInteger(a, others)),
	min: defineFunction('any any...', (_, a: Value, others: Value[]) =>
		others.map(toInteger).reduce((x, y) => (y < x ? y : x), toInteger(a)),
	),
	maxf: defineFunction('any any...', (_, a: Value, others: Value[]) => Math.max(toFloat(a), ...others.map(toFloat))),
	minf: defineFunction('any any...', (_, a: Value, others: Value[]) => Math.min(toFloat(a), ...others.map(toFloat))),
	ceil: defineFunction('any', (_, value: Value) => Math.ceil(toFloat(value))),
	floor: defineFunction('any', (_, value: Value) => Math.floor(toFloat(value))),
	round: defineFunction('any int any...', (_, value: Value, decimalPlaces: bigint, threshold: Value[]) =>
		roundDecimal(toFloat(value), Number(decimalPlaces), threshold.length > 0 ? toFloat(threshold[0]!) : 0.5),
	),
	randInt: defineFunction('int int', (run, low: bigint, high: bigint) => {
		if (high <= low) return run.fail('the upper bound of randInt must be above the lower');
		return run.once(() => low + BigInt(Math.floor(Math.random() * Number(high - low))));
	}),
	until: defineFunction('int', (run, count: bigint) => integerSequence(run, 0n, count, count < 0n ? -1n : 1n)),
	untilStep: defineFunction('int int int', integerSequence),
	seq: defineFunction('int...', (run, bounds: bigint[]) => {
		const [a = 1n, b, c] = bounds;
		if (bounds.length === 0 || bounds.length > 3) return '';
		const [start, step, stop] =
			c !== undefined ? [a, b!, c] : b !== undefined ? [a, a <= b ? 1n : -1n, b] : [1n, a < 1n ? -1n : 1n, a];
		return integerSequence(run, start, stop + (step < 0n ? -1n : 1n), step).join(' ');
	}),
};

function toDivisor(run: TemplateRun, value: Value): bigint {
	const number = toInteger(value);
	return number === 0n ? run.fail('runtime error: integer divide by zero') : number;
}

function maxInteger(a: Value, others: readonly Value[]): bigint {
	return others.map(toInteger).reduce((x, y) => (y > x ? y : x), toInteger(a));
}

/** Rounds to 15 significant digits, to remove binary rounding errors: 0.1 plus 0.2 is 0.3. */
function roundBinaryError(value: number): number {
	return Number(value.toPrecision(15));
}

/** Rounds to `decimalPlaces` decimal places: up if the remaining fraction is at least `threshold`, otherwise down. */
function roundDecimal(value: number, decimalPlaces: number, threshold: number): number {
	const scale = 10 ** Math.max(-300, Math.min(decimalPlaces, 300));
	const scaledValue = scale * value;
	const fraction = roundBinaryError(scaledValue - Math.trunc(scaledValue));
	return (fraction >= threshold ? Math.ceil(scaledValue) : Math.floor(scaledValue)) / scale;
}

/** Returns every `step`-th integer from `start` up to, or down to, but not including, `stop`. */
function integerSequence(run: TemplateRun, start: bigint, stop: bigint, step: bigint): bigint[] {
	if (step === 0n || (step > 0n ? stop <= start : stop >= start)) return [];
	const count = (stop - start + step - (step > 0n ? 1n : -1n)) / step;
	const maxEntries = BigInt(run.budget.bounds.maxEntries);
	run.budget.chargeEntries(Number(count > maxEntries ? maxEntries + 1n : count));
	return Array.from({ length: Number(count) }, (_, i) => start + BigInt(i) * step);
}
