/** `site/never-answers`. */
import { mayAnswer } from '../answering.ts';
import type { LintRule } from '../lint-rule.ts';

/** No directive of a site answers: every request gets 200 and nothing. */
export const siteNeverAnswers: LintRule = {
	name: 'site/never-answers',
	severity: 'warning',
	summary: 'No directive of a site answers: every request gets 200 and nothing.',
	documentation: [
		'A request that nothing answers is answered 200 with an empty body. A site whose directives only set things, such as',
		'`root`, `header` or `log`, does so for everything: a `file_server`, `respond` or `reverse_proxy` is missing.',
	].join('\n'),
	check: cx => {
		(cx.document.sites ?? []).forEach(({ pipeline, addresses }, index) => {
			if (pipeline.some(mayAnswer)) return;
			cx.at(`/sites/${index}/addresses/0`, `Every request to \`${addresses[0]}\` gets 200 and nothing.`, {
				hint: 'Add `file_server`, `respond` or `reverse_proxy`.',
			});
		});
	},
};
