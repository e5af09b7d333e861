/** Converts values to and from JSON, within the budget of an execution. */
import { formatFloat } from './format-value.ts';
import type { TemplateRun } from './run.ts';
import { TimeValue } from './time-value.ts';
import { asDictionary, Callable, isList, isObject, sortedKeys, type Value } from './value.ts';

/**
 * Returns a value as JSON with sorted keys. `indent` is the indentation of each level; '' for a single line. `<`, `>` and `&` are
 * escaped unless `isRaw`.
 */
export function toJson(run: TemplateRun, value: Value, indent: string, isRaw: boolean): string {
	const jsonText = encodeValue(run, value, indent, indent === '' ? '' : '\n');
	if (isRaw) return jsonText;
	return jsonText.replace(/[<>&\u2028\u2029]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function encodeValue(run: TemplateRun, value: Value, indent: string, newline: string): string {
	run.budget.spendSteps(1);
	switch (typeof value) {
		case 'string':
			run.budget.chargeText(value.length);
			return JSON.stringify(value.toWellFormed());
		case 'boolean':
		case 'bigint':
			return String(value);
		case 'number':
			return Number.isFinite(value) ? formatFloat(value) : run.fail('json: unsupported value');
	}
	if (value === null) return 'null';
	if (value instanceof Callable) return run.fail('json: unsupported type: func');
	const innerNewline = newline + indent;
	const keySeparator = indent === '' ? ':' : ': ';
	run.budget.enterLevel();
	const parts: string[] = [];
	let joinedLength = 0;
	const addPart = (part: string): void => {
		joinedLength += part.length;
		run.budget.checkLength(joinedLength);
		parts.push(part);
	};
	const dictionary = asDictionary(value);
	const fields = dictionary === undefined && isObject(value) ? value.jsonFields?.() : undefined;
	const entries = dictionary ?? fields;
	if (isList(value)) for (const item of value) addPart(encodeValue(run, item, indent, innerNewline));
	else if (entries) {
		for (const key of fields ? fields.keys() : sortedKeys(entries)) {
			addPart(`${JSON.stringify(key)}${keySeparator}${encodeValue(run, entries.get(key)!, indent, innerNewline)}`);
		}
	}
	run.budget.leaveLevel();
	if (!isList(value) && !entries) return JSON.stringify((value as { text(): string }).text());
	const [openBracket, closeBracket] = isList(value) ? '[]' : '{}';
	return parts.length === 0
		? `${openBracket}${closeBracket}`
		: `${openBracket}${innerNewline}${parts.join(`,${innerNewline}`)}${newline}${closeBracket}`;
}

/** Parses JSON. Numbers become floats, as in Go. Throws SyntaxError. */
export function fromJson(text: string): Value {
	return toTemplateValue(JSON.parse(text), false);
}

/**
 * Converts plain JavaScript data, such as the result of a parser, to a value. If `convertsIntegers`, whole numbers become integers
 * instead of floats.
 */
export function toTemplateValue(data: unknown, convertsIntegers: boolean): Value {
	switch (typeof data) {
		case 'string':
		case 'boolean':
		case 'bigint':
			return data;
		case 'number':
			return convertsIntegers && Number.isSafeInteger(data) ? BigInt(data) : data;
		case 'object':
			break;
		default:
			return null;
	}
	if (data === null) return null;
	if (Array.isArray(data)) return data.map(item => toTemplateValue(item, convertsIntegers));
	if (data instanceof Date) return new TimeValue(data.getTime(), 'UTC');
	if (data instanceof Map)
		return new Map([...data].map(([key, item]) => [String(key), toTemplateValue(item, convertsIntegers)]));
	return new Map(Object.entries(data).map(([key, item]) => [key, toTemplateValue(item, convertsIntegers)]));
}
