/** The lint rule `let/unused`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports unused constants. The check is in the compiler. */
export const letUnused: LintRule = {
	name: 'let/unused',
	severity: 'warning',
	summary: 'A constant is never used.',
	documentation: 'Use it as `{let.NAME}` or remove it.',
	checkedForConfigfile: true,
};
