/** `method`: matches the request method. */
import type { Matcher } from '../../document/document.ts';
import { isToken } from '../../exchange/field-syntax.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { matcherArguments, mergeDistinct, stringListSchema } from './words.ts';

interface MethodMatcher extends Matcher {
	readonly type: 'method';
	readonly methods: readonly string[];
}

const USAGE = 'method <method>…';

/** Methods among which `svc diff` looks for one that a matcher does not list, to probe a request that does not match. */
const COMMON_METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND', 'SVC-DIFF'];

export const method = requestMatcher<MethodMatcher>({
	id: 'method',
	usage: USAGE,
	summary: 'Matches the request method.',
	documentation: [
		'Any of the methods may match. They may be written in any case; their upper-case form is compared with the method as sent.',
		'',
		'```',
		'@write method POST PUT PATCH DELETE',
		'```',
	].join('\n'),
	listedValues: { field: 'methods', kind: 'method' },
	probeChanges: ({ methods }) => {
		const otherMethod = COMMON_METHODS.find(method => !methods.includes(method))!;
		return [...methods, otherMethod].map(method => ({ method }));
	},
	valuesOptional: true,
	lower: (line, cx) => {
		const args = matcherArguments(line, cx, USAGE);
		if (!args) return undefined;
		for (const { text, span } of args) {
			if (!isToken(text)) cx.problem('error', 'method/invalid', span, `\`${text}\` is not a method.`);
		}
		return { type: 'method', methods: args.map(word => word.text.toUpperCase()) };
	},
	merge: (a, b) => ({ type: 'method', methods: mergeDistinct(a.methods, b.methods) }),
	schema: stringListSchema('methods', 'Methods, any of which may match.'),
	compile: matcher => {
		const methods = matcher.methods.map(name => name.toUpperCase());
		if (methods.length === 1) {
			const onlyMethod = methods[0]!;
			return x => x.request.method === onlyMethod;
		}
		return x => methods.includes(x.request.method);
	},
});
