/** `branch/never-runs`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** The compiler reports it for a Configfile; otherwise `branch/covered` does. */
export const branchNeverRuns: LintRule = {
	name: 'branch/never-runs',
	severity: 'warning',
	summary: 'A `handle` follows one that takes every request.',
	documentation: 'Of adjacent `handle` blocks, the first that matches runs. Put the one without a matcher last.',
	ofConfigfile: true,
};
