/** What the regular expression matchers have in common: their arguments `[<name>] [<subject>] <regexp>`, fields and captures. */
import { NAMED_CAPTURES_PREFIX, storeCaptures } from '../../codegen/context/captures.ts';
import type { Matcher } from '../../document/document.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** The fields of every regular expression matcher. */
export interface RegexpMatcher extends Matcher {
	readonly pattern: string;
	/** Name under which the captures are stored. */
	readonly name?: string;
}

/** Schema of the fields of {@link RegexpMatcher}. */
export const REGEXP_PROPERTIES: { readonly [name: string]: Schema } = {
	pattern: { type: 'string', description: 'Regular expression in the syntax of RE2.' },
	name: { type: 'string', pattern: '^[\\w-]+$', description: 'Name of its captures.' },
};

/** Message for a matcher set that contains two regular expression matchers although only one is allowed. */
export const ONCE_PER_SET_MESSAGE = 'regular expression can only be used once per named matcher';

/**
 * Lowers the arguments: an optional name for the captures, the subject if `subjectCount` is 1, and the expression. The default name
 * is `matcherName`, the name of the named matcher being defined. Returns undefined after reporting a mistake.
 */
export function lowerRegexpArguments(
	line: Line,
	cx: LowerContext,
	matcherName: string | undefined,
	subjectCount: 0 | 1,
	usage: string,
): { subject: Word; fields: { pattern: string; name?: string } } | undefined {
	const args = line.words.slice(1);
	cx.noBlock(line);
	if (!cx.count(line, args, subjectCount + 1, subjectCount + 2, usage)) return undefined;
	const nameWord = args.length === subjectCount + 2 ? args[0]! : undefined;
	const pattern = cx.regexp(args.at(-1)!, 'matcher');
	if (nameWord && !/^\w+$/.test(nameWord.text)) {
		const message = `invalid regexp name (must contain only word characters): ${nameWord.text}`;
		cx.problem('error', 'regexp/invalid-name', nameWord.span, message);
		return undefined;
	}
	if (pattern === undefined) return undefined;
	const name = nameWord?.text ?? (matcherName !== undefined && /^[\w-]+$/.test(matcherName) ? matcherName : undefined);
	return { subject: args.at(-2) ?? args[0]!, fields: { pattern, ...(name === undefined ? {} : { name }) } };
}

/** Compiles a regular expression matcher to a function that searches a string and stores the captures of a match. */
export function compileRegexpSearch(
	matcher: RegexpMatcher,
	cx: CompileContext,
): (x: Exchange, text: string) => boolean {
	const regexp = cx.regexpFor(matcher.pattern);
	const capturesVariable = matcher.name === undefined ? '' : NAMED_CAPTURES_PREFIX + matcher.name;
	return (x, text) => {
		const match = regexp.exec(text);
		if (!match) return false;
		storeCaptures(x, capturesVariable, match);
		return true;
	};
}
