/** The lint rule `directive/never-runs`, which reports a directive that follows one which answers every request. */
import { alwaysAnswers, directiveNameOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const directiveNeverRuns: LintRule = {
	name: 'directive/never-runs',
	severity: 'warning',
	summary: 'A directive follows one that answers every request that reaches it.',
	documentation: [
		'A `respond` without a matcher before a `reverse_proxy` answers everything, so the proxy is never reached. In a',
		'Compatfile, directives are sorted and the order in which they are written does not matter: there,',
		'`respond` always comes before `reverse_proxy` and `file_server`. Give the first one a matcher, or put both into',
		'`handle` blocks.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		// For a Configfile, the compiler reports steps that never run, with their places in the text.
		if (cx.dialect === 'configfile') return;
		for (const { steps } of cx.walkedDocument.pipelines) {
			const answerIndex = steps.findIndex(({ step }) => alwaysAnswers(step));
			const [answeringStep, nextStep] = [steps[answerIndex], steps[answerIndex + 1]];
			if (answerIndex === -1 || !answeringStep || !nextStep) continue;
			const [answeringName, nextName] = [directiveNameOf(answeringStep.step), directiveNameOf(nextStep.step)];
			const hint =
				cx.dialect === 'compatfile' && answeringName !== nextName
					? `Directives are sorted, and \`${answeringName}\` always comes before \`${nextName}\`: give it a matcher.`
					: 'Give the one before it a matcher, or remove one of them.';
			cx.reportAt(nextStep.pointer, `\`${nextName}\` can never run: \`${answeringName}\` before it always answers.`, {
				hint,
				related: cx.relatedEntry(answeringStep.pointer, 'answers every request that reaches it'),
			});
		}
	},
};
