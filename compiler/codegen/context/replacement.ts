/** Compiles the text that replaces matches of a regular expression. It may contain `$1`, `${name}` and placeholders. */
import type { Exchange } from '../../exchange/exchange.ts';
import type { CompileContext, EscapeValue, Template } from '../../modules/contract/compile-context.ts';

/** Replaces all matches of a regular expression with the `g` flag in a subject. */
export type Replacement = (subject: string, regexp: RegExp, x: Exchange) => string;

/** One part of a replacement: a text with placeholders, or the number or name of a group. */
type ReplacementPiece = { readonly text: Template } | { readonly group: string };

/** Returns the text that a group matched, by its number or name; empty if the group matched nothing or does not exist. */
export type GroupText = (group: string) => string;

/**
 * Compiles a replacement. The name in `$name` extends over as many word characters as possible, while `${name}` is delimited. `$$`
 * stands for a dollar sign, and a missing group is empty. A `$` in the value of a placeholder is literal.
 */
export function compilePatternReplacement(
	text: string,
	cx: Pick<CompileContext, 'template'>,
	whenUnknown: 'keep' | 'empty',
): Replacement {
	const replacement = compileMatchReplacement(text, cx, whenUnknown);
	return (subject, regexp, x) => {
		regexp.lastIndex = 0;
		const replaceMatch = replacement(x);
		return subject.replace(regexp, (...match: unknown[]) => replaceMatch(group => captureText(match, group)));
	};
}

/**
 * Compiles a replacement like {@link compilePatternReplacement}, for callers that find the matches themselves. The result renders
 * the placeholders once per exchange, and returns the function to call for each match.
 */
export function compileMatchReplacement(
	text: string,
	cx: Pick<CompileContext, 'template'>,
	whenUnknown: 'keep' | 'empty',
	encode?: EscapeValue,
): (x: Exchange) => (groupText: GroupText) => string {
	const pieces: ReplacementPiece[] = [];
	let literalStart = 0;
	let literal = '';
	for (const match of text.matchAll(/\$(?:(\$)|(\w+)|\{(\w+)\})/g)) {
		literal += text.slice(literalStart, match.index) + (match[1] ?? '');
		literalStart = match.index + match[0].length;
		const group = match[2] ?? match[3];
		if (group === undefined) continue;
		if (literal !== '') pieces.push({ text: cx.template(literal, whenUnknown, encode) });
		literal = '';
		pieces.push({ group });
	}
	literal += text.slice(literalStart);
	if (literal !== '') pieces.push({ text: cx.template(literal, whenUnknown, encode) });
	return x => {
		const renderedTexts = pieces.map(piece => ('text' in piece ? piece.text.render(x) : ''));
		return groupText => {
			let result = '';
			for (let i = 0; i < pieces.length; i++) {
				const piece = pieces[i]!;
				result += 'text' in piece ? renderedTexts[i] : groupText(piece.group);
			}
			return result;
		};
	};
}

/**
 * Returns the text of a group. `match` holds the arguments of a `replace` callback: the whole match, the groups, the offset, the
 * subject, and an object of named groups if there are any.
 */
function captureText(match: readonly unknown[], group: string): string {
	const lastArgument = match.at(-1);
	const namedGroups =
		typeof lastArgument === 'object' && lastArgument !== null
			? (lastArgument as { [name: string]: string | undefined })
			: undefined;
	if (!/^\d+$/.test(group)) return namedGroups?.[group] ?? '';
	const groupCount = match.length - (namedGroups ? 3 : 2);
	return Number(group) < groupCount ? ((match[Number(group)] as string | undefined) ?? '') : '';
}

/**
 * Compiles a regular expression to search for. If it has placeholders, it is compiled for each request, with their values inserted
 * as parts of the expression. The function then returns undefined if the result is invalid, so that nothing is replaced.
 */
export function compileSearch(source: string, cx: CompileContext): (x: Exchange) => RegExp | undefined {
	if (!cx.hasPlaceholders(source)) {
		const regexp = cx.regexpFor(source, 'g');
		return () => regexp;
	}
	const template = cx.template(source, 'keep');
	let lastSource = '';
	let lastRegexp: RegExp | undefined;
	return x => {
		const renderedSource = template.render(x);
		if (renderedSource === lastSource) return lastRegexp;
		lastSource = renderedSource;
		try {
			lastRegexp = cx.dynamicRegexp(renderedSource, 'g');
		} catch {
			lastRegexp = undefined;
		}
		return lastRegexp;
	};
}
