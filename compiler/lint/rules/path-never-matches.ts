/** The lint rule `path/never-matches`, which reports a path pattern that no path can match. */

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
		for (const { patterns, pointer } of pathPatternsIn(cx.walkedDocument)) {
			patterns.forEach((pattern, index) => {
				const mistake = patternMistake(pattern);
				if (!mistake) return;
				cx.reportAt(`${pointer}/${index}`, `\`${pattern}\` can match no path: ${mistake.problem}.`, {
					words: pattern,
					hint: mistake.hint,
				});
			});
		}
	},
};

function patternMistake(pattern: string): { problem: string; hint: string } | undefined {
	if (pattern.startsWith('{') || pattern === '') return undefined;
	if (/^[a-z]+:\/\//i.test(pattern))
		return { problem: 'it is a URL', hint: 'Write the path alone, and `host` for the host.' };
	if (!/^[/*?[\\]/.test(pattern)) {
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
