/**
 * The lint rule `errors-page/too-late`, which reports an unconditional `errors_page` that is written after a directive that may
 * raise errors.
 */
import type { Step } from '../../document/document.ts';
import { error } from '../../modules/directives/error.ts';
import { errorsPage } from '../../modules/directives/errors-page/errors-page.ts';
import { branchesOf, traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const errorsPageTooLate: LintRule = {
	name: 'errors-page/too-late',
	severity: 'warning',
	summary: 'An `errors_page` follows a directive whose errors it should answer.',
	documentation: [
		'Directives run in the order written, and `errors_page` supplies the page for errors of later ones. If it is written last,',
		'as `error_page` of nginx may be, errors of `reverse_proxy` or `basic_auth` before it have no body. Put `errors_page` first.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { steps } of cx.walkedDocument.pipelines) {
			const pageIndex = steps.findIndex(({ step }) => step.handler === errorsPage.id);
			const page = steps[pageIndex];
			if (!page || page.step.when !== undefined) continue;
			const earlierStep = steps.slice(0, pageIndex).find(({ step }) => mayRaiseError(step));
			if (!earlierStep) continue;
			cx.reportAt(page.pointer, 'This `errors_page` does not answer errors of the directives before it.', {
				related: cx.relatedEntry(earlierStep.pointer, 'this may raise an error'),
				hint: 'Put `errors_page` first.',
			});
		}
	},
};

/** Reports whether a step, or a step nested in it, may raise an error for which no page is supplied. */
function mayRaiseError(step: Step): boolean {
	const { answers, asksForPasswords, limitKeysOf, servesFiles, upstreamAddressesOf } = traitsOf(step);
	if (step.handler === error.id || asksForPasswords || limitKeysOf) return true;
	if (answers !== undefined && (servesFiles || upstreamAddressesOf)) return true;
	return branchesOf(step).some(({ pipeline }) => {
		const hasPage = pipeline.some(({ handler }) => handler === errorsPage.id);
		return !hasPage && pipeline.some(mayRaiseError);
	});
}
