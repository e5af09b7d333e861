/** What the matchers by regular expression share: `[<name>] [<of>] <regexp>`, their fields, and keeping captures. */
import { keepCaptures, NAMED_CAPTURES } from '../../codegen/captures.ts';
import type { CompileContext } from '../../codegen/compile-context.ts';
import type { Matcher } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { LowerContext } from '../../lower/lower-context.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { Schema } from '../directives/directive.ts';

/** Fields of every matcher by regular expression. */
export interface RegexpMatcher extends Matcher {
	readonly pattern: string;
	/** Name of the captures. */
	readonly name?: string;
}

/** Their schema. */
export const REGEXP_PROPERTIES: { readonly [name: string]: Schema } = {
	pattern: { type: 'string', description: 'Regular expression in the syntax of RE2.' },
	name: { type: 'string', pattern: '^[\\w-]+$', description: 'Name of its captures.' },
};

/** Said when one set holds two expressions where only one can be. */
export const ONCE_PER_SET = 'regular expression can only be used once per named matcher';

/**
 * Lowers the arguments: an optional name, what the expression is about when `of` is 1, the expression. The name is that of
 * the named matcher when none is given. Undefined after a mistake was reported.
 */
export function lowerRegexpArguments(
	line: Line,
	cx: LowerContext,
	matcherName: string | undefined,
	of: 0 | 1,
	usage: string,
): { of: Word; fields: { pattern: string; name?: string } } | undefined {
	const args = line.words.slice(1);
	cx.noBlock(line);
	if (!cx.count(line, args, of + 1, of + 2, usage)) return undefined;
	const given = args.length === of + 2 ? args[0]! : undefined;
	const pattern = cx.regexp(args.at(-1)!, 'matcher');
	if (given && !/^\w+$/.test(given.text)) {
		const message = `invalid regexp name (must contain only word characters): ${given.text}`;
		cx.problem('error', 'regexp/invalid-name', given.span, message);
		return undefined;
	}
	if (pattern === undefined) return undefined;
	const name = given?.text ?? (matcherName !== undefined && /^[\w-]+$/.test(matcherName) ? matcherName : undefined);
	return { of: args.at(-2) ?? args[0]!, fields: { pattern, ...(name === undefined ? {} : { name }) } };
}

/** Compiles to a search of a text that keeps the captures when it finds something. */
export function compileRegexpSearch(
	matcher: RegexpMatcher,
	cx: CompileContext,
): (x: Exchange, text: string) => boolean {
	const regexp = cx.regexp(matcher.pattern);
	const key = matcher.name === undefined ? '' : NAMED_CAPTURES + matcher.name;
	return (x, text) => {
		const match = regexp.exec(text);
		if (!match) return false;
		keepCaptures(x, key, match);
		return true;
	};
}
