/** sprig's functions for regular expressions. With or without `must`, they fail for an invalid expression. */
import { defineFunction, type FunctionList, type TemplateFunction } from '../function.ts';
import type { TemplateRun } from '../run.ts';

/** Maximum characters searched, because a search may need more than one pass over them. */
const MAX_SUBJECT = 64 * 1024;

function both(name: string, fn: TemplateFunction): FunctionList {
	return { [name]: fn, [`must${name[0]!.toUpperCase()}${name.slice(1)}`]: fn };
}

/** sprig's functions from `regexMatch` to `regexQuoteMeta`. */
export const PATTERN_FUNCTIONS: FunctionList = {
	...both(
		'regexMatch',
		defineFunction('string string', (run, source: string, s: string) => search(run, source, s).test(s)),
	),
	...both(
		'regexFind',
		defineFunction('string string', (run, source: string, s: string) => search(run, source, s).exec(s)?.[0] ?? ''),
	),
	...both(
		'regexFindAll',
		defineFunction('string string int', (run, source: string, s: string, count: bigint) =>
			limited(
				[...s.matchAll(search(run, source, s))].map(match => match[0]),
				count,
			),
		),
	),
	...both(
		'regexReplaceAll',
		defineFunction('string string string', (run, source: string, s: string, by: string) =>
			replaced(run, source, s, match => expanded(by, match)),
		),
	),
	...both(
		'regexReplaceAllLiteral',
		defineFunction('string string string', (run, source: string, s: string, by: string) =>
			replaced(run, source, s, () => by),
		),
	),
	...both(
		'regexSplit',
		defineFunction('string string int', (run, source: string, s: string, count: bigint) =>
			split(run, source, s, count),
		),
	),
	regexQuoteMeta: defineFunction('string', (_, s: string) => s.replace(/[\\.+*?()|[\]{}^$]/g, c => `\\${c}`)),
};

function search(run: TemplateRun, source: string, s: string): RegExp {
	if (s.length > MAX_SUBJECT) return run.fail(`a text of more than ${MAX_SUBJECT} characters cannot be searched`);
	run.budget.spend(10 + (s.length >> 4));
	const regexp = run.deps.regexp(source);
	regexp.lastIndex = 0;
	return regexp;
}

function limited(found: string[], count: bigint): string[] {
	return count < 0n || count >= BigInt(found.length) ? found : found.slice(0, Number(count));
}

function replaced(run: TemplateRun, source: string, s: string, by: (match: RegExpExecArray) => string): string {
	let out = '';
	let from = 0;
	for (const match of s.matchAll(search(run, source, s))) {
		out += s.slice(from, match.index) + by(match);
		from = match.index + match[0].length;
		run.budget.fits(out.length);
	}
	return out + s.slice(from);
}

/** Expands a replacement: `$1`, `${1}` and `${name}` insert groups, `$$` a dollar sign. */
function expanded(by: string, match: RegExpExecArray): string {
	return by.replace(/\$(?:(\$)|(\w+)|\{(\w+)\})/g, (_, dollar?: string, plain?: string, braced?: string) => {
		if (dollar) return '$';
		const name = (plain ?? braced)!;
		if (/^\d+$/.test(name)) return match[Number(name)] ?? '';
		return match.groups && Object.hasOwn(match.groups, name) ? (match.groups[name] ?? '') : '';
	});
}

function split(run: TemplateRun, source: string, s: string, count: bigint): string[] {
	if (count === 0n) return [];
	const parts: string[] = [];
	let from = 0;
	for (const match of s.matchAll(search(run, source, s))) {
		if (count > 0n && BigInt(parts.length) === count - 1n) break;
		const end = match.index + match[0].length;
		if (match[0] === '' && (end === 0 || end >= s.length)) continue;
		parts.push(s.slice(from, match.index));
		from = end;
	}
	return [...parts, s.slice(from)];
}
