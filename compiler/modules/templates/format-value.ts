/** Formats values as strings, like Go's `%v`. */
import type { TemplateRun } from './run.ts';
import { Callable, isList, sortedKeys, type Value } from './value.ts';

/** Returns the text that an action such as `{{.X}}` prints for a value other than a string. */
export function printValue(run: TemplateRun, value: Value): string {
	if (value === null) return '<no value>';
	if (value instanceof Callable) return run.fail(`can't print ${value.name} of type func`);
	return formatValue(run, value);
}

/** Implements `%v`: lists as `[a b]`, dictionaries as `map[a:1 b:2]`, nil as `<nil>`. */
export function formatValue(run: TemplateRun, value: Value): string {
	switch (typeof value) {
		case 'string':
			return value;
		case 'bigint':
			return value.toString();
		case 'number':
			return formatFloat(value);
		case 'boolean':
			return String(value);
	}
	if (value === null) return '<nil>';
	run.budget.spendSteps(1);
	if (isList(value)) return `[${joinNested(run, value, item => formatValue(run, item))}]`;
	if (value instanceof Callable) return value.name;
	if (value instanceof Map) {
		return `map[${joinNested(run, sortedKeys(value), key => `${key}:${formatValue(run, value.get(key)!)}`)}]`;
	}
	return (value as Exclude<typeof value, ReadonlyMap<string, Value>>).text();
}

function joinNested<T>(run: TemplateRun, items: readonly T[], format: (item: T) => string): string {
	run.budget.enterLevel();
	const parts: string[] = [];
	let joinedLength = 0;
	for (const item of items) {
		const part = format(item);
		joinedLength += part.length + 1;
		// A value may occur many times inside others, so the output can be far longer than the values themselves.
		run.budget.checkLength(joinedLength);
		run.budget.spendSteps(1);
		parts.push(part);
	}
	run.budget.leaveLevel();
	return parts.join(' ');
}

/** Implements `%v` for a float: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e21. */
export function formatFloat(value: number): string {
	if (Number.isNaN(value)) return 'NaN';
	if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
	if (Object.is(value, -0)) return '-0';
	const magnitude = Math.abs(value);
	if (value !== 0 && (magnitude < 1e-4 || magnitude >= 1e21)) return padExponent(value.toExponential());
	return String(value);
}

/** Formats an exponent with at least two digits. */
export function padExponent(text: string): string {
	return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** Converts a value to a string like sprig's functions: nil becomes `<nil>`, and other values are formatted like `%v`. */
export function valueToText(run: TemplateRun, value: Value): string {
	return typeof value === 'string' ? value : formatValue(run, value);
}
