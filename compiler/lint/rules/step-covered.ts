/** `directive/covered`. */
import { answersOnceRun, changesTarget, directiveOf } from '../answering.ts';
import { covers } from '../coverage.ts';
import type { LintRule } from '../lint-rule.ts';

/** Every request that a directive is for has been answered by an earlier one with a wider matcher. */
export const directiveCovered: LintRule = {
	name: 'directive/covered',
	severity: 'warning',
	summary: 'Every request that a directive is for has been answered by an earlier one with a wider matcher.',
	documentation: [
		'`respond /api/* 404` before `respond /api/health 200` answers the health check too. Put the narrower one first; in a',
		'Compatfile the same directive is sorted so by itself, but different directives are not.',
	].join('\n'),
	check: cx => {
		for (const { steps } of cx.walked.pipelines) {
			steps.forEach((later, index) => {
				const { when } = later.step;
				if (when === undefined) return;
				const earlier = steps.find(
					({ step }, at) => at < index && step.when !== undefined && answersOnceRun(step) && covers(step.when, when),
				);
				// What changes a request changes what matchers say about it.
				if (!earlier || steps.slice(0, index).some(({ step }) => changesTarget(step))) return;
				const [one, other] = [directiveOf(earlier.step), directiveOf(later.step)];
				cx.at(later.pointer, `This \`${other}\` can never run: the \`${one}\` before it answers all its requests.`, {
					related: cx.related(earlier.pointer, 'answers them'),
					hint: 'Put the narrower matcher first.',
				});
			});
		}
	},
};
