/** A checked document to its listeners: which sites each serves, in the order in which they are tried. */
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document } from '../document/document.ts';
import {
	effectivePort,
	formatSiteAddress,
	isSiteAddress,
	needsTls,
	parseSiteAddress,
	type SchemePorts,
	type SiteAddress,
	violatesConvention,
} from '../document/site-address.ts';
import type { ListenedSite, ListenerSpec, Plan } from './plan.ts';

interface Listener {
	readonly key: string;
	readonly host: string;
	readonly port: number;
	readonly entries: ListenedEntry[];
	/** Address without its scheme to the site that has it. */
	readonly taken: Map<string, { readonly site: number; readonly pointer: string }>;
	/** Entry of a site and path, so that hosts of one site stand together. */
	readonly bySite: Map<string, ListenedEntry>;
}

interface ListenedEntry {
	readonly site: number;
	hosts: string[];
	readonly path: string;
	catchAll: boolean;
}

/** Plans the listeners of a document. Reports at `/sites/N/addresses/M`; what was reported is left out. */
export function planDocument(document: Document, report: Report): Plan {
	const ports: SchemePorts = { http: document.settings?.http_port ?? 80, https: document.settings?.https_port ?? 443 };
	const everywhere = document.settings?.default_bind ?? [];
	const listeners = new Map<string, Listener>();
	(document.sites ?? []).forEach((site, index) => {
		const foreign = site.bind?.findIndex(host => host.includes('/')) ?? -1;
		if (foreign !== -1) {
			const message = `Listening on \`${site.bind![foreign]}\` is not part of this build yet.`;
			report({ code: 'bind/unavailable', severity: 'error', pointer: `/sites/${index}/bind/${foreign}`, message });
			return;
		}
		let toldOfTls = false;
		site.addresses.forEach((text, at) => {
			const pointer = `/sites/${index}/addresses/${at}`;
			const address = parseSiteAddress(text);
			if (!isSiteAddress(address)) {
				report({ ...address, severity: 'error', pointer });
				return;
			}
			if (address.host.includes('{')) {
				const message = 'A placeholder cannot stand in a site address: listeners are known before there is a request.';
				report({ code: 'address/placeholder', severity: 'error', pointer, message });
				return;
			}
			if (violatesConvention(address, ports)) {
				const message = `[${text}] scheme and port violate convention`;
				report({ code: 'address/scheme-and-port', severity: 'error', pointer, message });
				return;
			}
			if (needsTls(address, ports)) {
				if (!toldOfTls) report(tlsUnavailable(address, pointer));
				toldOfTls = true;
				return;
			}
			const hosts = site.bind && site.bind.length > 0 ? site.bind : everywhere.length > 0 ? everywhere : [''];
			for (const host of hosts)
				addTo(listenerOf(listeners, host, effectivePort(address, ports)), address, index, pointer, report);
		});
	});
	return { document, listeners: [...listeners.values()].sort(byKey).map(finish) };
}

function tlsUnavailable(address: SiteAddress, pointer: string) {
	const { host, port } = address;
	const shown = host.includes(':') ? `[${host}]` : host;
	const plain =
		port === undefined || address.scheme === 'https' || port === 443 ? `http://${shown}` : `http://${shown}:${port}`;
	return {
		code: 'site/tls-unavailable',
		severity: 'error' as const,
		pointer,
		message: `\`${formatSiteAddress(address)}\` would be served over HTTPS, which is not part of this build yet.`,
		hint:
			host === '' ? 'Write a plain port, such as `:8080`.' : `Write \`${plain}\` or a port alone, such as \`:8080\`.`,
	};
}

function listenerOf(listeners: Map<string, Listener>, host: string, port: number): Listener {
	const key = `tcp/${host.includes(':') ? `[${host}]` : host}:${port}`;
	let listener = listeners.get(key);
	if (!listener) {
		listener = { key, host, port, entries: [], taken: new Map(), bySite: new Map() };
		listeners.set(key, listener);
	}
	return listener;
}

function addTo(listener: Listener, address: SiteAddress, site: number, pointer: string, report: Report): void {
	const host = address.host === '*' ? '' : address.host;
	const key = host + address.path;
	const earlier = listener.taken.get(key);
	if (earlier && earlier.site !== site) {
		report({
			code: 'site/ambiguous',
			severity: 'error',
			pointer,
			message: `ambiguous site definition: ${formatSiteAddress(address)}`,
			hint: `Site ${earlier.site + 1} has the same address on the same listener; one of them would never be reached.`,
		});
		return;
	}
	if (!earlier) listener.taken.set(key, { site, pointer });
	const entryKey = `${site} ${address.path}`;
	let entry = listener.bySite.get(entryKey);
	if (!entry) {
		entry = { site, hosts: [], path: address.path, catchAll: false };
		listener.bySite.set(entryKey, entry);
		listener.entries.push(entry);
	}
	if (host === '') entry.catchAll = true;
	else if (!entry.hosts.includes(host)) entry.hosts.push(host);
}

function byKey(a: Listener, b: Listener): number {
	return a.key < b.key ? -1 : 1;
}

function finish(listener: Listener): ListenerSpec {
	const ranked = listener.entries.map(entry => ({ entry, rank: specificity(entry) }));
	ranked.sort((a, b) => {
		if (a.entry.catchAll !== b.entry.catchAll) return a.entry.catchAll ? 1 : -1;
		if (a.rank.length !== b.rank.length) return b.rank.length - a.rank.length;
		if (a.rank.wild !== b.rank.wild) return a.rank.wild ? 1 : -1;
		return b.entry.path.length - a.entry.path.length;
	});
	const sites: ListenedSite[] = ranked.map(({ entry }) => ({
		site: entry.site,
		hosts: entry.catchAll ? [] : entry.hosts,
		paths: entry.path === '' ? [] : [entry.path],
	}));
	return { key: listener.key, host: listener.host, port: listener.port, scheme: 'http', sites };
}

/** The most specific host: the longest, stars not counted; of two as long the exact one. */
function specificity(entry: ListenedEntry): { length: number; wild: boolean } {
	let length = -1;
	let wild = true;
	for (const host of entry.hosts) {
		const own = host.includes('*') ? host.replaceAll('*', '').length : host.length;
		const isWild = host.includes('*');
		if (own > length || (own === length && wild && !isWild)) {
			length = own;
			wild = isWild;
		}
	}
	return { length, wild };
}
