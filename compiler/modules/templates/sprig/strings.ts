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
	trim: defineFunction('string', (_, text: string) => text.trim()),
	trimAll: defineFunction('string string', trimAll),
	trimall: defineFunction('string string', trimAll),
	trimPrefix: defineFunction('string string', (_, prefix: string, text: string) =>
		text.startsWith(prefix) ? text.slice(prefix.length) : text,
	),
	trimSuffix: defineFunction('string string', (_, suffix: string, text: string) =>
		text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
	),
	upper: defineFunction('string', (_, text: string) => text.toUpperCase()),
	lower: defineFunction('string', (_, text: string) => text.toLowerCase()),
	contains: defineFunction('string string', (_, part: string, text: string) => text.includes(part)),
	hasPrefix: defineFunction('string string', (_, prefix: string, text: string) => text.startsWith(prefix)),
	hasSuffix: defineFunction('string string', (_, suffix: string, text: string) => text.endsWith(suffix)),
	repeat: defineFunction('int string', (run, count: bigint, text: string) => repeatString(run, text, count)),
	substr: defineFunction('int int string', (_, start: bigint, end: bigint, text: string) => {
		const length = BigInt(byteLength(text));
		if (start < 0n) return byteSlice(text, 0, Number(end < 0n ? 0n : end));
		const clampedEnd = end < 0n || end > length ? length : end;
		return byteSlice(text, Number(start > length ? length : start), Number(clampedEnd));
	}),
	trunc: defineFunction('int string', (_, count: bigint, text: string) => {
		const length = byteLength(text);
		if (count < 0n) return BigInt(length) + count > 0n ? byteSlice(text, length + Number(count), length) : text;
		return BigInt(length) > count ? byteSlice(text, 0, Number(count)) : text;
	}),
	abbrev: defineFunction('int string', (_, width: bigint, text: string) => abbreviate(text, 0, Number(width))),
	abbrevboth: defineFunction('int int string', (_, offset: bigint, width: bigint, text: string) =>
		abbreviate(text, Number(offset), Number(width)),
	),
	nospace: defineFunction('string', (_, text: string) => text.replace(/\s+/g, '')),
	initials: defineFunction('string', (_, text: string) => (text.match(/(?<!\S)\S/gu) ?? []).join('')),
	quote: defineFunction('any...', (run, values: Value[]) =>
		quoteAll(values, value => quoteString(valueToText(run, value))),
	),
	squote: defineFunction('any...', (run, values: Value[]) => quoteAll(values, value => `'${valueToText(run, value)}'`)),
	cat: defineFunction('any...', (run, values: Value[]) =>
		joinValues(
			run,
			values.filter(value => value !== null),
			' ',
		),
	),
	indent: defineFunction('int string', (run, spaces: bigint, text: string) => indentLines(run, spaces, text)),
	nindent: defineFunction('int string', (run, spaces: bigint, text: string) => `\n${indentLines(run, spaces, text)}`),
	replace: defineFunction('string string string', (run, searchText: string, replacement: string, text: string) => {
		const count = searchText === '' ? text.length + 1 : text.split(searchText).length - 1;
		run.budget.chargeText(text.length + count * replacement.length);
		return searchText === ''
			? replacement + [...text].map(c => c + replacement).join('')
			: text.replaceAll(searchText, () => replacement);
	}),
	plural: defineFunction('string string int', (_, singular: string, pluralText: string, count: bigint) =>
		count === 1n ? singular : pluralText,
	),
	wrap: defineFunction('int string', (run, width: bigint, text: string) => wrapLines(run, width, '\n', text)),
	wrapWith: defineFunction('int string string', (run, width: bigint, lineEnd: string, text: string) =>
		wrapLines(run, width, lineEnd, text),
	),
	toString: defineFunction('any', (run, value: Value) => valueToText(run, value)),
	toStrings: defineFunction('any', (run, value: Value) => toStrings(run, value)),
	join: defineFunction('string any', (run, separator: string, value: Value) =>
		joinValues(run, toList(value), separator),
	),
	sortAlpha: defineFunction('any', (run, value: Value) => {
		const texts = toStrings(run, value);
		run.budget.spendSteps(texts.length * 4);
		return texts.sort(compareText);
	}),
	splitList: defineFunction('string string', (run, separator: string, text: string) => splitText(run, text, separator)),
	split: defineFunction('string string', (run, separator: string, text: string) =>
		dictionaryOfParts(splitText(run, text, separator)),
	),
	splitn: defineFunction('string int string', (run, separator: string, count: bigint, text: string) => {
		const allParts = splitText(run, text, separator);
		if (count === 0n) return new Map();
		if (count < 0n || count >= BigInt(allParts.length)) return dictionaryOfParts(allParts);
		const maxParts = Number(count);
		return dictionaryOfParts([...allParts.slice(0, maxParts - 1), allParts.slice(maxParts - 1).join(separator)]);
	}),
};

