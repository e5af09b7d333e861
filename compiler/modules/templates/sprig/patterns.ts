/** sprig's functions for regular expressions. Both forms, with and without `must`, fail for an invalid expression. */
import { defineFunction, type FunctionList, type TemplateFunction } from '../function.ts';
import type { TemplateRun } from '../run.ts';

/** Maximum number of characters of a searched text. A search may need several passes over the text. */
const MAX_SEARCHED_LENGTH = 64 * 1024;

function withMustForm(name: string, fn: TemplateFunction): FunctionList {
	return { [name]: fn, [`must${name[0]!.toUpperCase()}${name.slice(1)}`]: fn };
}

export const PATTERN_FUNCTIONS: FunctionList = {
	...withMustForm(
		'regexMatch',
		defineFunction('string string', (run, source: string, subject: string) =>
			compileSearch(run, source, subject).test(subject),
		),
	),
	...withMustForm(
		'regexFind',
		defineFunction(
			'string string',
			(run, source: string, subject: string) => compileSearch(run, source, subject).exec(subject)?.[0] ?? '',
		),
	),
	...withMustForm(
		'regexFindAll',
		defineFunction('string string int', (run, source: string, subject: string, count: bigint) =>
			limitMatches(
				[...subject.matchAll(compileSearch(run, source, subject))].map(match => match[0]),
				count,
			),
		),
	),
	...withMustForm(
		'regexReplaceAll',
		defineFunction('string string string', (run, source: string, subject: string, replacement: string) =>
			replaceMatches(run, source, subject, match => expandReplacement(replacement, match)),
		),
	),
	...withMustForm(
		'regexReplaceAllLiteral',
		defineFunction('string string string', (run, source: string, subject: string, replacement: string) =>
			replaceMatches(run, source, subject, () => replacement),
		),
	),
	...withMustForm(
		'regexSplit',
		defineFunction('string string int', (run, source: string, subject: string, count: bigint) =>
			splitAtMatches(run, source, subject, count),
		),
	),
	regexQuoteMeta: defineFunction('string', (_, subject: string) =>
		subject.replace(/[\\.+*?()|[\]{}^$]/g, c => `\\${c}`),
	),
};

function compileSearch(run: TemplateRun, source: string, subject: string): RegExp {
	if (subject.length > MAX_SEARCHED_LENGTH)
		return run.fail(`a text of more than ${MAX_SEARCHED_LENGTH} characters cannot be searched`);
	run.budget.spendSteps(10 + (subject.length >> 4));
	const regexp = run.deps.regexp(source);
	regexp.lastIndex = 0;
	return regexp;
}

function limitMatches(matches: string[], count: bigint): string[] {
	return count < 0n || count >= BigInt(matches.length) ? matches : matches.slice(0, Number(count));
}

function replaceMatches(
	run: TemplateRun,
	source: string,
	subject: string,
	replacementOf: (match: RegExpExecArray) => string,
): string {
	let result = '';
	let copiedEnd = 0;
	for (const match of subject.matchAll(compileSearch(run, source, subject))) {
		result += subject.slice(copiedEnd, match.index) + replacementOf(match);
		copiedEnd = match.index + match[0].length;
		run.budget.checkLength(result.length);
	}
	return result + subject.slice(copiedEnd);
}

/** Expands a replacement: `$1`, `${1}` and `${name}` insert groups, `$$` a dollar sign. */
function expandReplacement(replacement: string, match: RegExpExecArray): string {
	return replacement.replace(
		/\$(?:(\$)|(\w+)|\{(\w+)\})/g,
		(_, dollar?: string, plainName?: string, bracedName?: string) => {
			if (dollar) return '$';
			const name = (plainName ?? bracedName)!;
			if (/^\d+$/.test(name)) return match[Number(name)] ?? '';
			return match.groups && Object.hasOwn(match.groups, name) ? (match.groups[name] ?? '') : '';
		},
	);
}

function splitAtMatches(run: TemplateRun, source: string, subject: string, count: bigint): string[] {
	if (count === 0n) return [];
	const parts: string[] = [];
	let partStart = 0;
	for (const match of subject.matchAll(compileSearch(run, source, subject))) {
		if (count > 0n && BigInt(parts.length) === count - 1n) break;
		const matchEnd = match.index + match[0].length;
		if (match[0] === '' && (matchEnd === 0 || matchEnd >= subject.length)) continue;
		parts.push(subject.slice(partStart, match.index));
		partStart = matchEnd;
	}
	return [...parts, subject.slice(partStart)];
}
