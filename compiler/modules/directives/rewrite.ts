/**
 * `rewrite`: changes the request's path and query. Also defines the handler `rewrite_target`, to which `rewrite` and `uri` lower.
 */

import type { Step } from '../../document/document.ts';
import type { Schema } from '../../document/schema-type.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import { compileRewriteTo, type UriEdit } from './rewrite-to.ts';
import { soleArgument } from './sole-argument.ts';
import {
	compilePathRegexpReplace,
	compileQueryEdits,
	compileStripPrefix,
	compileStripSuffix,
	compileUriReplace,
	type QueryEdits,
	type UriRegexpReplace,
	type UriReplace,
} from './uri-edits.ts';

/** A step that edits the request's target. The edits are made in the order of the fields. */
export interface RewriteTargetStep extends Step {
	readonly handler: 'rewrite_target';
	readonly to?: string;
	readonly strip_prefix?: string;
	readonly strip_suffix?: string;
	readonly replace?: readonly UriReplace[];
	readonly path_regexp?: readonly UriRegexpReplace[];
	readonly query?: QueryEdits;
}

const USAGE = 'rewrite [matcher] <to>';

const TEXT_SCHEMA: Schema = { type: 'string' };

function objectListSchema(
	properties: { readonly [name: string]: Schema },
	required: readonly string[],
	description: string,
): Schema {
	return { type: 'array', items: { type: 'object', properties, required, additionalProperties: false }, description };
}

const PARAMETER_NAME_SCHEMA: Schema = { type: 'string', description: 'Name of the parameter.' };
const FIND_SCHEMA: Schema = { type: 'string', description: 'Text to find.' };
const REPLACEMENT_SCHEMA: Schema = { type: 'string', description: 'Replacement text.' };
const NAME_VALUE_PROPERTIES = {
	name: PARAMETER_NAME_SCHEMA,
	value: { type: 'string', secret: 'by-variable', description: 'Its value, with placeholders.' },
};

/** Syntax: `rewrite [matcher] <to>`. */
export const rewrite = handlerDirective<RewriteTargetStep>({
	kind: 'handler',
	id: 'rewrite_target',
	observedFields: 'all',
	names: { configfile: ['rewrite'], compatfile: ['rewrite'] },
	usage: USAGE,
	summary: 'Changes the path and the query of the request.',
	documentation: [
		'Only the components in the target change: `/x` keeps the query, `?a=b` keeps the path, `/x?` clears the query. The',
		'client does not notice. A path without a slash at its beginning gets one. Placeholders read the original request; in the',
		'query their values are encoded, except that `{query}` is inserted verbatim. A single argument is always the target; of two,',
		'the first is the matcher.',
		'',
		'```',
		'rewrite /old/* /new{path}',
		'rewrite /index.php?{query}&path={path}',
		'```',
	].join('\n'),
	matcherToken: 'with-more-arguments',
	exclusive: 'apart',
	changesTarget: true,
	rewritesTo: ({ to }) => to,
	order: { rank: 150 },
	lower: (directive, cx) => {
		const targetWord = soleArgument(directive, cx, USAGE, 'URI');
		if (!targetWord) return undefined;
		const { line } = directive;
		return cx.origin<RewriteTargetStep>({ handler: 'rewrite_target', to: cx.template(targetWord) }, line.span);
	},
	schema: {
		properties: {
			to: { type: 'string', secret: 'url', description: 'New path, query or both, with placeholders.' },
			strip_prefix: { type: 'string', description: 'Prefix to remove from the path.' },
			strip_suffix: { type: 'string', description: 'Suffix to remove from the path.' },
			replace: objectListSchema(
				{
					find: FIND_SCHEMA,
					replace: REPLACEMENT_SCHEMA,
					limit: { type: 'integer', description: 'Maximum number of replacements; 0 or absent means no limit.' },
				},
				['find', 'replace'],
				'Text replacements in path and query.',
			),
			path_regexp: objectListSchema(
				{ find: FIND_SCHEMA, replace: REPLACEMENT_SCHEMA },
				['find', 'replace'],
				'Regular expression replacements in the escaped path.',
			),
			query: {
				type: 'object',
				properties: {
					rename: objectListSchema(
						{ from: PARAMETER_NAME_SCHEMA, to: { type: 'string', description: 'The new name.' } },
						['from', 'to'],
						'Parameters to rename.',
					),
					set: objectListSchema(
						NAME_VALUE_PROPERTIES,
						['name', 'value'],
						'Parameters to set, replacing those of the same name.',
					),
					add: objectListSchema(NAME_VALUE_PROPERTIES, ['name', 'value'], 'Parameters to add.'),
					replace: objectListSchema(
						{
							name: PARAMETER_NAME_SCHEMA,
							find: { ...FIND_SCHEMA, secret: 'by-variable' },
							replace: { ...REPLACEMENT_SCHEMA, secret: 'by-variable' },
						},
						['name', 'find', 'replace'],
						'Regular expression replacements in the values of a parameter, or of all if the name is `*`.',
					),
					delete: { type: 'array', items: TEXT_SCHEMA, description: 'Parameters to remove.' },
				},
				additionalProperties: false,
				description: 'Edits of the query, made in this order.',
			},
		},
	},
	compile: compileRewriteTarget,
});

function compileRewriteTarget(step: RewriteTargetStep, cx: CompileContext, next: Handler): Handler {
	const edits: UriEdit[] = [];
	if (step.to !== undefined) edits.push(compileRewriteTo(step.to, cx));
	if (step.strip_prefix !== undefined) edits.push(compileStripPrefix(step.strip_prefix, cx));
	if (step.strip_suffix !== undefined) edits.push(compileStripSuffix(step.strip_suffix, cx));
	for (const edit of step.replace ?? []) edits.push(compileUriReplace(edit, cx));
	for (const edit of step.path_regexp ?? []) edits.push(compilePathRegexpReplace(edit, cx));
	if (step.query) edits.push(compileQueryEdits(step.query, cx));
	if (edits.length === 1) {
		const edit = edits[0]!;
		return x => {
			edit(x);
			return next(x);
		};
	}
	return x => {
		for (let i = 0; i < edits.length; i++) edits[i]!(x);
		return next(x);
	};
}
