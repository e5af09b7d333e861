/** `rewrite`, and the handler `rewrite_target` that it and `uri` lower to: changes the request's path and query. */
import type { CompileContext } from '../../codegen/compile-context.ts';
import type { Step } from '../../document/document.ts';
import type { Handler } from '../../exchange/handler.ts';
import { handlerDirective, type Schema } from './directive.ts';
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

/** Edits of the request's target, made in the order of the fields. */
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

const TEXT: Schema = { type: 'string' };

function list(
	properties: { readonly [name: string]: Schema },
	required: readonly string[],
	description: string,
): Schema {
	return { type: 'array', items: { type: 'object', properties, required, additionalProperties: false }, description };
}

const NAME: Schema = { type: 'string', description: 'Name of the parameter.' };
const FIND: Schema = { type: 'string', description: 'What is looked for.' };
const REPLACE: Schema = { type: 'string', description: 'What is put in its place.' };
const NAME_VALUE = {
	name: NAME,
	value: { type: 'string', secret: 'by-variable', description: 'Its value, with placeholders.' },
};

/** `rewrite [matcher] <to>`. */
export const rewrite = handlerDirective<RewriteTargetStep>({
	kind: 'handler',
	id: 'rewrite_target',
	names: { configfile: ['rewrite'], compatfile: ['rewrite'] },
	usage: USAGE,
	summary: 'Changes the path and the query of the request.',
	documentation: [
		'Only the parts that the target holds change: `/x` keeps the query, `?a=b` keeps the path, `/x?` clears the query. The',
		'client sees nothing of it. Placeholders read the request as it was; in the query their values are encoded, except that',
		'`{query}` goes in as it is. A single argument is always the target; with two the first is the matcher.',
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
		const to = soleArgument(directive, cx, USAGE, 'URI');
		if (!to) return undefined;
		const { line } = directive;
		return cx.origin<RewriteTargetStep>({ handler: 'rewrite_target', to: cx.template(to) }, line.span);
	},
	schema: {
		properties: {
			to: { type: 'string', secret: 'url', description: 'New path, query or both, with placeholders.' },
			strip_prefix: { type: 'string', description: 'Taken off the beginning of the path.' },
			strip_suffix: { type: 'string', description: 'Taken off the end of the path.' },
			replace: list(
				{
					find: FIND,
					replace: REPLACE,
					limit: { type: 'integer', description: 'How often at most; 0 or nothing is without bound.' },
				},
				['find', 'replace'],
				'Text replaced in path and query.',
			),
			path_regexp: list(
				{ find: FIND, replace: REPLACE },
				['find', 'replace'],
				'Regular expressions replaced in the escaped path.',
			),
			query: {
				type: 'object',
				properties: {
					rename: list(
						{ from: NAME, to: { type: 'string', description: 'The new name.' } },
						['from', 'to'],
						'Parameters that get another name.',
					),
					set: list(NAME_VALUE, ['name', 'value'], 'Parameters that replace those of the same name.'),
					add: list(NAME_VALUE, ['name', 'value'], 'Parameters that are added.'),
					replace: list(
						{ name: NAME, find: { ...FIND, secret: 'by-variable' }, replace: { ...REPLACE, secret: 'by-variable' } },
						['name', 'find', 'replace'],
						'Regular expressions replaced in the values of a parameter, of all if the name is `*`.',
					),
					delete: { type: 'array', items: TEXT, description: 'Parameters that are removed.' },
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
