/** Plans redirects from HTTP to HTTPS: which hosts an HTTP listener redirects, and to which port. */

import type { SchemePorts } from '../../document/site-address.ts';
import type { ListenedSite } from './plan.ts';
import type { TlsAddress } from './served-names.ts';

/**
 * Compares hosts by the precedence of their redirects: exact hosts come before wildcards, and '' for all hosts comes last. Longer
 * hosts come before shorter ones.
 */
function byPrecedence(a: string, b: string): number {
	const rank = (host: string) => (host === '' ? 2 : host.includes('*') ? 1 : 0);
	return rank(a) - rank(b) || b.length - a.length || (a < b ? -1 : a > b ? 1 : 0);
}

/**
 * Returns the redirects for each host to which TLS listeners are bound. If a name is served on several ports, the HTTPS port is
 * preferred, then the lowest.
 */
export function planRedirects(
	addresses: readonly TlsAddress[],
	ports: SchemePorts,
): ReadonlyMap<string, readonly ListenedSite[]> {
	const portsByBoundHost = new Map<string, Map<string, number>>();
	for (const { boundHost, host, port } of addresses) {
		let portByHost = portsByBoundHost.get(boundHost);
		if (!portByHost) {
			portByHost = new Map();
			portsByBoundHost.set(boundHost, portByHost);
		}
		const earlierPort = portByHost.get(host);
		if (earlierPort === undefined || port === ports.https || (earlierPort !== ports.https && port < earlierPort))
			portByHost.set(host, port);
	}
	const redirects = new Map<string, readonly ListenedSite[]>();
	for (const [boundHost, portByHost] of portsByBoundHost) redirects.set(boundHost, redirectSitesOf(portByHost, ports));
	return redirects;
}

/** Groups hosts into entries. Adjacent exact hosts that redirect to the same port share an entry. */
function redirectSitesOf(portByHost: ReadonlyMap<string, number>, ports: SchemePorts): ListenedSite[] {
	const shownPort = (port: number) =>
		port === ports.https || port === ports.http || port === 443 || port === 80 ? 0 : port;
	const redirectSites: (ListenedSite & { readonly hosts: string[] })[] = [];
	for (const host of [...portByHost.keys()].sort(byPrecedence)) {
		const redirect = shownPort(portByHost.get(host)!);
		if (host === '') {
			redirectSites.push({ site: -1, hosts: [], paths: [], redirect });
			continue;
		}
		const lastEntry = redirectSites.at(-1);
		if (lastEntry?.redirect === redirect && !host.includes('*') && !lastEntry.hosts[0]?.includes('*'))
			lastEntry.hosts.push(host);
		else redirectSites.push({ site: -1, hosts: [host], paths: [], redirect });
	}
	return redirectSites;
}

/** An entry that redirects all hosts that no other entry matches. */
export const REDIRECT_ALL_HOSTS: ListenedSite = { site: -1, hosts: [], paths: [], redirect: 0 };
