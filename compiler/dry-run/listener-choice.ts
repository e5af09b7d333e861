/** Finds the listener for a URL, and explains why a particular site of that listener serves a request. */
import type { ListenedSite, ListenerSpec, Plan } from '../codegen/plan/plan.ts';

import { hostMatches } from '../exchange/authority.ts';
import { parseIp } from '../exchange/ip-address.ts';
import type { RequestUrl } from './dry-run-request.ts';

/** Returns the listener that a client connects to for a URL; undefined if the connection would be refused. */
export function listenerFor(plan: Plan, url: RequestUrl): ListenerSpec | undefined {
	const settings = plan.document.settings ?? {};
	const port = url.port ?? (url.scheme === 'http' ? (settings.http_port ?? 80) : (settings.https_port ?? 443));
	const candidateListeners = plan.listeners.filter(
		listener => listener.scheme === url.scheme && listener.port === port,
	);
	const ip = parseIp(url.host);
	if (ip) {
		const exactListener = candidateListeners.find(listener => listener.host === url.host);
		return (
			exactListener ??
			candidateListeners.find(({ host }) => host === '' || host === '::' || (host === '0.0.0.0' && ip.isIpv4))
		);
	}
	if (candidateListeners.length < 2) return candidateListeners[0];
	// The name in the URL may resolve to the address of any candidate listener. A listener with a matching site is preferred, then
	// one for all interfaces.
	const matchingListener = candidateListeners.find(({ sites }) =>
		sites.some(({ hosts }) => hosts.some(host => hostMatches(url.host, host))),
	);
	const loopbackListener =
		url.host === 'localhost'
			? candidateListeners.find(({ host }) => host === '127.0.0.1' || host === '::1')
			: undefined;
	return (
		matchingListener ??
		loopbackListener ??
		candidateListeners.find(({ host }) => host === '' || host === '::' || host === '0.0.0.0') ??
		candidateListeners[0]
	);
}

/** The reason why a site serves a request. */
export interface SiteReason {
	readonly kind: 'exact_host' | 'wildcard_host' | 'any_host';
	/** The host or pattern in the site's address that matched; '' for `any_host`. */
	readonly host: string;
	/** The path in the site's address that the request matched as well; undefined if the address has none. */
	readonly path: string | undefined;
	/** The reason as a clause, such as: it names the host `example.com`. */
	readonly text: string;
}

/**
 * Explains why a site was chosen among the sites of its listener. `site` is the index of the site, and `host` the requested host in
 * canonical form.
 */
export function siteReason(listener: ListenerSpec, site: number, host: string): SiteReason {
	const siteEntries = listener.sites.filter(entry => entry.site === site);
	for (const entry of siteEntries) {
		if (entry.hosts.includes(host)) return buildSiteReason('exact_host', host, entry, `it names the host \`${host}\``);
	}
	for (const entry of siteEntries) {
		const matchingPattern = entry.hosts.find(pattern => pattern.includes('*') && hostMatches(host, pattern));
		if (matchingPattern !== undefined) {
			return buildSiteReason(
				'wildcard_host',
				matchingPattern,
				entry,
				`\`${matchingPattern}\` matches the host \`${host}\``,
			);
		}
	}
	const isOnlySite = listener.sites.length === siteEntries.length;
	const text = isOnlySite
		? 'it matches every host'
		: `no other site names the host \`${host}\`, and it matches every host`;
	return buildSiteReason('any_host', '', siteEntries.find(entry => entry.hosts.length === 0) ?? siteEntries[0], text);
}

function buildSiteReason(
	kind: SiteReason['kind'],
	host: string,
	entry: ListenedSite | undefined,
	text: string,
): SiteReason {
	const path = entry?.paths[0];
	return { kind, host, path, text: path === undefined ? text : `${text} and the path \`${path}\`` };
}

/** Returns the listeners as text for messages, such as `http port 8080 and http port 8081 of 127.0.0.1`. */
export function listenersText(plan: Plan): string {
	const listenerTexts = plan.listeners.map(({ host, port, scheme }) => {
		if (host.includes('/')) return `${scheme} on ${host}`;
		const hostSuffix = host === '' ? '' : ` of ${host}`;
		return `${scheme} port ${port}${hostSuffix}`;
	});
	if (listenerTexts.length === 0) return 'nothing';
	if (listenerTexts.length > 6) return `${listenerTexts.slice(0, 5).join(', ')} and ${listenerTexts.length - 5} others`;
	return listenerTexts.length === 1
		? listenerTexts[0]!
		: `${listenerTexts.slice(0, -1).join(', ')} and ${listenerTexts.at(-1)}`;
}
