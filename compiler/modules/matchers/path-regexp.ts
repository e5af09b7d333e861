/** `path_regexp`: matches the request path with a regular expression, with captures. */
import { regexpExamples } from '../../codegen/regexp/regexp-example.ts';
import { normalizedPath } from '../../exchange/request-path.ts';
import { requestMatcher } from '../contract/matcher.ts';
import {
	compileRegexpSearch,
	lowerRegexpArguments,
	ONCE_PER_SET_MESSAGE,
	REGEXP_PROPERTIES,
	type RegexpMatcher,
} from './regexp-matcher.ts';

const USAGE = 'path_regexp [<name>] <regexp>';

export const pathRegexp = requestMatcher<RegexpMatcher>({
	id: 'path_regexp',
	usage: USAGE,
	summary: 'Matches the request path with a regular expression.',
	documentation: [
		'The expression may match anywhere in the path, which is decoded and cleaned as for `path`. Case is significant',
		'unless the expression begins with `(?i)`. Captures are `{re.NAME.1}` or `{re.NAME.group}`, and `{re.1}` for the last',
		'expression that matched; the default name is that of the named matcher.',
		'',
		"The syntax is RE2's: no lookaround, no backreferences. Search time is proportional to the length of the path,",
		'whatever the path. An expression that is too large for that, for example because of nested repeat counts, is rejected.',
		'',
		'```',
		'@post path_regexp post ^/posts/(\\d+)$',
		'```',
	].join('\n'),
	dependsOn: 'path',
	probeChanges: ({ pattern }) =>
		regexpExamples(pattern).map(text => ({ path: text.startsWith('/') ? text : `/${text}` })),
	lower: (line, cx, matcherName) => {
		const loweredArguments = lowerRegexpArguments(line, cx, matcherName, 0, USAGE);
		return loweredArguments && { type: 'path_regexp', ...loweredArguments.fields };
	},
	conflict: () => ONCE_PER_SET_MESSAGE,
	schema: { properties: REGEXP_PROPERTIES, required: ['pattern'] },
	compile: (matcher, cx) => {
		const search = compileRegexpSearch(matcher, cx);
		return x => search(x, normalizedPath(x.request));
	},
});
