/** The lint rule `host/never-matches`, which reports a `host` matcher with a host that its site does not serve. */
import { listedValuesOf } from '../../modules/registry/matchers.ts';
import { coversHost } from '../inspection/coverage.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { assertedMatchers } from '../inspection/walk-document.ts';

export const hostNeverMatches: LintRule = {
	name: 'host/never-matches',
	severity: 'warning',
	summary: 'A `host` matcher names a host that its site does not serve.',
	documentation: [
		'A site only gets requests for its own addresses, so a condition on another host never holds inside it. Add the',
		`host to the site's addresses, or move the rule to the site that has it.`,
	].join('\n'),
	dependsOn: 'served site',
	check: cx => {
		for (const { matcher, pointer, owner } of cx.walkedDocument.matchers) {
			const { site } = owner.pipeline;
			if (site === undefined) continue;
			const hostLists = cx.plan.listeners.flatMap(({ sites }) =>
				sites.filter(entry => entry.site === site).map(entry => entry.hosts),
			);
			if (hostLists.length === 0 || hostLists.some(list => list.length === 0)) continue;
			const servedHosts = hostLists.flat();
			for (const { matcher: inner, pointer: innerPointer } of assertedMatchers(matcher, pointer)) {
				const list = listedValuesOf(inner);
				if (list?.kind !== 'host') continue;
				const patterns = list.values;
				if (patterns.some(host => host.includes('{') || canMatchAny(host.toLowerCase(), servedHosts))) continue;
				const firstPattern = patterns[0]!;
				cx.reportAt(innerPointer, `No request for \`${firstPattern}\` reaches this site.`, {
					words: firstPattern,
					hint: `Its addresses are ${cx.document
						.sites![site]!.addresses.slice(0, 5)
						.map(text => `\`${text}\``)
						.join(', ')}.`,
				});
			}
		}
	},
};

function canMatchAny(host: string, servedHosts: readonly string[]): boolean {
	return servedHosts.some(
		servedHost =>
			coversHost(servedHost, host) || coversHost(host, servedHost) || (host.includes('*') && servedHost.includes('*')),
	);
}
