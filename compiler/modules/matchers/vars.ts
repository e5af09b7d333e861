/** `vars` and `vars_regexp`: match request variables or placeholders, by exact value and by regular expression. */

import { placeholderText } from '../../codegen/placeholders/placeholder.ts';
import { fullPlaceholderName } from '../../codegen/placeholders/shorthands.ts';
import { regexpExamples } from '../../codegen/regexp/regexp-example.ts';
import type { Matcher } from '../../document/document.ts';
import { CLIENT_IP_VARIABLE } from '../../exchange/client-ip.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { requestMatcher } from '../contract/matcher.ts';
import { changeSettingPlaceholder, type RequestChange, UNMENTIONED_VALUE } from '../contract/request-change.ts';
import {
	compileRegexpSearch,
	lowerRegexpArguments,
	ONCE_PER_SET_MESSAGE,
	REGEXP_PROPERTIES,
	type RegexpMatcher,
} from './regexp-matcher.ts';

interface VarsMatcher extends Matcher {
	readonly type: 'vars';
	/** Accepted values by the name of a variable or the placeholder in braces. */
	readonly variables: { readonly [key: string]: readonly string[] };
}

interface VarsRegexpMatcher extends RegexpMatcher {
	readonly type: 'vars_regexp';
	readonly variable: string;
}

const VARS_USAGE = 'vars <variable> <value>…';
const REGEXP_USAGE = 'vars_regexp [<name>] <variable> <regexp>';

const KEY_DOCUMENTATION = [
	'A variable has the name given by `vars`; a name that consists of a single placeholder, such as `{http.request.host}`, means',
	'the value of that placeholder. An unset variable is empty. Values are data: placeholders in them',
	'are not expanded again.',
];

export const varsMatcher = requestMatcher<VarsMatcher>({
	id: 'vars',
	usage: VARS_USAGE,
	summary: 'Matches a request variable.',
	documentation: [
		'Holds if the variable equals one of the values, which may contain placeholders. Several lines are alternatives.',
		...KEY_DOCUMENTATION,
		'',
		'```',
		'@gold vars tier gold platinum',
		'```',
	].join('\n'),
	comparedPlaceholders: ({ variables }) =>
		Object.entries(variables).flatMap(([key, [text]]) => {
			const placeholderName = placeholderOf(key);
			return placeholderName === undefined ? [] : [{ name: placeholderName, text, field: 'variables' }];
		}),
	probeChanges: ({ variables }) => Object.entries(variables).flatMap(([key, values]) => changesOf(key, values)),
	lower: (line, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 2, Number.POSITIVE_INFINITY, VARS_USAGE)) return undefined;
		const variables = {};
		defineProperty(
			variables,
			cx.template(args[0]!),
			args.slice(1).map(word => cx.template(word)),
		);
		return { type: 'vars', variables };
	},
	merge: (a, b) => {
		const variables: { [key: string]: readonly string[] } = { ...a.variables };
		for (const [key, values] of Object.entries(b.variables)) {
			defineProperty(variables, key, [...(Object.hasOwn(variables, key) ? variables[key]! : []), ...values]);
		}
		return { type: 'vars', variables };
	},
	schema: {
		properties: {
			variables: {
				type: 'object',
				additionalProperties: { type: 'array', secret: 'by-key', items: { type: 'string' } },
				description: 'For each variable (or placeholder in braces), the values that it may have; any may match.',
			},
		},
		required: ['variables'],
	},
	compile: (matcher, cx) => {
		const variableRules = Object.entries(matcher.variables).map(([key, values]) => ({
			read: compileVariable(key, cx),
			values: values.map(value => cx.template(value, 'empty')),
		}));
		return x => {
			for (const { read, values } of variableRules) {
				const variableText = read(x);
				for (const value of values) if ((value.constant ?? value.render(x)) === variableText) return true;
			}
			return false;
		};
	},
});

export const varsRegexp = requestMatcher<VarsRegexpMatcher>({
	id: 'vars_regexp',
	usage: REGEXP_USAGE,
	summary: 'Matches a request variable with a regular expression.',
	documentation: [
		'The expression may match anywhere in the value; captures are named as for `path_regexp`.',
		...KEY_DOCUMENTATION,
		'',
		'```',
		'@versioned vars_regexp v {http.request.uri.path.0} ^v(\\d+)$',
		'```',
	].join('\n'),
	comparedPlaceholders: ({ variable }) => {
		const placeholderName = placeholderOf(variable);
		return placeholderName === undefined ? [] : [{ name: placeholderName, text: undefined, field: 'variable' }];
	},
	probeChanges: ({ variable, pattern }) => changesOf(variable, regexpExamples(pattern)),
	lower: (line, cx, matcherName) => {
		const loweredArguments = lowerRegexpArguments(line, cx, matcherName, 1, REGEXP_USAGE);
		return (
			loweredArguments && {
				type: 'vars_regexp',
				variable: cx.template(loweredArguments.subject),
				...loweredArguments.fields,
			}
		);
	},
	conflict: (a, b) => (a.variable === b.variable ? ONCE_PER_SET_MESSAGE : undefined),
	schema: {
		properties: {
			variable: { type: 'string', minLength: 1, description: 'Variable, or placeholder in braces.' },
			...REGEXP_PROPERTIES,
			pattern: { ...REGEXP_PROPERTIES.pattern, secret: 'by-field' },
		},
		required: ['variable', 'pattern'],
	},
	compile: (matcher, cx) => {
		const env = compileVariable(matcher.variable, cx);
		const search = compileRegexpSearch(matcher, cx);
		return x => search(x, env(x));
	},
});

/**
 * Returns changes to a request that give a placeholder each of `values`, and another value. Returns no changes if `key` is not
 * a placeholder.
 */
function changesOf(key: string, values: readonly string[]): RequestChange[] {
	const placeholderName = placeholderOf(key);
	if (placeholderName === undefined) return [];
	return [...values, UNMENTIONED_VALUE].flatMap(value => changeSettingPlaceholder(placeholderName, value) ?? []);
}

/** Returns the full name of the placeholder if a key consists of a single placeholder; otherwise undefined. */
function placeholderOf(key: string): string | undefined {
	const placeholderName = /^\{([^{}]+)\}$/.exec(key)?.[1];
	return placeholderName === undefined ? undefined : fullPlaceholderName(placeholderName);
}

/**
 * Compiles a key to a function that returns a request's value for it: if the key consists of a single placeholder, the value of the
 * placeholder; otherwise, the value of the variable with this name.
 */
function compileVariable(key: string, cx: CompileContext): (x: Exchange) => string {
	if (key.startsWith('{') && key.indexOf('}') === key.length - 1) {
		const template = cx.template(key, 'empty');
		return x => template.constant ?? template.render(x);
	}
	if (key === CLIENT_IP_VARIABLE) return cx.clientIp;
	return x => placeholderText(x.variable(key));
}

/** Sets a property, even if its name is `__proto__`, which is the name of a variable like any other. */
function defineProperty(object: { [key: string]: readonly string[] }, key: string, value: readonly string[]): void {
	Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}
