/** `branch/covered`. */
import { branchesOf } from '../answering.ts';
import { covers } from '../coverage.ts';
import type { LintRule } from '../lint-rule.ts';

/** A `handle` or `when` branch is only for requests that an earlier branch takes. */
export const branchCovered: LintRule = {
	name: 'branch/covered',
	severity: 'warning',
	summary: 'A `handle` or `when` branch is only for requests that an earlier branch takes.',
	documentation: [
		'Of branches that stand next to each other the first that matches runs. One whose matcher is covered by an earlier one,',
		'such as `/api/v1/*` behind `/api/*`, never runs. Put the narrower one first.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		for (const { step, pointer } of cx.walked.steps) {
			const branches = branchesOf(step);
			branches.forEach((branch, index) => {
				const earlier = branches.findIndex((other, at) => at < index && covers(other.when, branch.when));
				if (earlier === -1) return;
				// What follows a branch without a matcher is told of by `branch/never-runs`.
				if (branches[earlier]!.when === undefined && cx.dialect === 'configfile') return;
				cx.at(pointer + branch.pointer, 'This branch can never run: an earlier one takes all its requests.', {
					related: cx.related(pointer + branches[earlier]!.pointer, 'takes them'),
					hint: 'Put the narrower branch first, or remove it.',
				});
			});
		}
	},
};
