/** Finds the listener for a URL, and explains why a particular site of that listener serves a request. */
import type { ListenedSite, ListenerSpec, Plan } from '../codegen/plan/plan.ts';

import { hostMatches } from '../exchange/authority.ts';
import { parseIp } from '../exchange/ip-address.ts';
import type { RequestUrl } from './dry-run-request.ts';

/** Returns the listener that a client connects to for a URL; undefined if the connection would be refused. */
export function listenerFor(plan: Plan, url: RequestUrl): ListenerSpec | undefined {
	const settings = plan.document.settings ?? {};
	const port = url.port ?? (url.scheme === 'http' ? (settings.http_port ?? 80) : (settings.https_port ?? 443));
	const candidates = plan.listeners.filter(listener => listener.scheme === url.scheme && listener.port === port);
	const ip = parseIp(url.host);
	if (ip) {
		const exactListener = candidates.find(listener => listener.host === url.host);
		return (
			exactListener ?? candidates.find(({ host }) => host === '' || host === '::' || (host === '0.0.0.0' && ip.v4))
		);
	}
	if (candidates.length < 2) return candidates[0];
	// The name in the URL may resolve to the address of any of these listeners. A listener with a matching site is preferred, then
	// one for all interfaces.
	const matchingListener = candidates.find(({ sites }) =>
		sites.some(({ hosts }) => hosts.some(host => hostMatches(url.host, host))),
	);
	const loopbackListener =
		url.host === 'localhost' ? candidates.find(({ host }) => host === '127.0.0.1' || host === '::1') : undefined;
	return (
		matchingListener ??
		loopbackListener ??
		candidates.find(({ host }) => host === '' || host === '::' || host === '0.0.0.0') ??
		candidates[0]
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
	const entries = listener.sites.filter(entry => entry.site === site);
	for (const entry of entries) {
		if (entry.hosts.includes(host)) return reason('exact_host', host, entry, `it names the host \`${host}\``);
	}
	for (const entry of entries) {
		const matchingPattern = entry.hosts.find(pattern => pattern.includes('*') && hostMatches(host, pattern));
		if (matchingPattern !== undefined) {
			return reason('wildcard_host', matchingPattern, entry, `\`${matchingPattern}\` matches the host \`${host}\``);
		}
	}
	const isOnlySite = listener.sites.length === entries.length;
	const text = isOnlySite
		? 'it matches every host'
		: `no other site names the host \`${host}\`, and it matches every host`;
	return reason('any_host', '', entries.find(entry => entry.hosts.length === 0) ?? entries[0], text);
}

function reason(kind: SiteReason['kind'], host: string, entry: ListenedSite | undefined, text: string): SiteReason {
	const path = entry?.paths[0];
	return { kind, host, path, text: path === undefined ? text : `${text} and the path \`${path}\`` };
}

/** Returns the listeners as text for messages, such as `http port 8080 and http port 8081 of 127.0.0.1`. */
export function listenersText(plan: Plan): string {
	const texts = plan.listeners.map(({ host, port, scheme }) => {
		if (host.includes('/')) return `${scheme} on ${host}`;
		const hostSuffix = host === '' ? '' : ` of ${host}`;
		return `${scheme} port ${port}${hostSuffix}`;
	});
	if (texts.length === 0) return 'nothing';
	if (texts.length > 6) return `${texts.slice(0, 5).join(', ')} and ${texts.length - 5} others`;
	return texts.length === 1 ? texts[0]! : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}
