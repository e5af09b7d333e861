/**
 * The lint rule `directive/covered`, which reports a directive that never answers, because an earlier directive with a wider
 * matcher answers all its requests.
 */
import { answersIfRun, changesTarget, directiveNameOf } from '../inspection/answering.ts';
import { CoveringMatchers } from '../inspection/covering-matchers.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import type { WalkedStep } from '../inspection/walk-document.ts';

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
			const answeringSteps = new CoveringMatchers<WalkedStep>();
			for (const laterStep of steps) {
				const { when } = laterStep.step;
				const earlierStep = when && answeringSteps.firstCovering(when);
				if (when && answersIfRun(laterStep.step)) answeringSteps.add(when, laterStep);
				if (earlierStep) reportCovered(laterStep, earlierStep, cx);
				// This step changes the request, so a matcher after it may hold where the same matcher before it does not.
				if (changesTarget(laterStep.step)) break;
			}
		}
	},
};

function reportCovered(laterStep: WalkedStep, earlierStep: WalkedStep, cx: LintContext): void {
	const [earlierName, laterName] = [directiveNameOf(earlierStep.step), directiveNameOf(laterStep.step)];
	cx.reportAt(
		laterStep.pointer,
		`This \`${laterName}\` can never run: the \`${earlierName}\` before it answers all its requests.`,
		{
			related: cx.relatedEntry(earlierStep.pointer, 'answers them'),
			hint: 'Put the narrower matcher first.',
		},
	);
}
