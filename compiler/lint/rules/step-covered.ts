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
		for (const { steps } of cx.walked.pipelines) {
			steps.forEach((later, index) => {
				const { when } = later.step;
				if (when === undefined) return;
				const earlier = steps.find(
					({ step }, at) =>
						at < index && step.when !== undefined && answersIfRun(step) && coversMatcher(step.when, when),
				);
				// A directive that changes the request can change the results of matchers after it.
				if (!earlier || steps.slice(0, index).some(({ step }) => changesTarget(step))) return;
				const [earlierName, laterName] = [directiveNameOf(earlier.step), directiveNameOf(later.step)];
				cx.reportAt(
					later.pointer,
					`This \`${laterName}\` can never run: the \`${earlierName}\` before it answers all its requests.`,
					{
						related: cx.related(earlier.pointer, 'answers them'),
						hint: 'Put the narrower matcher first.',
					},
				);
			});
		}
	},
};
