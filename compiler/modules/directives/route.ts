/** `route`: a group of directives that run in the order in which they are written, in both languages. */

import type { Step } from '../../document/document.ts';
import { PIPELINE_SCHEMA } from '../../document/references.ts';
import { requireBlock } from '../../lower/context/require-block.ts';
import { handlerDirective } from '../contract/directive.ts';

interface GroupStep extends Step {
	readonly handler: 'group';
	readonly pipeline: readonly Step[];
}

/** The directive `route` and the handler `group`, to which it lowers. */
export const route = handlerDirective<GroupStep>({
	kind: 'handler',
	id: 'group',
	observedFields: 'all',
	names: { configfile: ['route'], compatfile: ['route'] },
	usage: 'route [matcher] { … }',
	summary: 'Runs a group of directives in the order written.',
	documentation: [
		'Groups directives under one matcher. Inside, directives run in the order in which they are written, even in a',
		'Compatfile, where everything outside a `route` is sorted.',
		'',
		'```',
		'route /admin/* {',
		'	header Cache-Control no-store',
		'	reverse_proxy 127.0.0.1:9000',
		'}',
		'```',
		'',
		'In the document it is the handler `group` with a `pipeline`; a single `handle` becomes the same handler.',
	].join('\n'),
	matcherToken: 'optional',
	branches: ({ pipeline }) => [{ pipeline, pointer: '' }],
	isBlock: true,
	order: { rank: 280 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, route.usage);
		const block = requireBlock(line, cx);
		return block && (groupStep(cx.pipelineInOrder(block.lines)) as GroupStep);
	},
	schema: { properties: { pipeline: PIPELINE_SCHEMA }, required: ['pipeline'] },
	compile: (step, cx, next) => cx.pipeline(step.pipeline, next, 'pipeline'),
});

/** Returns a step that runs a pipeline of its own and then continues with the next step. */
export function groupStep(pipeline: readonly Step[]): Step {
	return { handler: route.id, pipeline };
}
