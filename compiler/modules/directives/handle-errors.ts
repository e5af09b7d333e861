/** `handle_errors`: what a site answers instead of an error. */

import type { ErrorRoute } from '../../document/document.ts';
import { PIPELINE } from '../../document/references.ts';
import { requireBlock } from '../../lower/require-block.ts';
import type { SiteDirective } from './directive.ts';

/** Error routes of a site. */
export const handleErrors: SiteDirective = {
	kind: 'site',
	id: 'errors',
	names: { configfile: ['handle_errors'], compatfile: ['handle_errors'] },
	usage: 'handle_errors [<status> | <class>…] { … }',
	summary: 'Directives that answer errors of the site.',
	documentation: [
		'Runs when a directive failed or `error` was used. Statuses (`404`) and classes (`5xx`) limit it to those errors.',
		'A block that does not answer lets the next one that covers the error run. `{err.status_code}`,',
		'`{err.status_text}` and `{err.message}` tell what happened.',
		'',
		'```',
		'handle_errors 404 410 {',
		'	respond "There is nothing here."',
		'}',
		'```',
		'',
		'In a Configfile blocks are tried as written. In a Compatfile blocks with statuses come before those without, and',
		'among blocks of one kind the one written later is tried first.',
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
		const errors = (site.errors ?? []) as ErrorRoute[];
		site.errors = [...errors, cx.origin(route, line.span)];
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
					description: 'Statuses and classes (`5xx`); every error if left out.',
				},
				pipeline: PIPELINE,
				'@id': { type: 'string' },
			},
			required: ['pipeline'],
			additionalProperties: false,
		},
	},
};

/** The order in which Compatfile tries error blocks: those with statuses first, the later written one first. */
export function compatibleErrorOrder(errors: readonly ErrorRoute[]): ErrorRoute[] {
	const reversed = errors.toReversed();
	return [...reversed.filter(route => route.statuses), ...reversed.filter(route => !route.statuses)];
}
