/**
 * The lint rule `site/shadowed`, which reports a site or address that no request reaches, because another site always takes
 * precedence.
 */
import { SiteTable } from '../../codegen/site-table.ts';
import { effectivePort, isSiteAddress, parseSiteAddress } from '../../document/site-address.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { sampleHost, sampleRequest } from '../inspection/sample-request.ts';

export const siteShadowed: LintRule = {
	name: 'site/shadowed',
	severity: 'warning',
	summary: 'No request reaches a site, or one of its addresses: another site is always tried first.',
	documentation: [
		'Of the sites of a listener, the one with the most specific host serves a request, and sites for all hosts come last. A',
		'site with an address without a host is among the latter, whatever else it names: `:80, a.example` leaves `a.example` to a site',
		'`*.example`. Give such a host its own site.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'listeners',
	check: cx => {
		const ports = { http: cx.document.settings?.http_port ?? 80, https: cx.document.settings?.https_port ?? 443 };
		for (const listener of cx.plan.listeners) {
			if (listener.sites.length < 2) continue;
			const siteTable = new SiteTable(listener.sites);
			for (const site of new Set(listener.sites.map(entry => entry.site))) {
				// A generated redirect to HTTPS has no addresses in the document.
				const { addresses = [] } = cx.document.sites?.[site] ?? {};
				addresses.forEach((addressText, index) => {
					const address = parseSiteAddress(addressText);
					if (!isSiteAddress(address) || address.path !== '' || effectivePort(address, ports) !== listener.port) return;
					const servingSite = siteTable.findSiteIndex(sampleRequest(listener, sampleHost(address.host)));
					if (servingSite === site || servingSite === -1) return;
					const servingAddress = cx.document.sites?.[servingSite]?.addresses[0];
					if (servingAddress === undefined) return;
					cx.reportAt(
						`/sites/${site}/addresses/${index}`,
						`\`${servingAddress}\` takes the requests for \`${addressText}\`.`,
						{
							related: cx.relatedEntry(`/sites/${servingSite}/addresses/0`, 'this site serves them'),
							hint: 'Give the host its own site.',
						},
					);
				});
			}
		}
	},
};
