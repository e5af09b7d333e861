/** `site/shadowed`. */
import { SiteTable } from '../../codegen/site-table.ts';
import type { LintRule } from '../lint-rule.ts';
import { sampleHost, sampleRequest } from '../sample-request.ts';

export const siteShadowed: LintRule = {
	name: 'site/shadowed',
	severity: 'warning',
	summary: 'No request reaches a site, or one of its addresses: another site is always tried first.',
	documentation: [
		'Of the sites of a listener the one with the most specific host serves. A site with a host-less address takes every',
		'host that no other site names, and its other host names then lead to that same rule. The finding names the site that',
		'serves instead.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		for (const listener of cx.plan.listeners) {
			if (listener.sites.length < 2) continue;
			const table = new SiteTable(listener.sites);
			for (const { site, hosts, paths } of listener.sites) {
				if (paths.length > 0) continue;
				for (const host of hosts.length === 0 ? [''] : hosts) {
					const found = table.find(sampleRequest(listener, sampleHost(host)));
					if (found === site || found === -1) continue;
					const { addresses } = cx.document.sites![site]!;
					const other = cx.document.sites![found]!.addresses[0]!;
					const index = Math.max(
						0,
						addresses.findIndex(address => host !== '' && address.includes(host)),
					);
					cx.at(`/sites/${site}/addresses/${index}`, `\`${other}\` takes the requests for \`${addresses[index]}\`.`, {
						related: cx.related(`/sites/${found}`, 'this site serves them'),
					});
				}
			}
		}
	},
};
