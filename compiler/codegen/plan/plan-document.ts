/** Plans the listeners of a checked document: which sites each serves, in order of precedence. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Document, Site } from '../../document/document.ts';
import { isListenHost, parseListenHost } from '../../document/listen-host.ts';
import { serverSettingsFor } from '../../document/server-settings.ts';
import {
	effectivePort,
	formatSiteAddress,
	isSiteAddress,
	needsTls,
	parseSiteAddress,
	type SchemePorts,
	type SiteAddress,
	usesOtherSchemesPort,
} from '../../document/site-address.ts';
import { DEFAULT_PROTOCOLS } from '../../modules/options/servers/protocols.ts';
import { bindHost } from '../../schema/check-values.ts';
import type { ListenedSite, ListenerSpec, Plan } from './plan.ts';
import { type PlanFiles, type PlannedTls, planTls, type TlsListener } from './plan-tls.ts';
import { type PlannedSocket, plannedSocket, socketText } from './planned-socket.ts';
import { REDIRECT_ALL_HOSTS } from './redirects.ts';

interface Listener {
	readonly socket: PlannedSocket;
	/** All addresses that use this listener. */
	readonly addresses: PlacedAddress[];
	readonly entries: ListenedEntry[];
	/** Maps addresses without a scheme to their site. */
	readonly taken: Map<string, { readonly site: number; readonly pointer: string }>;
	/** The entry of a site and path, which groups the hosts of one site. */
	readonly bySite: Map<string, ListenedEntry>;
}

interface PlacedAddress {
	readonly site: number;
	readonly address: SiteAddress;
	readonly pointer: string;
}

interface ListenedEntry {
	readonly site: number;
	hosts: string[];
	readonly path: string;
	catchAll: boolean;
}

/**
 * Plans the listeners and the TLS of a document. Reports mistakes at `/sites/N/addresses/M` and `/sites/N/tls` and leaves the
 * mistaken entries out. Without `files`, certificate files are not read.
 */
export function planDocument(document: Document, report: Report, files?: PlanFiles): Plan {
	const ports: SchemePorts = { http: document.settings?.http_port ?? 80, https: document.settings?.https_port ?? 443 };
	const listeners = placeAddresses(document, ports, report);
	const sites = document.sites ?? [];
	const secure: TlsListener[] = [];
	const schemes = new Map<string, 'http' | 'https'>();
	for (const listener of listeners.values()) {
		const scheme = schemeOf(listener, sites, ports, report);
		schemes.set(listener.socket.key, scheme);
		if (scheme === 'https') secure.push(tlsListener(listener, sites));
	}
	refuseIdleTls(document, listeners, schemes, report);
	const tls = planTls(document, secure, files, report);
	const specs = [...listeners.values()].map(listener => {
		const { socket } = listener;
		const scheme = schemes.get(socket.key)!;
		const handshakes = tls.listeners.get(socket.key);
		const protocols = spokenAt(listener, document);
		if (scheme === 'https') {
			refuseMuteTls(listener, protocols, document, report);
			if (socket.host.includes('/')) refuseHttp3(listener, protocols, document, report);
		}
		return {
			...{ ...socket, scheme, sites: servedSites(listener) },
			...(handshakes ? { tls: handshakes } : {}),
			...(protocols.length > 0 ? { protocols } : {}),
		};
	});
	const redirected = withRedirects(specs, tls, ports);
	return { document, listeners: redirected.sort(byKey), certificates: tls.certificates };
}

function placeAddresses(document: Document, ports: SchemePorts, report: Report): Map<string, Listener> {
	const everywhere = document.settings?.default_bind ?? [];
	const listeners = new Map<string, Listener>();
	(document.sites ?? []).forEach((site, index) => {
		const hosts = (site.bind?.length ? site.bind : everywhere.length > 0 ? everywhere : ['']).map(bindHost);
		// Invalid hosts have already been reported (see `checkValues`).
		const bound = hosts.map(parseListenHost).filter(isListenHost);
		site.addresses.forEach((text, at) => {
			const pointer = `/sites/${index}/addresses/${at}`;
			const address = parseSiteAddress(text);
			if (!isSiteAddress(address)) {
				report({ ...address, severity: 'error', pointer });
				return;
			}
			if (address.host.includes('{')) {
				const message = 'A placeholder cannot be used in a site address: listeners must be known at load time.';
				report({ code: 'address/placeholder', severity: 'error', pointer, message });
				return;
			}
			if (usesOtherSchemesPort(address, ports)) {
				const message = `[${text}] scheme and port violate convention`;
				report({ code: 'address/scheme-and-port', severity: 'error', pointer, message });
				return;
			}
			for (const host of bound) {
				const listener = listenerOf(listeners, plannedSocket(host, effectivePort(address, ports)), pointer, report);
				addTo(listener, address, index, pointer, report);
			}
		});
	});
	return listeners;
}

