/** `redirect/open`. */
import { traitsOf } from '../answering.ts';
import type { LintRule } from '../lint-rule.ts';

/** A redirect leads wherever the request says. */
export const redirectOpen: LintRule = {
	name: 'redirect/open',
	severity: 'warning',
	summary: 'A redirect leads wherever the request says.',
	documentation: [
		'`redir {query.next}` sends people who trust this site to any other: phishing uses such links. Redirect to a path of',
		'this site, or to hosts that a `map` allows.',
	].join('\n'),
	check: cx => {
		for (const { step, pointer } of cx.walked.steps) {
			const to = traitsOf(step).redirectsTo?.(step)?.to;
			if (to === undefined) continue;
			const open = /^(?:https?:\/\/)?\{http\.request\.(?:uri\.query\.|header\.|cookie\.)[^}]+\}/.exec(to);
			if (!open) continue;
			cx.at(`${pointer}/to`, 'Who sends the request chooses where this leads.', {
				hint: 'Redirect to a path of this site, or map what is asked for to what is allowed.',
			});
		}
	},
};
