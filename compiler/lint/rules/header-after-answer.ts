/**
 * The lint rule `header/after-answer`, which reports a `header` that is meant for all responses but follows a directive that
 * answers some requests.
 */
import type { Step } from '../../document/document.ts';
import { answersIfRun, branchesOf, directiveNameOf, traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const headerAfterAnswer: LintRule = {
	name: 'header/after-answer',
	severity: 'warning',
	summary: 'A `header` for all responses follows a directive that answers some of them.',
	documentation: [
		'Where directives run in the order written (in a Configfile and in `route`), a `header` applies only to requests that',
		'reach it. Those that an earlier `respond /health ok` answers never do, and lack the field. Put `header` first.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { steps } of cx.walkedDocument.pipelines) {
			steps.forEach((laterStep, index) => {
				const { step } = laterStep;
				if (step.when !== undefined || !editsResponse(step)) return;
				const earlierStep = steps.find(
					({ step: other }, at) =>
						at < index && (other.when !== undefined || hasConditionalBranches(other)) && canAnswerSome(other),
				);
				if (!earlierStep) return;
				const answerName = directiveNameOf(earlierStep.step);
				cx.reportAt(laterStep.pointer, `Responses of the \`${answerName}\` before it lack this field.`, {
					related: cx.relatedEntry(earlierStep.pointer, 'this answers first'),
					hint: 'Put `header` first.',
				});
			});
		}
	},
};

function editsResponse(step: Step): boolean {
	const fields = Object.entries(traitsOf(step).fieldEdits ?? {});
	return fields.some(([field, message]) => message === 'response' && step[field] !== undefined);
}

function hasConditionalBranches(step: Step): boolean {
	return branchesOf(step).some(({ when }) => when !== undefined);
}

function canAnswerSome(step: Step): boolean {
	if (!hasConditionalBranches(step)) return answersIfRun(step);
	return branchesOf(step).some(({ pipeline }) => pipeline.some(answersIfRun));
}
