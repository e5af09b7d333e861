/** `when … else when … else`: runs the first branch whose matcher expression holds. */

import type { Matcher, Step } from '../../document/document.ts';
import { MATCHER_SCHEMA, PIPELINE_SCHEMA } from '../../document/references.ts';
import { requireBlock } from '../../lower/context/require-block.ts';
import type { Line } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

/** A branch: a pipeline, and the condition under which it runs; without a condition, it always runs. */
export interface WhenBranch {
	readonly when?: Matcher;
	readonly pipeline: readonly Step[];
}

interface FirstMatchStep extends Step {
	readonly handler: 'first_match';
	readonly branches: readonly WhenBranch[];
}

/** The directive `when`, and the handler `first_match`, to which it lowers. */
export const when = handlerDirective<FirstMatchStep>({
	kind: 'handler',
	id: 'first_match',
	observedFields: 'all',
	names: { configfile: ['when'], compatfile: [] },
	usage: 'when <expression> { … } [else when <expression> { … }] [else { … }]',
	summary: 'Runs the first branch whose matcher expression holds.',
	documentation: [
		'The first branch that holds runs, with its directives in the order written; the request then continues after the',
		'block unless a directive answered it. An expression consists of matchers, `@names`, `and`, `or`, `not` and',
		'parentheses, each a word of its own.',
		'',
		'```',
		'when @api and not method GET {',
		'	reverse_proxy 127.0.0.1:9000',
		'} else when path /health {',
		'	respond "ok"',
		'} else {',
		'	file_server',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'none',
	branches: step => step.branches.map((branch, index) => ({ ...branch, pointer: `/branches/${index}` })),
	isBlock: true,
	takesElse: true,
	lower: ({ line }, cx) => {
		const branches: WhenBranch[] = [];
		for (let branchLine: Line | undefined = line; branchLine; branchLine = branchLine.alternative) {
			const branch = lowerBranch(branchLine, branchLine === line, cx);
			if (branch) branches.push(branch);
		}
		const firstBranch = branches[0];
		if (branches.length === 1 && firstBranch?.when && !line.alternative) {
			return [{ handler: 'group', when: firstBranch.when, pipeline: firstBranch.pipeline }];
		}
		return branches.length === 0 ? undefined : { handler: 'first_match', branches };
	},
	schema: {
		properties: {
			branches: {
				type: 'array',
				description: 'The first branch whose `when` holds runs; one without `when` always holds.',
				items: {
					type: 'object',
					properties: { when: MATCHER_SCHEMA, pipeline: PIPELINE_SCHEMA, '@id': { type: 'string' } },
					required: ['pipeline'],
					additionalProperties: false,
				},
			},
		},
		required: ['branches'],
	},
	compile: (step, cx, next) => {
		const branches = step.branches.map(({ when, pipeline }, index) => ({
			when,
			predicate: when && cx.matcher(when, `branches/${index}/when`),
			handler: cx.pipeline(pipeline, next, `branches/${index}/pipeline`),
		}));
		return cx.firstBranch(branches, next);
	},
});

/** Returns a step that runs the first branch whose condition holds. */
export function firstMatchStep(branches: readonly WhenBranch[]): Step {
	return { handler: when.id, branches };
}

function lowerBranch(line: Line, isFirst: boolean, cx: LowerContext): WhenBranch | undefined {
	let words = line.words.slice(1);
	const isElse = !isFirst && words[0]?.text !== 'when';
	if (!isFirst && !isElse) words = words.slice(1);
	const block = requireBlock(line, cx);
	const pipeline = block ? cx.pipeline(block.lines) : [];
	if (isElse) {
		if (words[0]) {
			const message = `\`${words[0].text}\` is unexpected after \`else\`.`;
			cx.problem('error', 'when/unexpected-word', words[0].span, message, {
				hint: 'Write `else {` or `else when … {`.',
			});
		}
		if (line.alternative) {
			const { span } = line.alternative.words[0]!;
			cx.problem('error', 'when/after-else', span, 'Nothing can follow the last `else`.');
		}
		return cx.origin({ pipeline }, line.span);
	}
	if (words.length === 0) {
		const { span } = line.words[line.words.length - 1]!;
		cx.problem('error', 'when/missing-expression', span, '`when` needs a matcher expression.', {
			hint: `Usage: ${when.usage}`,
		});
		return undefined;
	}
	const matcher = cx.matcherExpression(words, undefined, undefined);
	return matcher && cx.origin({ when: matcher, pipeline }, line.span);
}
