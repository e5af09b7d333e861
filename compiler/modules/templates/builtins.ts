/** The built-in functions of the template language, except `and` and `or`, whose arguments are evaluated only as needed. */
import { escapeQueryText } from '../../exchange/uri-escape.ts';
import { basicEqual, basicLess } from './compare.ts';
import { formatValue, valueToText } from './format-value.ts';
import { defineFunction, type FunctionList } from './function.ts';
import { formatPrintf } from './printf.ts';
import type { TemplateRun } from './run.ts';
import { byteLength, byteSlice } from './text-bytes.ts';
import { asDictionary, Callable, isList, isTrue, typeName, type Value } from './value.ts';

/** The built-in functions, such as `len`, `index`, `eq` and `printf`. */
export const BUILTINS: FunctionList = {
	not: defineFunction('any', (_, value: Value) => !isTrue(value)),
	len: defineFunction('any', (run, value: Value) => BigInt(lengthOf(run, value))),
	index: defineFunction('any any...', (run, subject: Value, keys: Value[]) =>
		keys.reduce<Value>((value, key) => elementAt(run, value, key), subject),
	),
	slice: defineFunction('any int...', (run, subject: Value, bounds: bigint[]) => sliceOf(run, subject, bounds)),
	call: defineFunction('any any...', (run, callable: Value, args: Value[]) => {
		if (callable instanceof Callable) return callable.call(run, args);
		return run.fail(callable === null ? 'call of nil' : `non-function of type ${typeName(callable)}`);
	}),
	eq: defineFunction('any any...', (run, first: Value, others: Value[]) => {
		if (others.length === 0) return run.fail('missing argument for comparison');
		return others.some(other => basicEqual(run, first, other));
	}),
	ne: defineFunction('any any', (run, a: Value, b: Value) => !basicEqual(run, a, b)),
	lt: defineFunction('any any', (run, a: Value, b: Value) => basicLess(run, a, b)),
	le: defineFunction('any any', (run, a: Value, b: Value) => basicLess(run, a, b) || basicEqual(run, a, b)),
	gt: defineFunction('any any', (run, a: Value, b: Value) => !basicLess(run, a, b) && !basicEqual(run, a, b)),
	ge: defineFunction('any any', (run, a: Value, b: Value) => !basicLess(run, a, b)),
	print: defineFunction('any...', (run, values: Value[]) => joinPrinted(run, values)),
	println: defineFunction(
		'any...',
		(run, values: Value[]) => `${values.map(value => formatValue(run, value)).join(' ')}\n`,
	),
	printf: defineFunction('string any...', (run, format: string, values: Value[]) => formatPrintf(run, format, values)),
	html: defineFunction('any...', (run, values: Value[]) => escapeHtml(joinAsText(run, values))),
	js: defineFunction('any...', (run, values: Value[]) => escapeJs(joinAsText(run, values))),
	urlquery: defineFunction('any...', (run, values: Value[]) => escapeQueryText(joinAsText(run, values))),
};

/** Converts a single value to a string; joins several values as `print` does. */
function joinAsText(run: TemplateRun, values: readonly Value[]): string {
	return values.length === 1 ? valueToText(run, values[0]!) : joinPrinted(run, values);
}

/** Formats and joins values, with a space between adjacent values if neither is a string. */
function joinPrinted(run: TemplateRun, values: readonly Value[]): string {
	let result = '';
	for (const [i, value] of values.entries()) {
		if (i > 0 && typeof value !== 'string' && typeof values[i - 1] !== 'string') result += ' ';
		result += formatValue(run, value);
		run.budget.checkLength(result.length);
	}
	return result;
}

function lengthOf(run: TemplateRun, value: Value): number {
	if (typeof value === 'string') return byteLength(value);
	if (isList(value)) return value.length;
	const entries = asDictionary(value);
	if (entries) return entries.size;
	return run.fail(value === null ? 'len of nil pointer' : `len of type ${typeName(value)}`);
}

function elementAt(run: TemplateRun, subject: Value, key: Value): Value {
	if (subject === null) return run.fail('index of untyped nil');
	if (isList(subject)) return subject[checkedIndex(run, key, subject.length)]!;
	if (typeof subject === 'string') {
		const bytes = Buffer.from(subject);
		return BigInt(bytes[checkedIndex(run, key, bytes.length)]!);
	}
	const entries = asDictionary(subject);
	if (!entries) return run.fail(`can't index item of type ${typeName(subject)}`);
	if (typeof key !== 'string') return run.fail(`value has type ${typeName(key)}; should be string`);
	return entries.get(key) ?? null;
}

function checkedIndex(run: TemplateRun, key: Value, length: number): number {
	if (typeof key !== 'bigint') return run.fail(`cannot index slice/array with type ${typeName(key)}`);
	if (key < 0n || key >= BigInt(length)) return run.fail(`index out of range: ${key}`);
	return Number(key);
}

function sliceOf(run: TemplateRun, subject: Value, bounds: readonly bigint[]): Value {
	if (bounds.length > 3) return run.fail(`too many slice indexes: ${bounds.length}`);
	if (typeof subject === 'string' && bounds.length === 3) return run.fail('cannot 3-index slice a string');
	if (typeof subject !== 'string' && !isList(subject)) return run.fail(`can't slice item of type ${typeName(subject)}`);
	const length = lengthOf(run, subject);
	const [start = 0n, end = BigInt(length)] = bounds;
	for (const bound of bounds) {
		if (bound < 0n || bound > BigInt(length)) return run.fail(`index out of range: ${bound}`);
	}
	if (start > end) return run.fail(`invalid slice index: ${start} > ${end}`);
	if (typeof subject === 'string') return byteSlice(subject, Number(start), Number(end));
	return subject.slice(Number(start), Number(end));
}

/** Escapes text for HTML: `& < > " '` and NUL. */
export function escapeHtml(text: string): string {
	return text.replace(/[&<>"'\0]/g, c => HTML_ESCAPES[c]!);
}

const HTML_ESCAPES: { readonly [character: string]: string } = {
	'&': '&amp;',
	'<': '&lt;',
	'>': '&gt;',
	'"': '&#34;',
	"'": '&#39;',
	'\0': '\ufffd',
};

/** Escapes text for a JavaScript string, even one inside an HTML page. */
function escapeJs(text: string): string {
	return text.replace(/[\\'"<>&=\p{Cc}\u2028\u2029]/gu, c => {
		if (c === '\\' || c === "'" || c === '"') return `\\${c}`;
		return `\\u${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
	});
}
