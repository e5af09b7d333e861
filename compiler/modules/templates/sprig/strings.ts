/** sprig's functions for strings. */
import { valueToText } from '../format-value.ts';
import { defineFunction, type FunctionList } from '../function.ts';
import { quoteString } from '../printf.ts';
import type { TemplateRun } from '../run.ts';
import { byteLength, byteSlice } from '../text-bytes.ts';
import { compareText, type Value } from '../value.ts';
import { clampCount, toList } from './casts.ts';

/** sprig's string functions, such as `trim`, `replace` and `splitn`. */
export const STRING_FUNCTIONS: FunctionList = {
	hello: defineFunction('', () => 'Hello!'),
	trim: defineFunction('string', (_, s: string) => s.trim()),
	trimAll: defineFunction('string string', trimAll),
	trimall: defineFunction('string string', trimAll),
	trimPrefix: defineFunction('string string', (_, prefix: string, s: string) =>
		s.startsWith(prefix) ? s.slice(prefix.length) : s,
	),
	trimSuffix: defineFunction('string string', (_, suffix: string, s: string) =>
		s.endsWith(suffix) ? s.slice(0, s.length - suffix.length) : s,
	),
	upper: defineFunction('string', (_, s: string) => s.toUpperCase()),
	lower: defineFunction('string', (_, s: string) => s.toLowerCase()),
	contains: defineFunction('string string', (_, part: string, s: string) => s.includes(part)),
	hasPrefix: defineFunction('string string', (_, prefix: string, s: string) => s.startsWith(prefix)),
	hasSuffix: defineFunction('string string', (_, suffix: string, s: string) => s.endsWith(suffix)),
	repeat: defineFunction('int string', (run, count: bigint, s: string) => repeatString(run, s, count)),
	substr: defineFunction('int int string', (_, start: bigint, end: bigint, s: string) => {
		const length = BigInt(byteLength(s));
		if (start < 0n) return byteSlice(s, 0, Number(end < 0n ? 0n : end));
		const to = end < 0n || end > length ? length : end;
		return byteSlice(s, Number(start > length ? length : start), Number(to));
	}),
	trunc: defineFunction('int string', (_, count: bigint, s: string) => {
		const length = byteLength(s);
		if (count < 0n) return BigInt(length) + count > 0n ? byteSlice(s, length + Number(count), length) : s;
		return BigInt(length) > count ? byteSlice(s, 0, Number(count)) : s;
	}),
	abbrev: defineFunction('int string', (_, width: bigint, s: string) => abbreviated(s, 0, Number(width))),
	abbrevboth: defineFunction('int int string', (_, left: bigint, right: bigint, s: string) =>
		abbreviated(s, Number(left), Number(right)),
	),
	nospace: defineFunction('string', (_, s: string) => s.replace(/\s+/g, '')),
	initials: defineFunction('string', (_, s: string) => (s.match(/(?<!\S)\S/gu) ?? []).join('')),
	quote: defineFunction('any...', (run, values: Value[]) =>
		quotedAll(values, value => quoteString(valueToText(run, value))),
	),
	squote: defineFunction('any...', (run, values: Value[]) =>
		quotedAll(values, value => `'${valueToText(run, value)}'`),
	),
	cat: defineFunction('any...', (run, values: Value[]) =>
		joinedText(
			run,
			values.filter(value => value !== null),
			' ',
		),
	),
	indent: defineFunction('int string', (run, spaces: bigint, s: string) => indented(run, spaces, s)),
	nindent: defineFunction('int string', (run, spaces: bigint, s: string) => `\n${indented(run, spaces, s)}`),
	replace: defineFunction('string string string', (run, old: string, by: string, s: string) => {
		const count = old === '' ? s.length + 1 : s.split(old).length - 1;
		run.budget.text(s.length + count * by.length);
		return old === '' ? by + [...s].map(c => c + by).join('') : s.replaceAll(old, () => by);
	}),
	plural: defineFunction('string string int', (_, one: string, many: string, count: bigint) =>
		count === 1n ? one : many,
	),
	wrap: defineFunction('int string', (run, width: bigint, s: string) => wrapped(run, width, '\n', s)),
	wrapWith: defineFunction('int string string', (run, width: bigint, end: string, s: string) =>
		wrapped(run, width, end, s),
	),
	toString: defineFunction('any', (run, value: Value) => valueToText(run, value)),
	toStrings: defineFunction('any', (run, value: Value) => toStrings(run, value)),
	join: defineFunction('string any', (run, separator: string, value: Value) =>
		joinedText(run, toList(value), separator),
	),
	sortAlpha: defineFunction('any', (run, value: Value) => {
		const list = toStrings(run, value);
		run.budget.spend(list.length * 4);
		return list.sort(compareText);
	}),
	splitList: defineFunction('string string', (run, separator: string, s: string) => parts(run, s, separator)),
	split: defineFunction('string string', (run, separator: string, s: string) => numbered(parts(run, s, separator))),
	splitn: defineFunction('string int string', (run, separator: string, count: bigint, s: string) => {
		const all = parts(run, s, separator);
		if (count === 0n) return new Map();
		if (count < 0n || count >= BigInt(all.length)) return numbered(all);
		const most = Number(count);
		return numbered([...all.slice(0, most - 1), all.slice(most - 1).join(separator)]);
	}),
};

