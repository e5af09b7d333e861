/** The lint rule `upstream/unused`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports unused upstreams. The check is in the compiler. */
export const upstreamUnused: LintRule = {
	name: 'upstream/unused',
	severity: 'warning',
	summary: 'A named upstream is never used.',
	documentation: 'Use it as `reverse_proxy upstream://NAME` or remove it.',
	checkedForConfigfile: true,
};
