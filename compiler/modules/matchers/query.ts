/** `query`: matches query parameters. */

import type { Matcher } from '../../document/document.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { parseQuery } from '../../exchange/uri-escape.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { UNMENTIONED_VALUE } from '../contract/request-change.ts';

interface QueryMatcher extends Matcher {
	readonly type: 'query';
	/** Accepted values by parameter name; `*` accepts any value. If this is empty, only requests without parameters match. */
	readonly parameters: { readonly [name: string]: readonly string[] };
}

const USAGE = 'query <name>=<value>…';

export const query = requestMatcher<QueryMatcher>({
	id: 'query',
	usage: USAGE,
	summary: 'Matches query parameters.',
	documentation: [
		'Every name must be present with one of its values; `name=*` matches any value. `query ""` matches requests',
		'without parameters. Names and values may contain placeholders. A query that cannot be decoded matches nothing.',
		'',
		'```',
		'@preview query preview=1 preview=yes',
		'```',
	].join('\n'),
	lower: (line, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		const isEmptyCompatfileLine = args.length === 0 && cx.dialect === 'compatfile';
		if (!isEmptyCompatfileLine && !cx.count(line, args, 1, Number.POSITIVE_INFINITY, USAGE)) return undefined;
		const parameters: { [name: string]: string[] } = {};
		if (isEmptyCompatfileLine || (args.length === 1 && args[0]!.text === '')) return { type: 'query', parameters };
		for (const word of args) {
			const argumentText = cx.template(word);
			const equalsIndex = argumentText.indexOf('=');
			if (equalsIndex === -1) {
				const message = `malformed query matcher token: ${word.text}; must be in param=val format`;
				cx.problem('error', 'query/malformed', word.span, message, { hint: `Write \`${word.text}=*\` for any value.` });
				continue;
			}
			const name = argumentText.slice(0, equalsIndex);
			if (!Object.hasOwn(parameters, name)) defineProperty(parameters, name, []);
			parameters[name]!.push(argumentText.slice(equalsIndex + 1));
		}
		return { type: 'query', parameters };
	},
	probeChanges: ({ parameters }) => [
		{ noQuery: true },
		...Object.entries(parameters).flatMap(([name, values]) =>
			[...values.map(value => (value === '*' ? UNMENTIONED_VALUE : value)), UNMENTIONED_VALUE, undefined].map(
				value => ({
					parameter: [name, value] as const,
				}),
			),
		),
	],
	merge: (a, b) => {
		const names = Object.keys(b.parameters);
		if (names.length === 0 || Object.keys(a.parameters).length === 0) return undefined;
		const parameters: { [name: string]: readonly string[] } = { ...a.parameters };
		for (const name of names) {
			const earlierValues = Object.hasOwn(parameters, name) ? parameters[name]! : [];
			defineProperty(parameters, name, [...earlierValues, ...b.parameters[name]!]);
		}
		return { type: 'query', parameters };
	},
	schema: {
		properties: {
			parameters: {
				type: 'object',
				additionalProperties: { type: 'array', secret: 'by-key', items: { type: 'string' } },
				description:
					'For each name the values of which one must be present; `*` is any. Empty: a request without parameters.',
			},
		},
		required: ['parameters'],
	},
	compile: compileQuery,
});

/** Sets a property, even if its name is `__proto__`, which is the name of a parameter like any other. */
function defineProperty<T>(object: { [name: string]: T }, name: string, value: T): void {
	Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function compileQuery(matcher: QueryMatcher, cx: CompileContext): Predicate {
	const names = Object.keys(matcher.parameters);
	if (names.length === 0) return x => parseQuery(x.request.query)?.size === 0;
	const rules = names.map(name => ({
		name: cx.template(name, 'empty'),
		any: matcher.parameters[name]!.includes('*'),
		values: matcher.parameters[name]!.map(value => cx.template(value, 'empty')),
	}));
	return x => {
		if (x.request.query === undefined) return false;
		const parameters = parseQuery(x.request.query);
		if (!parameters) return false;
		for (const rule of rules) {
			const sentValues = parameters.get(rule.name.render(x));
			if (!sentValues) return false;
			if (!rule.any && !rule.values.some(value => sentValues.includes(value.render(x)))) return false;
		}
		return true;
	};
}
