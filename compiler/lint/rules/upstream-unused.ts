/** `upstream/unused`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** The compiler reports it for a Configfile. */
export const upstreamUnused: LintRule = {
	name: 'upstream/unused',
	severity: 'warning',
	summary: 'A named upstream is never used.',
	documentation: 'Use it as `reverse_proxy upstream://NAME` or remove it.',
	ofConfigfile: true,
};
