/** `path_regexp`: the request's path by a regular expression, with captures. */
import { keepCaptures, NAMED_CAPTURES } from '../codegen/captures.ts';
import type { Matcher } from '../document/document.ts';
import { normalizedPath } from '../exchange/request-path.ts';
import { requestMatcher } from './matcher.ts';

interface PathRegexpMatcher extends Matcher {
	readonly type: 'path_regexp';
	readonly pattern: string;
	readonly name?: string;
}

const USAGE = 'path_regexp [<name>] <regexp>';

/** The `path_regexp` matcher. */
export const pathRegexp = requestMatcher<PathRegexpMatcher>({
	id: 'path_regexp',
	usage: USAGE,
	summary: 'Matches the path of the request by a regular expression.',
	documentation: [
		'The expression may match anywhere in the path, which is decoded and cleaned as for `path`; letter case counts',
		'unless the expression begins with `(?i)`. Captures are `{re.NAME.1}` or `{re.NAME.group}`, and `{re.1}` for the last',
		'expression that matched; the name is that of the named matcher if none is given.',
		'',
		"The syntax is RE2's: no lookaround, no backreferences. Expressions that could take exponential time are refused.",
		'',
		'```',
		'@post path_regexp post ^/posts/(\\d+)$',
		'```',
	].join('\n'),
	lower: (line, cx, matcherName) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 2, USAGE)) return undefined;
		const pattern = cx.regexp(args.at(-1)!);
		const given = args.length === 2 ? args[0]! : undefined;
		if (given && !/^\w+$/.test(given.text)) {
			const message = `invalid regexp name (must contain only word characters): ${given.text}`;
			cx.problem('error', 'regexp/invalid-name', given.span, message);
			return undefined;
		}
		if (pattern === undefined) return undefined;
		const name = given?.text ?? matcherName;
		return { type: 'path_regexp', pattern, ...(name === undefined ? {} : { name }) };
	},
	schema: {
		properties: {
			pattern: { type: 'string', description: 'Regular expression in the syntax of RE2.' },
			name: { type: 'string', pattern: '^[\\w-]+$', description: 'Name of its captures.' },
		},
		required: ['pattern'],
	},
	compile: (matcher, cx) => {
		const regexp = cx.regexp(matcher.pattern);
		const key = matcher.name === undefined ? '' : NAMED_CAPTURES + matcher.name;
		return x => {
			const match = regexp.exec(normalizedPath(x.request));
			if (!match) return false;
			keepCaptures(x, key, match);
			return true;
		};
	},
});
