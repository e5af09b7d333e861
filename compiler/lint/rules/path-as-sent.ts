/**
 * The lint rule `path/as-sent`, which reports conditions that compare the path as the client sent it, because a client can write
 * the same path in many ways.
 */
import { fullPlaceholderName } from '../../codegen/placeholders/shorthands.ts';
import { MATCHERS_BY_TYPE } from '../../modules/registry/matchers.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { matchersIn } from '../inspection/walk-document.ts';

/** Short names of placeholders whose value is the path as the client sent it, or begins with this path. */
const SENT_PATH_NAMES = ['path', 'uri', 'orig_path', 'orig_uri', '%path', '%uri'] as const;
const SENT_PATH_BY_FULL_NAME: ReadonlyMap<string, string> = new Map(
	SENT_PATH_NAMES.map(name => [fullPlaceholderName(name), name]),
);

export const pathAsSent: LintRule = {
	name: 'path/as-sent',
	severity: 'warning',
	summary: 'A decision compares the path as the client sent it, although one path can be written in many ways.',
	documentation: [
		'`{path}` is decoded, but otherwise the path as it was sent. A client that requests `//admin`, `/./admin` or `/x/../admin`',
		"slips past the expression `{path}.startsWith('/admin')`, although file servers and most upstreams treat these as",
		'`/admin`. The matchers `path` and `path_regexp`, also as functions in an expression, resolve dots, merge slashes and decode before',
		"comparing, and `path` ignores case: write `path('/admin', '/admin/*')`.",
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		for (const { matcher, pointer } of matchersIn(cx.walkedDocument)) {
			const compared = MATCHERS_BY_TYPE.get(matcher.type)?.comparedPlaceholders?.(matcher) ?? [];
			for (const { name: fullName, text, field } of compared) {
				const name = SENT_PATH_BY_FULL_NAME.get(fullName);
				if (name === undefined) continue;
				const path = text?.startsWith('/') ? text : '/admin';
				cx.reportAt(
					`${pointer}/${field}`,
					`\`{${name}}\` is the path as it was sent: \`/${path}\` and \`/x/..${path}\` are not \`${path}\`.`,
					{
						words: `{${name}}`,
						hint: 'Use the matcher `path` or `path_regexp`, or their functions in an expression: they compare the cleaned path.',
					},
				);
			}
		}
	},
};
