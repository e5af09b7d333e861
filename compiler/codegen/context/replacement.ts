/** Replacement text for matches of a regular expression, with `$1`, `${name}` and placeholders. */
import type { Exchange } from '../../exchange/exchange.ts';
import type { CompileContext, EscapeValue, Template } from '../../modules/contract/compile-context.ts';

/** Replaces the matches of a global expression in a subject. */
export type Replacement = (subject: string, regexp: RegExp, x: Exchange) => string;

/** One part of a replacement: text, or the number or name of a group. */
type Piece = { readonly text: Template } | { readonly group: string };

/** Returns the text of a group, by its number or name, in a match; empty if it has none. */
export type GroupText = (group: string) => string;

/**
 * Compiles a replacement. The name in `$name` extends over as many word characters as possible, `${name}` is delimited, `$$` is a
 * dollar sign, and a missing group is empty. Placeholder values are data: a `$` in them is literal.
 */
export function compilePatternReplacement(
	text: string,
	cx: Pick<CompileContext, 'template'>,
	whenUnknown: 'keep' | 'empty',
): Replacement {
	const replacement = compileMatchReplacement(text, cx, whenUnknown);
	return (subject, regexp, x) => {
		regexp.lastIndex = 0;
		const replace = replacement(x);
		return subject.replace(regexp, (...match: unknown[]) => replace(group => groupText(match, group)));
	};
}

/**
 * Compiles a replacement as {@link compilePatternReplacement} does. The result renders its placeholders once per exchange, and
 * returns the function that is called for each match.
 */
export function compileMatchReplacement(
	text: string,
	cx: Pick<CompileContext, 'template'>,
	whenUnknown: 'keep' | 'empty',
	encode?: EscapeValue,
): (x: Exchange) => (groupText: GroupText) => string {
	const pieces: Piece[] = [];
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
		const texts = pieces.map(piece => ('text' in piece ? piece.text.render(x) : ''));
		return groupText => {
			let result = '';
			for (let i = 0; i < pieces.length; i++) {
				const piece = pieces[i]!;
				result += 'text' in piece ? texts[i] : groupText(piece.group);
			}
			return result;
		};
	};
}

/**
 * Returns the text of a group. `match` holds a replacer's arguments: whole match, groups, offset, subject, and any named groups.
 */
function groupText(match: readonly unknown[], group: string): string {
	const lastArgument = match.at(-1);
	const namedGroups =
		typeof lastArgument === 'object' && lastArgument !== null
			? (lastArgument as { [name: string]: string | undefined })
			: undefined;
	if (!/^\d+$/.test(group)) return namedGroups?.[group] ?? '';
	const count = match.length - (namedGroups ? 3 : 2);
	return Number(group) < count ? ((match[Number(group)] as string | undefined) ?? '') : '';
}

/**
 * Compiles the expression to search for. An expression with placeholders is compiled for each request, with the values inserted
 * verbatim. If the result is invalid, the function returns undefined and nothing is replaced.
 */
export function compileSearch(source: string, cx: CompileContext): (x: Exchange) => RegExp | undefined {
	if (!cx.hasPlaceholders(source)) {
		const regexp = cx.regexp(source, 'g');
		return () => regexp;
	}
	const template = cx.template(source, 'keep');
	let lastText = '';
	let compiled: RegExp | undefined;
	return x => {
		const text = template.render(x);
		if (text === lastText) return compiled;
		lastText = text;
		try {
			compiled = cx.requestedRegexp(text, 'g');
		} catch {
			compiled = undefined;
		}
		return compiled;
	};
}
