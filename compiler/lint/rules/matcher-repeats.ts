/**
 * The lint rule `matcher/repeats-itself`, which reports path patterns that are redundant, because another pattern of the same
 * matcher covers them.
 */
import { coversPath } from '../inspection/coverage.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { pathPatternsIn } from '../inspection/walk-document.ts';

export const matcherRepeats: LintRule = {
	name: 'matcher/repeats-itself',
	severity: 'note',
	summary: 'A path pattern of a matcher is redundant.',
	documentation:
		'A path needs to match only one of the patterns. A pattern covered by another one can be removed, or is a mistake for a different one.',
	dependsOn: 'site',
	check: cx => {
		for (const { patterns, pointer } of pathPatternsIn(cx.walkedDocument)) {
			if (patterns.some(pattern => pattern.includes('{'))) continue;
			const lowerPatterns = patterns.map(pattern => pattern.toLowerCase());
			lowerPatterns.forEach((pattern, index) => {
				const widerIndex = lowerPatterns.findIndex(
					(other, otherIndex) =>
						otherIndex !== index && coversPath(other, pattern) && (other !== pattern || otherIndex < index),
				);
				if (widerIndex === -1) return;
				const message =
					lowerPatterns[widerIndex] === pattern
						? `\`${patterns[index]}\` is listed twice.`
						: `\`${patterns[index]}\` is already covered by \`${patterns[widerIndex]}\`.`;
				cx.reportAt(`${pointer}/${index}`, message, { words: patterns[index] });
			});
		}
	},
};
