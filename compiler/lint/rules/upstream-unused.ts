/** `upstream/unused`. */
import type { LintRule } from '../lint-rule.ts';

/** Compiling a Configfile finds it. */
export const upstreamUnused: LintRule = {
	name: 'upstream/unused',
	severity: 'warning',
	summary: 'A named upstream is never used.',
	documentation: 'Use it as `reverse_proxy upstream://NAME` or remove it.',
	ofConfigfile: true,
};
