/** The lint rule `branch/covered`. */
import { branchesOf } from '../inspection/answering.ts';
import { coversMatcher } from '../inspection/coverage.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a `handle` or `when` branch that never runs, because an earlier branch takes all its requests. */
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
			const branches = branchesOf(step);
			branches.forEach((branch, index) => {
				const earlierIndex = branches.findIndex(
					(earlierBranch, at) => at < index && coversMatcher(earlierBranch.when, branch.when),
				);
				if (earlierIndex === -1) return;
				// In a Configfile, lines after a branch without a matcher are reported by `branch/never-runs`.
				if (branches[earlierIndex]!.when === undefined && cx.dialect === 'configfile') return;
				cx.reportAt(pointer + branch.pointer, 'This branch can never run: an earlier one takes all its requests.', {
					related: cx.relatedEntry(pointer + branches[earlierIndex]!.pointer, 'takes them'),
					hint: 'Put the narrower branch first, or remove it.',
				});
			});
		}
	},
};
