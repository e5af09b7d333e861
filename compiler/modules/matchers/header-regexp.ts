/** `header_regexp`: matches a request field with a regular expression, with captures. */
import { regexpExamples } from '../../codegen/regexp/regexp-example.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { decodeFieldText, isToken } from '../../exchange/field-syntax.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { UNMENTIONED_VALUE } from '../contract/request-change.ts';
import {
	compileRegexpSearch,
	lowerRegexpArguments,
	ONCE_PER_SET_MESSAGE,
	REGEXP_PROPERTIES,
	type RegexpMatcher,
} from './regexp-matcher.ts';

interface HeaderRegexpMatcher extends RegexpMatcher {
	readonly type: 'header_regexp';
	readonly field: string;
}

const USAGE = 'header_regexp [<name>] <field> <regexp>';

export const headerRegexp = requestMatcher<HeaderRegexpMatcher>({
	id: 'header_regexp',
	usage: USAGE,
	summary: 'Matches a request field with a regular expression.',
	documentation: [
		`Holds if one of the field's values matches; the expression may match anywhere in it. Captures are those of`,
		'the first such value, named as for `path_regexp`. In a block, every field may have one expression, and all must hold.',
		'`Host` is the host as the client sent it.',
		'',
		'```',
		'@session header_regexp session Cookie session=([a-z0-9]+)',
		'```',
	].join('\n'),
	lower: (line, cx, matcherName) => {
		const loweredArguments = lowerRegexpArguments(line, cx, matcherName, 1, USAGE);
		if (!loweredArguments) return undefined;
		const { subject, fields } = loweredArguments;
		if (isToken(subject.text)) return { type: 'header_regexp', field: subject.text, ...fields };
		cx.problem('error', 'header/malformed', subject.span, `\`${subject.text}\` is not a field name.`);
		return undefined;
	},
	probeChanges: ({ field, pattern }) =>
		[...regexpExamples(pattern), UNMENTIONED_VALUE, undefined].map(value => ({ header: [field, value] as const })),
	conflict: (a, b) => (a.field.toLowerCase() === b.field.toLowerCase() ? ONCE_PER_SET_MESSAGE : undefined),
	schema: {
		properties: {
			field: { type: 'string', minLength: 1, description: 'Name of the field.' },
			...REGEXP_PROPERTIES,
			pattern: { ...REGEXP_PROPERTIES.pattern, secret: 'by-field' },
		},
		required: ['field', 'pattern'],
	},
	compile: (matcher, cx) => {
		const search = compileRegexpSearch(matcher, cx);
		const lowerName = matcher.field.toLowerCase();
		if (lowerName === 'host') return x => search(x, x.request.authority);
		return (x: Exchange) => {
			for (const value of x.request.headers.getAll(lowerName)) if (search(x, decodeFieldText(value))) return true;
			return false;
		};
	},
});
