/** `header`: matches a request field. */
import type { Matcher } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { sampleTexts } from '../contract/request-change.ts';
import {
	compileHeaderRule,
	HEADER_RULE_PROPERTIES,
	type HeaderRule,
	lowerHeaderRule,
	mergeHeaderRules,
} from './header-rule.ts';

interface HeaderMatcher extends Matcher, HeaderRule {
	readonly type: 'header';
	readonly name: string;
}

export const header = requestMatcher<HeaderMatcher>({
	id: 'header',
	usage: 'header <field> <value> | !<field>',
	summary: 'Matches a request field.',
	documentation: [
		"`header FIELD VALUE` holds if one of the field's values equals VALUE, case-sensitively; a `*` at the",
		'beginning or the end of VALUE is a wildcard. `header FIELD *` holds if the field is present, `header !FIELD` if it',
		'is absent. In a block, several lines for the same field are alternatives, lines for different fields must all hold.',
		'`Host` is the host as the client sent it.',
		'',
		'```',
		'@websocket {',
		'	header Connection *Upgrade*',
		'	header Upgrade websocket',
		'}',
		'```',
	].join('\n'),
	probeChanges: ({ name, values = ['a'] }) =>
		[...values.flatMap(sampleTexts), undefined].map(value => ({ header: [name, value] as const })),
	wordsOf: ({ name, values = ['*'], absent }) => (absent === true ? [`!${name}`] : [name, ...values]),
	lower: (line, cx) => {
		const rule = lowerHeaderRule(line, cx);
		return rule && { type: 'header', ...rule };
	},
	merge: (a, b) => {
		const rule = mergeHeaderRules(a, b);
		return rule && { type: 'header', ...rule };
	},
	schema: { properties: HEADER_RULE_PROPERTIES, required: ['name'] },
	compile: (matcher, cx) => {
		const lowerName = matcher.name.toLowerCase();
		const valuesOf =
			lowerName === 'host'
				? (x: Exchange) => (x.request.authority === '' ? [] : [x.request.authority])
				: (x: Exchange) => x.request.headers.getAll(lowerName);
		return compileHeaderRule(matcher, cx, valuesOf);
	},
});
