/** The lint rule `path/never-matches`, which reports a path pattern that no path can match. */

import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { pathPatternsIn } from '../inspection/walk-document.ts';

export const pathNeverMatches: LintRule = {
	name: 'path/never-matches',
	severity: 'warning',
	summary: 'A path pattern can match no path.',
	documentation: [
		'A path begins with a slash, has no scheme, host, query or fragment, and is compared after its `.` and `..` are',
		'resolved. A pattern that contradicts this never matches. `?` in a pattern stands for one character; what follows it',
		'in a URL is the query, which the `query` matcher tests.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		const slashlessTargets = new Set(
			cx.walkedDocument.steps.map(({ step }) => traitsOf(step).rewritesTo?.(step)?.split(/[?#]/, 1)[0]),
		);
		for (const { patterns, pointer } of pathPatternsIn(cx.walkedDocument)) {
			patterns.forEach((pattern, index) => {
				const mistake = patternMistake(pattern, slashlessTargets.has(pattern));
				if (!mistake) return;
				cx.reportAt(`${pointer}/${index}`, `\`${pattern}\` can match no path: ${mistake.problem}.`, {
					words: pattern,
					hint: mistake.hint,
				});
			});
		}
	},
};

/** @param isRewriteTarget True if a rewrite has this pattern as its target, whose path Caddy leaves without a slash. */
function patternMistake(pattern: string, isRewriteTarget: boolean): { problem: string; hint: string } | undefined {
	if (pattern.startsWith('{') || pattern === '') return undefined;
	if (/^[a-z]+:\/\//i.test(pattern))
		return { problem: 'it is a URL', hint: 'Write the path alone, and `host` for the host.' };
	if (!/^[/*?[\\]/.test(pattern)) {
		if (isRewriteTarget) {
			return {
				problem: 'a path begins with `/`, also after a rewrite',
				hint: `Write \`/${pattern}\`: unlike in Caddy, a path that is rewritten to \`${pattern}\` gets a \`/\`.`,
			};
		}
		return {
			problem: 'a path begins with `/`',
			hint: `Write \`/${pattern}\`, or \`*${pattern}\` for paths that end with it.`,
		};
	}
	if (/\?[\w.-]+=/.test(pattern)) return { problem: 'it contains a query', hint: 'Use the `query` matcher.' };
	if (/\/\.\.?(?:\/|$)/.test(pattern))
		return { problem: '`.` and `..` are resolved before comparing', hint: 'Write the resolved path.' };
	return undefined;
}
