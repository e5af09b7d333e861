/**
 * The lint rule `branch/covered`, which reports a `handle` or `when` branch that never runs, because an earlier branch takes all
 * its requests.
 */

import type { StepBranch } from '../../modules/contract/traits.ts';
import { branchesOf } from '../inspection/answering.ts';
import { CoveringMatchers } from '../inspection/covering-matchers.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const branchCovered: LintRule = {
	name: 'branch/covered',
	severity: 'warning',
	summary: 'A `handle` or `when` branch matches only requests that an earlier branch takes.',
	documentation: [
		'Of adjacent branches, the first that matches runs. A branch whose requests are all taken by an earlier one,',
		'such as `/api/v1/*` after `/api/*`, never runs. Put the narrower one first.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		for (const { step, pointer } of cx.walkedDocument.steps) {
			const earlierBranches = new CoveringMatchers<StepBranch>();
			for (const branch of branchesOf(step)) {
				const earlierBranch = earlierBranches.firstCovering(branch.when);
				earlierBranches.add(branch.when, branch);
				if (!earlierBranch) continue;
				// In a Configfile, lines after a branch without a matcher are reported by `branch/never-runs`.
				if (earlierBranch.when === undefined && cx.dialect === 'configfile') continue;
				cx.reportAt(pointer + branch.pointer, 'This branch can never run: an earlier one takes all its requests.', {
					related: cx.relatedEntry(pointer + earlierBranch.pointer, 'takes them'),
					hint: 'Put the narrower branch first, or remove it.',
				});
			}
		}
	},
};
