/** The lint rule `snippet/unused`, which reports unused snippets. The check is in the compiler, which does it on request. */
import type { LintRule } from '../inspection/lint-rule.ts';

export const snippetUnused: LintRule = {
	name: 'snippet/unused',
	severity: 'warning',
	summary: 'A snippet of the main file is never imported.',
	documentation: 'Use it or remove it. Snippets in imported files count as a library and are not reported.',
	checkedForConfigfile: true,
};
