/**
 * The lint rule `site/never-answers`, which reports a site in which no directive answers, so that every request gets 200 with an
 * empty body.
 */
import { canAnswer } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const siteNeverAnswers: LintRule = {
	name: 'site/never-answers',
	severity: 'warning',
	summary: 'No directive of a site answers: every request gets 200 with an empty body.',
	documentation: [
		`A request that no directive answers gets 200 with an empty body. If a site's directives only set things, such as`,
		'`root`, `header` or `log`, every request does: `file_server`, `respond` or `reverse_proxy` is missing.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		(cx.scope.document.sites ?? []).forEach(({ pipeline, addresses }, index) => {
			if (pipeline.some(canAnswer)) return;
			cx.reportAt(`/sites/${index}/addresses/0`, `Every request to \`${addresses[0]}\` gets 200 with an empty body.`, {
				hint: 'Add `file_server`, `respond` or `reverse_proxy`.',
			});
		});
	},
};
