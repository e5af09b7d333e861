/** Plans redirects from HTTP to HTTPS: which hosts of which HTTP listener redirect to which port. */

import type { SchemePorts } from '../../document/site-address.ts';
import type { ListenedSite } from './plan.ts';
import type { TlsAddress } from './served-names.ts';

/**
 * Compares hosts by the precedence of their redirects: exact hosts, then wildcards, then all hosts; longer first, then by name.
 */
function byPrecedence(a: string, b: string): number {
	const rank = (host: string) => (host === '' ? 2 : host.includes('*') ? 1 : 0);
	return rank(a) - rank(b) || b.length - a.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Returns the redirects of the HTTP listener for each host to which TLS listeners are bound. Port 0 means no redirect. */
export function planRedirects(
	addresses: readonly TlsAddress[],
	ports: SchemePorts,
): ReadonlyMap<string, readonly ListenedSite[]> {
	const portsByInterface = new Map<string, Map<string, number>>();
	for (const { boundHost, host, port } of addresses) {
		let portByHost = portsByInterface.get(boundHost);
		if (!portByHost) {
			portByHost = new Map();
			portsByInterface.set(boundHost, portByHost);
		}
		const earlierPort = portByHost.get(host);
		if (earlierPort === undefined || port === ports.https || (earlierPort !== ports.https && port < earlierPort))
			portByHost.set(host, port);
	}
	const redirects = new Map<string, readonly ListenedSite[]>();
	for (const [boundHost, portByHost] of portsByInterface) redirects.set(boundHost, entriesOf(portByHost, ports));
	return redirects;
}

/** Groups hosts into entries: consecutive hosts that redirect to the same port share one. */
function entriesOf(portByHost: ReadonlyMap<string, number>, ports: SchemePorts): ListenedSite[] {
	const shownPort = (port: number) =>
		port === ports.https || port === ports.http || port === 443 || port === 80 ? 0 : port;
	const entries: (ListenedSite & { readonly hosts: string[] })[] = [];
	for (const host of [...portByHost.keys()].sort(byPrecedence)) {
		const redirect = shownPort(portByHost.get(host)!);
		if (host === '') {
			entries.push({ site: -1, hosts: [], paths: [], redirect });
			continue;
		}
		const lastEntry = entries.at(-1);
		if (lastEntry?.redirect === redirect && !host.includes('*') && !lastEntry.hosts[0]?.includes('*'))
			lastEntry.hosts.push(host);
		else entries.push({ site: -1, hosts: [host], paths: [], redirect });
	}
	return entries;
}

/** Redirects all hosts that no other entry matches. */
export const REDIRECT_ALL_HOSTS: ListenedSite = { site: -1, hosts: [], paths: [], redirect: 0 };
