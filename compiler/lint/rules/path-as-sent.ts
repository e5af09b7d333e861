/** `path/as-sent`. */
import { fullPlaceholderName } from '../../codegen/placeholders/shorthands.ts';
import { PLACEHOLDER_FUNCTION, placeholderCalls } from '../../modules/matchers/expression/placeholder-calls.ts';
import type { LintRule } from '../lint-rule.ts';
import { everyMatcher } from '../walk-document.ts';

/** The short names of placeholders that give the path, or what begins with it, as it was sent. */
const AS_SENT = ['path', 'uri', 'orig_path', 'orig_uri', '%path', '%uri'] as const;
const FULL_NAMES: ReadonlyMap<string, string> = new Map(AS_SENT.map(name => [fullPlaceholderName(name), name]));

/** A placeholder that is compared, with what it is compared with if that is a plain text. */
const CALL = `${PLACEHOLDER_FUNCTION}\\((\\d+)\\)`;
const COMPARED = new RegExp(
	`${CALL}\\s*(?:\\.\\s*(?:startsWith|endsWith|contains|matches|indexOf|substring|split|lowerAscii)\\s*\\(|==|!=|in\\b)\\s*(?:(["'])([^"'\\\\]*)\\2)?|(?:==|!=)\\s*${CALL}`,
	'g',
);

/** A decision compares the path as the client sent it, which can be written in many ways. */
export const pathAsSent: LintRule = {
	name: 'path/as-sent',
	severity: 'warning',
	summary: 'A decision compares the path as the client sent it, which can be written in many ways.',
	documentation: [
		'`{path}` is decoded, but otherwise the path as it was sent. A client that asks for `//admin`, `/./admin` or `/x/../admin`',
		"is not stopped by the expression `{path}.startsWith('/admin')`, though file servers and most upstreams answer these as",
		'`/admin`. The matchers `path` and `path_regexp`, also as functions of an expression, resolve dots, merge slashes and decode before',
		"they compare, and `path` ignores case: write `path('/admin', '/admin/*')`.",
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		for (const { matcher, pointer } of cx.walked.matchers) {
			for (const { matcher: inner, pointer: at } of everyMatcher(matcher, pointer)) {
				for (const { name, text, where } of comparisons(inner)) {
					const path = text?.startsWith('/') ? text : '/admin';
					cx.at(
						`${at}/${where}`,
						`\`{${name}}\` is the path as it was sent: \`/${path}\` and \`/x/..${path}\` are not \`${path}\`.`,
						{
							words: `{${name}}`,
							hint: 'Use the matcher `path` or `path_regexp`, also as a function of an expression: they compare the cleaned path.',
						},
					);
				}
			}
		}
	},
};

interface Comparison {
	/** Short name of the placeholder. */
	readonly name: string;
	readonly text: string | undefined;
	/** The member of the matcher that has it. */
	readonly where: string;
}

function comparisons(matcher: { readonly type: string; readonly [field: string]: unknown }): Comparison[] {
	switch (matcher.type) {
		case 'expression': {
			const { text, names } = placeholderCalls(matcher.expression as string);
			return [...text.matchAll(COMPARED)].flatMap(([, first, , literal, second]) => {
				const name = FULL_NAMES.get(names[Number(first ?? second)]!);
				return name === undefined ? [] : [{ name, text: literal, where: 'expression' }];
			});
		}
		case 'vars':
			return Object.entries(matcher.variables as { [key: string]: readonly string[] }).flatMap(([key, values]) => {
				const name = shortName(key);
				return name === undefined ? [] : [{ name, text: values[0], where: 'variables' }];
			});
		case 'vars_regexp': {
			const name = shortName(matcher.variable as string);
			return name === undefined ? [] : [{ name, text: undefined, where: 'variable' }];
		}
		default:
			return [];
	}
}

/** The short name of a variable that is one of those placeholders. */
function shortName(variable: string): string | undefined {
	const inner = /^\{([^{}]+)\}$/.exec(variable)?.[1];
	return inner === undefined ? undefined : FULL_NAMES.get(fullPlaceholderName(inner));
}
