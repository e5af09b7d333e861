/** `snippet/unused`. */
import type { LintRule } from '../lint-rule.ts';

/** Reading a text finds it; the lint asks for that in both languages. */
export const snippetUnused: LintRule = {
	name: 'snippet/unused',
	severity: 'warning',
	summary: 'A snippet of the main file is never imported.',
	documentation: 'Use it or remove it. Snippets of imported files are a library, and not reported.',
	ofConfigfile: true,
};
