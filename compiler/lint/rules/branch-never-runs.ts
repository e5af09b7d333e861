/** `branch/never-runs`. */
import type { LintRule } from '../lint-rule.ts';

/** Compiling a Configfile finds it; elsewhere `branch/covered` does. */
export const branchNeverRuns: LintRule = {
	name: 'branch/never-runs',
	severity: 'warning',
	summary: 'A `handle` stands behind one that takes every request.',
	documentation:
		'Of `handle` blocks that stand next to each other the first that matches runs. Put the one without a matcher last.',
	ofConfigfile: true,
};
