/** The lint rule `matcher/never-holds`, which reports a matcher with conditions that no request can meet at the same time. */
import type { Matcher } from '../../document/document.ts';
import { areDisjoint } from '../inspection/coverage.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { matchersIn } from '../inspection/walk-document.ts';

export const matcherNeverHolds: LintRule = {
	name: 'matcher/never-holds',
	severity: 'warning',
	summary: 'A matcher combines conditions that no request can meet together.',
	documentation: [
		'`method GET and method POST` holds for no request; `method GET POST` holds for either. The same goes for two hosts,',
		"and for two paths of which neither is a prefix of the other. A `handle` inside a `handle` sees the request's path",
		'as it is at that point: `handle /b` never runs inside `handle /a/*`, but does inside `handle_path /a/*`.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { matcher, pointer } of matchersIn(cx.walkedDocument)) {
			if (matcher.type !== 'all') continue;
			const operands = matcher.of as readonly Matcher[];
			const secondIndex = operands.findIndex((part, index) =>
				operands.some((other, firstIndex) => firstIndex < index && areDisjoint(other, part)),
			);
			if (secondIndex === -1) continue;
			cx.reportAt(
				`${pointer}/of/${secondIndex}`,
				`No request can meet both this condition and the other one on \`${operands[secondIndex]!.type}\`.`,
				{
					hint: 'Join alternatives with `or`, or list them in one matcher.',
				},
			);
		}
	},
};
