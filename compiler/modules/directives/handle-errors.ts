/** `handle_errors`: a site's responses to errors. */

import type { ErrorRoute } from '../../document/document.ts';
import { PIPELINE_SCHEMA } from '../../document/references.ts';
import { requireBlock } from '../../lower/context/require-block.ts';
import type { SiteDirective } from '../contract/directive.ts';

/** The directive for the error routes of a site. */
export const handleErrors: SiteDirective = {
	kind: 'site',
	id: 'errors',
	names: { configfile: ['handle_errors'], compatfile: ['handle_errors'] },
	usage: 'handle_errors [<status> | <class>…] { … }',
	summary: `Runs directives to answer the site's errors.`,
	documentation: [
		'Runs when a directive failed or `error` was used. Statuses (`404`) and classes (`5xx`) limit it to those errors.',
		'If a block does not answer, the next one that covers the error runs. `{err.status_code}`,',
		'`{err.status_text}` and `{err.message}` describe the error.',
		'',
		'```',
		'handle_errors 404 410 {',
		'	respond "There is nothing here."',
		'}',
		'```',
		'',
		'In a Configfile, blocks are tried in the order written. In a Compatfile, blocks with statuses come before those without, and',
		'among blocks of the same kind, the last one is tried first.',
	].join('\n'),
	isBlock: true,
	lower: ({ line, args }, site, cx) => {
		const block = requireBlock(line, cx);
		const statuses: string[] = [];
		for (const word of args) {
			const text = word.text.toLowerCase();
			if (/^[1-5](\d\d|xx)$/.test(text)) statuses.push(text);
			else {
				const message =
					cx.dialect === 'configfile'
						? `\`${word.text}\` is neither a status nor a class of statuses.`
						: `bad status value '${word.text}'`;
				cx.problem('error', 'handle-errors/bad-status', word.span, message, {
					hint: 'Write a status such as 404 or a class such as 5xx.',
				});
			}
		}
		const pipeline = block ? cx.pipeline(block.lines) : [];
		const route: ErrorRoute = statuses.length > 0 ? { statuses, pipeline } : { pipeline };
		const earlierRoutes = (site.errors ?? []) as ErrorRoute[];
		site.errors = [...earlierRoutes, cx.origin(route, line.span)];
	},
	schema: {
		type: 'array',
		description: 'Tried in this order; the first that covers the error and answers ends it.',
		items: {
			type: 'object',
			properties: {
				statuses: {
					type: 'array',
					items: { type: 'string', pattern: '^[1-5](\\d\\d|xx)$' },
					minItems: 1,
					description: 'Statuses and classes (`5xx`); default every error.',
				},
				pipeline: PIPELINE_SCHEMA,
				'@id': { type: 'string' },
			},
			required: ['pipeline'],
			additionalProperties: false,
		},
	},
};

/** Returns the order in which a Compatfile tries error blocks: blocks with statuses before others, then later blocks first. */
export function sortCompatfileErrors(errors: readonly ErrorRoute[]): ErrorRoute[] {
	const reversedErrors = errors.toReversed();
	return [...reversedErrors.filter(route => route.statuses), ...reversedErrors.filter(route => !route.statuses)];
}
