/** `snippet/unused`. */
import type { LintRule } from '../inspection/lint-rule.ts';

/** The compiler reports it; linting asks for it in both languages. */
export const snippetUnused: LintRule = {
	name: 'snippet/unused',
	severity: 'warning',
	summary: 'A snippet of the main file is never imported.',
	documentation: 'Use it or remove it. Snippets in imported files count as a library and are not reported.',
	ofConfigfile: true,
};
