/** `matcher/repeats-itself`. */
import { pathsOf } from '../../modules/matchers/index.ts';
import { coversPath } from '../coverage.ts';
import type { LintRule } from '../lint-rule.ts';
import { everyMatcher } from '../walk-document.ts';

/** A path pattern adds nothing to another one of the same matcher. */
export const matcherRepeats: LintRule = {
	name: 'matcher/repeats-itself',
	severity: 'note',
	summary: 'A path pattern adds nothing to another one of the same matcher.',
	documentation: 'Any of the patterns may match: one that another covers can be left out, or was meant to be another.',
	check: cx => {
		for (const { matcher, pointer } of cx.walked.matchers) {
			for (const { matcher: inner, pointer: at } of everyMatcher(matcher, pointer)) {
				const paths = pathsOf(inner);
				if (!paths) continue;
				const { values: patterns, field } = paths;
				if (patterns.some(pattern => pattern.includes('{'))) continue;
				const lower = patterns.map(pattern => pattern.toLowerCase());
				lower.forEach((pattern, index) => {
					const wider = lower.findIndex(
						(other, first) => first !== index && coversPath(other, pattern) && (other !== pattern || first < index),
					);
					if (wider === -1) return;
					const message =
						lower[wider] === pattern
							? `\`${patterns[index]}\` stands here twice.`
							: `\`${patterns[index]}\` adds nothing to \`${patterns[wider]}\`.`;
					cx.at(`${at}/${field}/${index}`, message, { words: patterns[index] });
				});
			}
		}
	},
};
