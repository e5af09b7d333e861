/** The lint rule `tls/off-on-public-name`, which reports a public host name that is served without TLS. */

import type { Site, Step } from '../../document/document.ts';
import { effectivePort, isSiteAddress, needsTls, parseSiteAddress } from '../../document/site-address.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintRule } from '../inspection/lint-rule.ts';
import { isPublicName } from '../inspection/public-host.ts';

export const tlsOff: LintRule = {
	name: 'tls/off-on-public-name',
	severity: 'warning',
	summary: 'A public host name is served without TLS.',
	documentation: [
		'Plain HTTP can be read and changed on the way. Omit `http://` and the port, and the name is served',
		'over HTTPS. Sites that only redirect to `https://` are not reported, nor are those where `trusted_proxies` names the',
		'servers in front that may terminate TLS instead.',
	].join('\n'),
	checkedForConfigfile: true,
	dependsOn: 'site',
	check: cx => {
		const ports = { http: cx.document.settings?.http_port ?? 80, https: cx.document.settings?.https_port ?? 443 };
		if (cx.document.settings?.trusted_proxies !== undefined) return;
		(cx.scope.document.sites ?? []).forEach((site, index) => {
			if (redirectsToHttps(site)) return;
			site.addresses.forEach((addressText, addressIndex) => {
				const address = parseSiteAddress(addressText);
				if (!isSiteAddress(address) || needsTls(address, ports) || !isPublicName(address.host)) return;
				if ((site as { tls?: unknown }).tls !== undefined) return;
				const cause = address.scheme === 'http' ? 'the scheme `http://`' : `port ${effectivePort(address, ports)}`;
				cx.reportAt(`/sites/${index}/addresses/${addressIndex}`, `\`${address.host}\` is served without TLS.`, {
					label: `${cause} turns it off`,
					hint: `Write \`${address.host}\`, or redirect to \`https://${address.host}\`.`,
				});
			});
		});
	},
};

function redirectsToHttps({ pipeline }: Site): boolean {
	const isHttpsRedirect = (step: Step): boolean =>
		traitsOf(step).redirectsTo?.(step)?.to.startsWith('https://') === true;
	return pipeline.length > 0 && pipeline.every(isHttpsRedirect);
}
