/** `header/after-answer`. */
import { answersOnceRun, directiveOf } from '../answering.ts';
import type { LintRule } from '../lint-rule.ts';

/** A `header` for all responses stands behind a directive that answers some of them. */
export const headerAfterAnswer: LintRule = {
	name: 'header/after-answer',
	severity: 'warning',
	summary: 'A `header` for all responses stands behind a directive that answers some of them.',
	documentation: [
		'Where directives run as written, in a Configfile and in `route`, a `header` is carried out for the requests that come',
		'to it. Those that an earlier `respond /health ok` has answered never do, and go without the field. Put it first.',
	].join('\n'),
	check: cx => {
		for (const { steps } of cx.walked.pipelines) {
			steps.forEach((later, index) => {
				const { step } = later;
				if (step.handler !== 'edit_headers' || step.response === undefined || step.when !== undefined) return;
				const earlier = steps.find(
					({ step: other }, at) =>
						at < index && (other.when !== undefined || other.handler === 'first_match') && answersSome(other),
				);
				if (!earlier) return;
				const answer = directiveOf(earlier.step);
				cx.at(later.pointer, `The responses of the \`${answer}\` before it go without this field.`, {
					related: cx.related(earlier.pointer, 'answers before'),
					hint: 'Put `header` first.',
				});
			});
		}
	},
};

function answersSome(step: Parameters<typeof answersOnceRun>[0]): boolean {
	if (step.handler !== 'first_match') return answersOnceRun(step);
	return (step.branches as { pipeline: Parameters<typeof answersOnceRun>[0][] }[]).some(({ pipeline }) =>
		pipeline.some(answersOnceRun),
	);
}