/** Returns the protocols that the `bind`s of a listener's sites name, combined. */
function spokenAt({ socket, addresses }: Listener, { settings, sites }: Document): string[] {
	const spoken = new Set<string>();
	for (const { site } of addresses) {
		const own = sites![site]!.bind;
		for (const entry of (own?.length ? own : settings?.default_bind) ?? []) {
			if (typeof entry !== 'object') continue;
			const host = parseListenHost(entry.host);
			if (!isListenHost(host) || plannedSocket(host, socket.port).key !== socket.key) continue;
			for (const protocol of entry.protocols) spoken.add(protocol);
		}
	}
	return [...spoken];
}

/** Rejects a TLS listener without any protocol available over TLS: it could serve no client. */
function refuseMuteTls(listener: Listener, bound: readonly string[], document: Document, report: Report): void {
	const { socket } = listener;
	const { protocols = DEFAULT_PROTOCOLS } = serverSettingsFor(document.settings ?? {}, socket);
	const spoken = bound.length > 0 ? bound : protocols;
	if (spoken.includes('h1') || spoken.includes('h2')) return;
	report({
		code: 'servers/h2c-over-tls',
		severity: 'error',
		pointer: protocolsPointer(listener, bound, document),
		message: spoken.includes('h3')
			? `[${socketText(socket)}] serves HTTP/3 only, but clients learn of HTTP/3 over TCP.`
			: `[${socketText(socket)}] is served over TLS, where \`h2c\` is not available: no client could be served.`,
		hint: 'Add `h1` or `h2`, or give the sites an http:// address.',
	});
}

/**
 * Rejects a listener that lists `h3` explicitly but has no IP address and port. An item of `servers` without a listener applies
 * to all listeners, so its `h3` does not count as explicit.
 */
function refuseHttp3(listener: Listener, bound: readonly string[], document: Document, report: Report): void {
	const { socket } = listener;
	const server = serverSettingsFor(document.settings ?? {}, socket);
	const general = server.listener === undefined;
	if (!(bound.length > 0 ? bound : general ? [] : (server.protocols ?? [])).includes('h3')) return;
	report({
		code: 'servers/http3-without-address',
		severity: 'error',
		pointer: protocolsPointer(listener, bound, document),
		message: `[${socketText(socket)}] cannot serve HTTP/3 (\`h3\`): UDP needs an IP address and a port.`,
		hint: 'Leave `h3` out: h1 and h2 are served there.',
	});
}

/** Returns the pointer to where a listener's protocols are written; `bound` are those that `bind` names. */
function protocolsPointer(
	{ socket, addresses }: Listener,
	bound: readonly string[],
	{ settings, sites }: Document,
): string {
	if (bound.length === 0) {
		const servers = (settings?.servers ?? []) as readonly unknown[];
		return `/settings/servers/${servers.indexOf(serverSettingsFor(settings ?? {}, socket))}/protocols`;
	}
	const own = addresses.find(({ site }) => sites![site]!.bind?.some(entry => typeof entry === 'object'));
	return own ? `/sites/${own.site}/bind` : '/settings/default_bind';
}

/** Reports whether an address is served without TLS because of its scheme or the HTTP port, whatever else is configured. */
function isPlain(address: SiteAddress, ports: SchemePorts): boolean {
	return address.scheme === 'http' || (address.scheme === undefined && effectivePort(address, ports) === ports.http);
}

/** Returns the scheme of a listener; reports addresses that contradict the first. */
function schemeOf(
	{ socket, addresses }: Listener,
	sites: readonly Site[],
	ports: SchemePorts,
	report: Report,
): 'http' | 'https' {
	const forced = addresses.some(({ site, address }) => sites[site]!.tls !== undefined && !isPlain(address, ports));
	let scheme: 'http' | 'https' | undefined;
	for (const { address, pointer } of addresses) {
		const tls = !isPlain(address, ports) && (forced || needsTls(address, ports));
		const wanted = tls ? 'https' : 'http';
		scheme ??= wanted;
		if (scheme === wanted) continue;
		const shown = socketText(socket);
		const other = scheme.toUpperCase();
		report({
			code: 'address/http-and-https',
			severity: 'error',
			pointer,
			message: `server listening on [${shown}] is configured for ${other} and cannot natively multiplex HTTP and HTTPS: ${address.text} (try specifying ${scheme}:// in the address)`,
			hint: 'Give one of them a different port.',
		});
		break;
	}
	return scheme ?? 'http';
}