function trimAll(_: TemplateRun, cutset: string, s: string): string {
	const cut = new Set(cutset);
	const characters = [...s];
	let start = 0;
	let end = characters.length;
	while (start < end && cut.has(characters[start]!)) start++;
	while (end > start && cut.has(characters[end - 1]!)) end--;
	return characters.slice(start, end).join('');
}

/** Repeats a string, within the budget. */
export function repeatString(run: TemplateRun, s: string, count: bigint): string {
	const { characters } = run.budget.bounds;
	const times = s === '' ? 0 : clampCount(count, characters);
	run.budget.text(s.length * times);
	return s.repeat(times);
}

function indented(run: TemplateRun, spaces: bigint, s: string): string {
	const padding = repeatString(run, ' ', spaces);
	run.budget.text(s.length + padding.length * (s.split('\n').length + 1));
	return padding + s.replaceAll('\n', `\n${padding}`);
}

/** Abbreviates a string, with dots for the parts omitted at its beginning and end. */
function abbreviated(s: string, offset: number, width: number): string {
	const length = s.length;
	if (width < 4 || (offset > 0 && width < 7) || length <= width) return s;
	let from = Math.min(offset, length);
	if (length - from < width - 3) from = length - (width - 3);
	if (from <= 4) return `${s.slice(0, width - 3)}...`;
	if (from + width - 3 < length) return `...${abbreviated(s.slice(from), 0, width - 3)}`;
	return `...${s.slice(length - (width - 3))}`;
}

function quotedAll(values: readonly Value[], quote: (value: Value) => string): string {
	return values
		.filter(value => value !== null)
		.map(quote)
		.join(' ');
}

/** Returns the values of a list as strings. */
export function toStrings(run: TemplateRun, value: Value): string[] {
	return toList(value)
		.filter(item => item !== null)
		.map(item => valueToText(run, item));
}

function joinedText(run: TemplateRun, values: readonly Value[], separator: string): string {
	const parts: string[] = [];
	let length = 0;
	for (const value of values) {
		if (value === null) continue;
		const part = valueToText(run, value);
		length += part.length + separator.length;
		run.budget.spend(1);
		run.budget.fits(length);
		parts.push(part);
	}
	return parts.join(separator);
}

function parts(run: TemplateRun, s: string, separator: string): string[] {
	run.budget.spend(s.length >> 4);
	return separator === '' ? [...s] : s.split(separator);
}

/** Returns strings as a dictionary with the keys `_0`, `_1`, … */
function numbered(list: readonly string[]): Map<string, Value> {
	return new Map(list.map((part, i) => [`_${i}`, part]));
}

/** Wraps lines at spaces, so that none is longer than `width`; longer words are split. */
function wrapped(run: TemplateRun, width: bigint, end: string, s: string): string {
	const most = Math.max(clampCount(width, run.budget.bounds.characters), 1);
	run.budget.text(s.length + Math.ceil(s.length / most) * end.length);
	let out = '';
	let rest = s;
	while (rest.length > most) {
		if (rest[0] === ' ') {
			rest = rest.slice(1);
			continue;
		}
		const space = rest.lastIndexOf(' ', most);
		const cut = space > 0 ? space : most;
		out += rest.slice(0, cut) + end;
		rest = rest.slice(space > 0 ? cut + 1 : cut);
	}
	return out + rest;
}
