/** The lint rule `branch/never-runs`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** Has no check of its own, because the compiler reports it for a Configfile, and `branch/covered` does so otherwise. */
export const branchNeverRuns: LintRule = {
	name: 'branch/never-runs',
	severity: 'warning',
	summary: 'A `handle` follows one that takes every request.',
	documentation: 'Of adjacent `handle` blocks, the first that matches runs. Put the one without a matcher last.',
	ofConfigfile: true,
};