/** Rejects `tls` in a site without a TLS listener, where it would have no effect. */
function refuseIdleTls(
	document: Document,
	listeners: ReadonlyMap<string, Listener>,
	schemes: ReadonlyMap<string, 'http' | 'https'>,
	report: Report,
): void {
	const served = new Set<number>();
	const plain = new Map<number, Listener>();
	for (const listener of listeners.values()) {
		for (const { site } of listener.addresses) {
			if (schemes.get(listener.socket.key) === 'https') served.add(site);
			else if (!plain.has(site)) plain.set(site, listener);
		}
	}
	(document.sites ?? []).forEach(({ tls }, site) => {
		const listener = plain.get(site);
		if (!tls || served.has(site) || !listener) return;
		report({
			code: 'tls/on-http',
			severity: 'error',
			pointer: `/sites/${site}/tls`,
			message: `server listening on [${socketText(listener.socket)}] is HTTP, but attempts to configure TLS connection policies`,
			hint: 'Write an https:// address, or leave `tls` out.',
		});
	});
}

function tlsListener(listener: Listener, sites: readonly Site[]): TlsListener {
	const { key, host, port } = listener.socket;
	const addresses = listener.addresses.map(({ site, address, pointer }) => ({
		site,
		host: address.host === '*' ? '' : address.host,
		tls: sites[site]!.tls,
		bound: host,
		port,
		pointer,
	}));
	return { key, host, port, addresses };
}

/** Adds the redirects: before the sites for all hosts of an existing listener, or on a listener of their own. */
function withRedirects(specs: readonly ListenerSpec[], tls: PlannedTls, ports: SchemePorts): ListenerSpec[] {
	const result = new Map(specs.map(spec => [spec.key, spec]));
	const managed = tls.certificates.managed.policies.length > 0;
	for (const [host, entries] of tls.redirects) {
		// Only TCP ports have a corresponding HTTP port.
		if (host.includes('/')) continue;
		const socket = plannedSocket({ network: 'tcp', host, only6: false }, ports.http);
		const { key } = socket;
		const own = result.get(key);
		if (!own) {
			const all = entries.at(-1)?.hosts.length === 0 ? entries : [...entries, REDIRECT_ALL_HOSTS];
			result.set(key, { ...socket, scheme: 'http', sites: all });
			continue;
		}
		if (own.scheme === 'https' || !managed) continue;
		const everyHost = own.sites.findIndex(({ hosts }) => hosts.length === 0);
		const at = everyHost === -1 ? own.sites.length : everyHost;
		const sites = [...own.sites.slice(0, at), ...entries, ...own.sites.slice(at), REDIRECT_ALL_HOSTS];
		result.set(key, { ...own, sites });
	}
	return [...result.values()];
}

function listenerOf(
	listeners: Map<string, Listener>,
	socket: PlannedSocket,
	pointer: string,
	report: Report,
): Listener {
	let listener = listeners.get(socket.key);
	if (!listener) {
		listener = { socket, addresses: [], entries: [], taken: new Map(), bySite: new Map() };
		listeners.set(socket.key, listener);
	}
	if (listener.socket.mode !== socket.mode) {
		const message = `Two sites give \`${socket.host}\` different permissions.`;
		const hint = 'Use the same permissions wherever the socket is named.';
		report({ code: 'bind/mode', severity: 'error', pointer, message, hint });
	}
	return listener;
}

function addTo(listener: Listener, address: SiteAddress, site: number, pointer: string, report: Report): void {
	const { host } = address;
	const key = host + address.path;
	const earlier = listener.taken.get(key);
	if (earlier && earlier.site !== site) {
		report({
			code: 'site/ambiguous',
			severity: 'error',
			pointer,
			message: `ambiguous site definition: ${formatSiteAddress(address)}`,
			hint: `Site ${earlier.site + 1} has the same address on the same listener, so one of them would be unreachable.`,
		});
		return;
	}
	listener.addresses.push({ site, address, pointer });
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

function byKey(a: ListenerSpec, b: ListenerSpec): number {
	return a.key < b.key ? -1 : 1;
}

function servedSites(listener: Listener): ListenedSite[] {
	const ranked = listener.entries.map(entry => ({ entry, rank: specificity(entry) }));
	ranked.sort((a, b) => {
		if (a.entry.catchAll !== b.entry.catchAll) return a.entry.catchAll ? 1 : -1;
		if (a.rank.length !== b.rank.length) return b.rank.length - a.rank.length;
		if (a.rank.wild !== b.rank.wild) return a.rank.wild ? 1 : -1;
		return b.entry.path.length - a.entry.path.length;
	});
	return ranked.map(({ entry }) => ({
		site: entry.site,
		hosts: entry.catchAll ? [] : entry.hosts,
		paths: entry.path === '' ? [] : [entry.path],
	}));
}

/** Measures how specific a host is: longer hosts, not counting `*`, come first; of equally long ones, an exact host does. */
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
