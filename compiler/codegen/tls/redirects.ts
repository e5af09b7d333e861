/** Redirects from HTTP to HTTPS: which hosts of which HTTP listener lead to which port. */

import type { SchemePorts } from '../../document/site-address.ts';
import type { ListenedSite } from '../plan.ts';
import type { TlsAddress } from './served-names.ts';

/** Hosts in the order in which their redirects are tried: exact ones, wildcards, every host; longer first, then by letters. */
function byPrecedence(a: string, b: string): number {
	const rank = (host: string) => (host === '' ? 2 : host.includes('*') ? 1 : 0);
	return rank(a) - rank(b) || b.length - a.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** For each host that TLS listeners are bound to, the redirects of its HTTP listener. The port 0 stands for none. */
export function planRedirects(
	addresses: readonly TlsAddress[],
	ports: SchemePorts,
): ReadonlyMap<string, readonly ListenedSite[]> {
	const byInterface = new Map<string, Map<string, number>>();
	for (const { bound, host, port } of addresses) {
		let targets = byInterface.get(bound);
		if (!targets) {
			targets = new Map();
			byInterface.set(bound, targets);
		}
		const before = targets.get(host);
		if (before === undefined || port === ports.https || (before !== ports.https && port < before))
			targets.set(host, port);
	}
	const redirects = new Map<string, readonly ListenedSite[]>();
	for (const [bound, targets] of byInterface) redirects.set(bound, entriesOf(targets, ports));
	return redirects;
}

/** Entries of consecutive hosts that lead to the same port are one. */
function entriesOf(targets: ReadonlyMap<string, number>, ports: SchemePorts): ListenedSite[] {
	const shown = (port: number) =>
		port === ports.https || port === ports.http || port === 443 || port === 80 ? 0 : port;
	const entries: (ListenedSite & { readonly hosts: string[] })[] = [];
	for (const host of [...targets.keys()].sort(byPrecedence)) {
		const redirect = shown(targets.get(host)!);
		if (host === '') {
			entries.push({ site: -1, hosts: [], paths: [], redirect });
			continue;
		}
		const last = entries.at(-1);
		if (last?.redirect === redirect && !host.includes('*') && !last.hosts[0]?.includes('*')) last.hosts.push(host);
		else entries.push({ site: -1, hosts: [host], paths: [], redirect });
	}
	return entries;
}

/** What redirects every other host. */
export const REDIRECT_ALL: ListenedSite = { site: -1, hosts: [], paths: [], redirect: 0 };
