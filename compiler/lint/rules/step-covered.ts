/** The lint rule `directive/covered`. */
import { answersIfRun, changesTarget, directiveNameOf } from '../inspection/answering.ts';
import { coversMatcher } from '../inspection/coverage.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a directive that never answers, because an earlier directive with a wider matcher answers all its requests. */
export const directiveCovered: LintRule = {
	name: 'directive/covered',
	severity: 'warning',
	summary: 'An earlier directive with a wider matcher answers every request meant for this one.',
	documentation: [
		'`respond /api/* 404` before `respond /api/health 200` answers the health check too. Put the narrower one first. A',
		'Compatfile sorts uses of the same directive this way, but not different directives.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { steps } of cx.walkedDocument.pipelines) {
			steps.forEach((laterStep, index) => {
				const { when } = laterStep.step;
				if (when === undefined) return;
				const earlierStep = steps.find(
					({ step }, at) =>
						at < index && step.when !== undefined && answersIfRun(step) && coversMatcher(step.when, when),
				);
				// If any step before the later one changes the request, the two matchers may see different requests.
				if (!earlierStep || steps.slice(0, index).some(({ step }) => changesTarget(step))) return;
				const [earlierName, laterName] = [directiveNameOf(earlierStep.step), directiveNameOf(laterStep.step)];
				cx.reportAt(
					laterStep.pointer,
					`This \`${laterName}\` can never run: the \`${earlierName}\` before it answers all its requests.`,
					{
						related: cx.relatedEntry(earlierStep.pointer, 'answers them'),
						hint: 'Put the narrower matcher first.',
					},
				);
			});
		}
	},
};
