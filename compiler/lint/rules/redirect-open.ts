/** The lint rule `redirect/open`, which reports a redirect whose target the client chooses. */
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const redirectOpen: LintRule = {
	name: 'redirect/open',
	severity: 'warning',
	summary: 'The request decides where a redirect leads.',
	documentation: [
		'`redir {query.next}` sends people who trust this site to any other one, which phishing exploits. Redirect to a path of',
		'this site, or to hosts that a `map` allows.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { step, pointer } of cx.walkedDocument.steps) {
			const redirectTarget = traitsOf(step).redirectsTo?.(step)?.to;
			if (redirectTarget === undefined) continue;
			const startsWithClientValue = /^(?:https?:\/\/)?\{http\.request\.(?:uri\.query\.|header\.|cookie\.)[^}]+\}/.exec(
				redirectTarget,
			);
			if (!startsWithClientValue) continue;
			cx.reportAt(`${pointer}/to`, 'Whoever sends the request chooses where this leads.', {
				hint: 'Redirect to a path of this site, or use `map` to allow only known targets.',
			});
		}
	},
};
