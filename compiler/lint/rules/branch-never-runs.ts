/**
 * The lint rule `branch/never-runs`, which reports nothing itself: the compiler reports branches that never run in a Configfile,
 * and the rule `branch/covered` reports them in other formats.
 */
import type { LintRule } from '../inspection/lint-rule.ts';

export const branchNeverRuns: LintRule = {
	name: 'branch/never-runs',
	severity: 'warning',
	summary: 'A `handle` follows one that takes every request.',
	documentation: 'Of adjacent `handle` blocks, the first that matches runs. Put the one without a matcher last.',
	checkedForConfigfile: true,
};