function trimAll(_: TemplateRun, cutset: string, text: string): string {
	const trimmedCharacters = new Set(cutset);
	const characters = [...text];
	let start = 0;
	let end = characters.length;
	while (start < end && trimmedCharacters.has(characters[start]!)) start++;
	while (end > start && trimmedCharacters.has(characters[end - 1]!)) end--;
	return characters.slice(start, end).join('');
}

/** Repeats a string, within the budget. */
export function repeatString(run: TemplateRun, text: string, count: bigint): string {
	const { maxCharacters } = run.budget.bounds;
	const repetitions = text === '' ? 0 : clampCount(count, maxCharacters);
	run.budget.chargeText(text.length * repetitions);
	return text.repeat(repetitions);
}

function indentLines(run: TemplateRun, spaces: bigint, text: string): string {
	const padding = repeatString(run, ' ', spaces);
	run.budget.chargeText(text.length + padding.length * (text.split('\n').length + 1));
	return padding + text.replaceAll('\n', `\n${padding}`);
}

/** Abbreviates a string to `width` characters, with `...` for the text that is omitted before `offset` and at the end. */
function abbreviate(text: string, offset: number, width: number): string {
	const length = text.length;
	if (width < 4 || (offset > 0 && width < 7) || length <= width) return text;
	let visibleStart = Math.min(offset, length);
	if (length - visibleStart < width - 3) visibleStart = length - (width - 3);
	if (visibleStart <= 4) return `${text.slice(0, width - 3)}...`;
	if (visibleStart + width - 3 < length) return `...${abbreviate(text.slice(visibleStart), 0, width - 3)}`;
	return `...${text.slice(length - (width - 3))}`;
}

function quoteAll(values: readonly Value[], quote: (value: Value) => string): string {
	return values
		.filter(value => value !== null)
		.map(quote)
		.join(' ');
}

/**
 * Returns the values of a list as strings, without values that are nil. A value other than a list is treated as a list with one
 * value.
 */
export function toStrings(run: TemplateRun, value: Value): string[] {
	return toList(value)
		.filter(item => item !== null)
		.map(item => valueToText(run, item));
}

function joinValues(run: TemplateRun, values: readonly Value[], separator: string): string {
	const texts: string[] = [];
	let joinedLength = 0;
	for (const value of values) {
		if (value === null) continue;
		const part = valueToText(run, value);
		joinedLength += part.length + separator.length;
		run.budget.spendSteps(1);
		run.budget.checkLength(joinedLength);
		texts.push(part);
	}
	return texts.join(separator);
}

function splitText(run: TemplateRun, text: string, separator: string): string[] {
	run.budget.spendSteps(text.length >> 4);
	return separator === '' ? [...text] : text.split(separator);
}

/** Returns a list of strings as a dictionary with the keys `_0`, `_1`, … */
function dictionaryOfParts(parts: readonly string[]): Map<string, Value> {
	return new Map(parts.map((part, i) => [`_${i}`, part]));
}

/** Inserts `lineEnd` at spaces, so that no line is longer than `width` characters; longer words are split. */
function wrapLines(run: TemplateRun, width: bigint, lineEnd: string, text: string): string {
	const maxLineLength = Math.max(clampCount(width, run.budget.bounds.maxCharacters), 1);
	run.budget.chargeText(text.length + Math.ceil(text.length / maxLineLength) * lineEnd.length);
	let result = '';
	let remainder = text;
	while (remainder.length > maxLineLength) {
		if (remainder[0] === ' ') {
			remainder = remainder.slice(1);
			continue;
		}
		const spaceIndex = remainder.lastIndexOf(' ', maxLineLength);
		const cutPosition = spaceIndex > 0 ? spaceIndex : maxLineLength;
		result += remainder.slice(0, cutPosition) + lineEnd;
		remainder = remainder.slice(spaceIndex > 0 ? cutPosition + 1 : cutPosition);
	}
	return result + remainder;
}
