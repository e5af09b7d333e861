/** The lint rule `upstream/unused`, which reports unused upstreams. The check is in the compiler. */
import type { LintRule } from '../inspection/lint-rule.ts';

export const upstreamUnused: LintRule = {
	name: 'upstream/unused',
	severity: 'warning',
	summary: 'A named upstream is never used.',
	documentation: 'Use it as `reverse_proxy upstream://NAME` or remove it.',
	checkedForConfigfile: true,
};
