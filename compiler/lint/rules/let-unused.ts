/** The lint rule `let/unused`, which reports unused constants. The check is in the compiler. */
import type { LintRule } from '../inspection/lint-rule.ts';

export const letUnused: LintRule = {
	name: 'let/unused',
	severity: 'warning',
	summary: 'A constant is never used.',
	documentation: 'Use it as `{let.NAME}` or remove it.',
	checkedForConfigfile: true,
};
