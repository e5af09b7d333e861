/** `matcher/never-holds`. */
import type { Matcher } from '../../document/document.ts';
import { excludes } from '../coverage.ts';
import type { LintRule } from '../lint-rule.ts';
import { everyMatcher } from '../walk-document.ts';

/** A matcher joins conditions of which no request can meet both. */
export const matcherNeverHolds: LintRule = {
	name: 'matcher/never-holds',
	severity: 'warning',
	summary: 'A matcher joins conditions of which no request can meet both.',
	documentation: [
		'`method GET and method POST` holds for no request; `method GET POST` holds for either. The same is true of two hosts,',
		'and of two paths of which neither is the beginning of the other. A `handle` inside a `handle` sees the path of the',
		'request as it is there: `handle /b` inside `handle /a/*` never runs, inside `handle_path /a/*` it does.',
	].join('\n'),
	check: cx => {
		for (const { matcher, pointer } of cx.walked.matchers) {
			for (const { matcher: inner, pointer: at } of everyMatcher(matcher, pointer)) {
				if (inner.type !== 'all') continue;
				const parts = inner.of as readonly Matcher[];
				const second = parts.findIndex((part, index) =>
					parts.some((other, first) => first < index && excludes(other, part)),
				);
				if (second === -1) continue;
				cx.at(`${at}/of/${second}`, `No request can meet this condition and the other on \`${parts[second]!.type}\`.`, {
					hint: 'Join alternatives with `or`, or list them behind one matcher.',
				});
			}
		}
	},
};
