/** `let/unused`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** The compiler reports it for a Configfile. */
export const letUnused: LintRule = {
	name: 'let/unused',
	severity: 'warning',
	summary: 'A constant is never used.',
	documentation: 'Use it as `{let.NAME}` or remove it.',
	ofConfigfile: true,
};
