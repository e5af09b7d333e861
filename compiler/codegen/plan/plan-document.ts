/** Plans the listeners of a checked document: which sites each listener serves, in order of precedence. */
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
import { hostOfBind } from '../../schema/check-values.ts';
import type { ListenedSite, ListenerSpec, Plan } from './plan.ts';
import { type PlanFiles, type PlannedTls, planTls, type TlsListener } from './plan-tls.ts';
import { type PlannedSocket, plannedSocket, socketText } from './planned-socket.ts';
import { REDIRECT_ALL_HOSTS } from './redirects.ts';

interface Listener {
	readonly socket: PlannedSocket;
	/** All addresses that use this listener. */
	readonly addresses: PlacedAddress[];
	readonly entries: ListenedEntry[];
	/** The first address with each host and path on this listener, to detect ambiguous addresses. */
	readonly addressByHostAndPath: Map<string, PlacedAddress>;
	/** Entries by site and path. An entry groups the hosts of a site that have the same path. */
	readonly entryBySiteAndPath: Map<string, ListenedEntry>;
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
	isCatchAll: boolean;
}

/**
 * Plans the listeners and the TLS of a document. Reports mistakes at `/sites/N/addresses/M` and `/sites/N/tls`, and omits the
 * entries with mistakes. Without `files`, certificate files are not read.
 */
export function planDocument(document: Document, report: Report, files?: PlanFiles): Plan {
	const ports: SchemePorts = { http: document.settings?.http_port ?? 80, https: document.settings?.https_port ?? 443 };
	const listeners = placeAddresses(document, ports, report);
	const sites = document.sites ?? [];
	const tlsListeners: TlsListener[] = [];
	const schemeByListener = new Map<string, 'http' | 'https'>();
	for (const listener of listeners.values()) {
		const scheme = schemeOf(listener, sites, ports, report);
		schemeByListener.set(listener.socket.key, scheme);
		if (scheme === 'https') tlsListeners.push(buildTlsListener(listener, sites));
	}
	refuseUnservedTls(document, listeners, schemeByListener, report);
	const tls = planTls(document, tlsListeners, files, report);
	const listenerSpecs = [...listeners.values()].map(listener => {
		const { socket } = listener;
		const scheme = schemeByListener.get(socket.key)!;
		const listenerTls = tls.listeners.get(socket.key);
		const protocols = protocolsOfBinds(listener, document);
		if (scheme === 'https') {
			refuseTlsWithoutProtocols(listener, protocols, document, report);
			if (socket.host.includes('/')) refuseHttp3(listener, protocols, document, report);
		}
		return {
			...{ ...socket, scheme, sites: servedSites(listener) },
			...(listenerTls ? { tls: listenerTls } : {}),
			...(protocols.length > 0 ? { protocols } : {}),
		};
	});
	const specsWithRedirects = withRedirects(listenerSpecs, tls, ports);
	return { document, listeners: specsWithRedirects.sort(compareKeys), certificates: tls.certificates };
}

function placeAddresses(document: Document, ports: SchemePorts, report: Report): Map<string, Listener> {
	const defaultBind = document.settings?.default_bind ?? [];
	const listeners = new Map<string, Listener>();
	(document.sites ?? []).forEach((site, siteIndex) => {
		const hosts = (site.bind?.length ? site.bind : defaultBind.length > 0 ? defaultBind : ['']).map(hostOfBind);
		// Invalid hosts have already been reported (see `checkValues`).
		const boundHosts = hosts.map(parseListenHost).filter(isListenHost);
		site.addresses.forEach((text, addressIndex) => {
			const pointer = `/sites/${siteIndex}/addresses/${addressIndex}`;
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
			for (const host of boundHosts) {
				const listener = getOrCreateListener(
					listeners,
					plannedSocket(host, effectivePort(address, ports)),
					pointer,
					report,
				);
				addAddress(listener, address, siteIndex, pointer, report);
			}
		});
	});
	return listeners;
}

/** Returns all protocols named in the `bind` entries for a listener. `settings.default_bind` applies to sites without `bind`. */
function protocolsOfBinds({ socket, addresses }: Listener, { settings, sites }: Document): string[] {
	const protocols = new Set<string>();
	for (const { site } of addresses) {
		const siteBind = sites![site]!.bind;
		for (const entry of (siteBind?.length ? siteBind : settings?.default_bind) ?? []) {
			if (typeof entry !== 'object') continue;
			const host = parseListenHost(entry.host);
			if (!isListenHost(host) || plannedSocket(host, socket.port).key !== socket.key) continue;
			for (const protocol of entry.protocols) protocols.add(protocol);
		}
	}
	return [...protocols];
}

/** Reports a TLS listener with neither `h1` nor `h2`. `h2c` does not work over TLS, and `h3` is announced over `h1` or `h2`. */
function refuseTlsWithoutProtocols(
	listener: Listener,
	boundProtocols: readonly string[],
	document: Document,
	report: Report,
): void {
	const { socket } = listener;
	const { protocols = DEFAULT_PROTOCOLS } = serverSettingsFor(document.settings ?? {}, socket);
	const usedProtocols = boundProtocols.length > 0 ? boundProtocols : protocols;
	if (usedProtocols.includes('h1') || usedProtocols.includes('h2')) return;
	report({
		code: 'servers/h2c-over-tls',
		severity: 'error',
		pointer: protocolsPointer(listener, boundProtocols, document),
		message: usedProtocols.includes('h3')
			? `[${socketText(socket)}] serves HTTP/3 only, but clients learn of HTTP/3 over TCP.`
			: `[${socketText(socket)}] is served over TLS, where \`h2c\` is not available: no client could be served.`,
		hint: 'Add `h1` or `h2`, or give the sites an http:// address.',
	});
}

/**
 * Reports a listener that lists `h3` but has no IP address and port. Ignores `h3` in an item of `servers` without a listener,
 * because the item applies to all listeners.
 */
function refuseHttp3(listener: Listener, boundProtocols: readonly string[], document: Document, report: Report): void {
	const { socket } = listener;
	const serverSettings = serverSettingsFor(document.settings ?? {}, socket);
	const appliesToAll = serverSettings.listener === undefined;
	if (
		!(boundProtocols.length > 0 ? boundProtocols : appliesToAll ? [] : (serverSettings.protocols ?? [])).includes('h3')
	)
		return;
	report({
		code: 'servers/http3-without-address',
		severity: 'error',
		pointer: protocolsPointer(listener, boundProtocols, document),
		message: `[${socketText(socket)}] cannot serve HTTP/3 (\`h3\`): UDP needs an IP address and a port.`,
		hint: 'Leave `h3` out: h1 and h2 are served there.',
	});
}

/** Returns the pointer to the protocols of a listener. `boundProtocols` are the protocols that `bind` names. */
function protocolsPointer(
	{ socket, addresses }: Listener,
	boundProtocols: readonly string[],
	{ settings, sites }: Document,
): string {
	if (boundProtocols.length === 0) {
		const servers = (settings?.servers ?? []) as readonly unknown[];
		return `/settings/servers/${servers.indexOf(serverSettingsFor(settings ?? {}, socket))}/protocols`;
	}
	const bindingAddress = addresses.find(({ site }) => sites![site]!.bind?.some(entry => typeof entry === 'object'));
	return bindingAddress ? `/sites/${bindingAddress.site}/bind` : '/settings/default_bind';
}

/** Reports whether an address is served without TLS, because of its scheme or the HTTP port, whatever else is configured. */
function isPlainHttp(address: SiteAddress, ports: SchemePorts): boolean {
	return address.scheme === 'http' || (address.scheme === undefined && effectivePort(address, ports) === ports.http);
}

/**
 * Returns the scheme of a listener. Reports the first address whose scheme differs from the scheme of the addresses before it.
 */
function schemeOf(
	{ socket, addresses }: Listener,
	sites: readonly Site[],
	ports: SchemePorts,
	report: Report,
): 'http' | 'https' {
	const forcesTls = addresses.some(
		({ site, address }) => sites[site]!.tls !== undefined && !isPlainHttp(address, ports),
	);
	let scheme: 'http' | 'https' | undefined;
	for (const { address, pointer } of addresses) {
		const isTls = !isPlainHttp(address, ports) && (forcesTls || needsTls(address, ports));
		const addressScheme = isTls ? 'https' : 'http';
		scheme ??= addressScheme;
		if (scheme === addressScheme) continue;
		const socketName = socketText(socket);
		const schemeName = scheme.toUpperCase();
		report({
			code: 'address/http-and-https',
			severity: 'error',
			pointer,
			message: `server listening on [${socketName}] is configured for ${schemeName} and cannot natively multiplex HTTP and HTTPS: ${address.text} (try specifying ${scheme}:// in the address)`,
			hint: 'Give one of them a different port.',
		});
		break;
	}
	return scheme ?? 'http';
}

/** Reports `tls` in a site without a TLS listener, where it would have no effect. */
function refuseUnservedTls(
	document: Document,
	listeners: ReadonlyMap<string, Listener>,
	schemeByListener: ReadonlyMap<string, 'http' | 'https'>,
	report: Report,
): void {
	const tlsSites = new Set<number>();
	const plainListeners = new Map<number, Listener>();
	for (const listener of listeners.values()) {
		for (const { site } of listener.addresses) {
			if (schemeByListener.get(listener.socket.key) === 'https') tlsSites.add(site);
			else if (!plainListeners.has(site)) plainListeners.set(site, listener);
		}
	}
	(document.sites ?? []).forEach(({ tls }, site) => {
		const listener = plainListeners.get(site);
		if (!tls || tlsSites.has(site) || !listener) return;
		report({
			code: 'tls/on-http',
			severity: 'error',
			pointer: `/sites/${site}/tls`,
			message: `server listening on [${socketText(listener.socket)}] is HTTP, but attempts to configure TLS connection policies`,
			hint: 'Write an https:// address, or leave `tls` out.',
		});
	});
}

function buildTlsListener(listener: Listener, sites: readonly Site[]): TlsListener {
	const { key, host, port } = listener.socket;
	const addresses = listener.addresses.map(({ site, address, pointer }) => ({
		site,
		host: address.host === '*' ? '' : address.host,
		tls: sites[site]!.tls,
		boundHost: host,
		port,
		pointer,
	}));
	return { key, host, port, addresses };
}

/**
 * Adds the redirects to HTTPS. On an existing listener, they precede the sites that match every host; otherwise a new listener is
 * added.
 */
function withRedirects(specs: readonly ListenerSpec[], tls: PlannedTls, ports: SchemePorts): ListenerSpec[] {
	const specsByKey = new Map(specs.map(spec => [spec.key, spec]));
	const managesCertificates = tls.certificates.managed.policies.length > 0;
	for (const [host, redirectSites] of tls.redirects) {
		// Unix sockets and passed descriptors have no corresponding HTTP port.
		if (host.includes('/')) continue;
		const socket = plannedSocket({ network: 'tcp', host, ipv6Only: false }, ports.http);
		const { key } = socket;
		const existingSpec = specsByKey.get(key);
		if (!existingSpec) {
			const allRedirects =
				redirectSites.at(-1)?.hosts.length === 0 ? redirectSites : [...redirectSites, REDIRECT_ALL_HOSTS];
			specsByKey.set(key, { ...socket, scheme: 'http', sites: allRedirects });
			continue;
		}
		if (existingSpec.scheme === 'https' || !managesCertificates) continue;
		const catchAllIndex = existingSpec.sites.findIndex(({ hosts }) => hosts.length === 0);
		const insertIndex = catchAllIndex === -1 ? existingSpec.sites.length : catchAllIndex;
		const sites = [
			...existingSpec.sites.slice(0, insertIndex),
			...redirectSites,
			...existingSpec.sites.slice(insertIndex),
			REDIRECT_ALL_HOSTS,
		];
		specsByKey.set(key, { ...existingSpec, sites });
	}
	return [...specsByKey.values()];
}

function getOrCreateListener(
	listeners: Map<string, Listener>,
	socket: PlannedSocket,
	pointer: string,
	report: Report,
): Listener {
	let listener = listeners.get(socket.key);
	if (!listener) {
		listener = { socket, addresses: [], entries: [], addressByHostAndPath: new Map(), entryBySiteAndPath: new Map() };
		listeners.set(socket.key, listener);
	}
	if (listener.socket.mode !== socket.mode) {
		const message = `Two sites give \`${socket.host}\` different permissions.`;
		const hint = 'Use the same permissions wherever the socket is named.';
		report({ code: 'bind/mode', severity: 'error', pointer, message, hint });
	}
	return listener;
}

function addAddress(listener: Listener, address: SiteAddress, site: number, pointer: string, report: Report): void {
	const { host } = address;
	const key = host + address.path;
	const earlierAddress = listener.addressByHostAndPath.get(key);
	if (earlierAddress && earlierAddress.site !== site) {
		report({
			code: 'site/ambiguous',
			severity: 'error',
			pointer,
			message: `ambiguous site definition: ${formatSiteAddress(address)}`,
			hint: `Another site has the address ${formatSiteAddress(earlierAddress.address)}, which is the same on this listener, so one of the two would be unreachable.`,
			relatedPointer: { pointer: earlierAddress.pointer, message: 'the other site with this address' },
		});
		return;
	}
	const placedAddress = { site, address, pointer };
	listener.addresses.push(placedAddress);
	if (!earlierAddress) listener.addressByHostAndPath.set(key, placedAddress);
	const entryKey = `${site} ${address.path}`;
	let entry = listener.entryBySiteAndPath.get(entryKey);
	if (!entry) {
		entry = { site, hosts: [], path: address.path, isCatchAll: false };
		listener.entryBySiteAndPath.set(entryKey, entry);
		listener.entries.push(entry);
	}
	if (host === '') entry.isCatchAll = true;
	else if (!entry.hosts.includes(host)) entry.hosts.push(host);
}

function compareKeys(a: ListenerSpec, b: ListenerSpec): number {
	return a.key < b.key ? -1 : 1;
}

function servedSites(listener: Listener): ListenedSite[] {
	const rankedEntries = listener.entries.map(entry => ({ entry, rank: specificity(entry) }));
	rankedEntries.sort((a, b) => {
		if (a.entry.isCatchAll !== b.entry.isCatchAll) return a.entry.isCatchAll ? 1 : -1;
		if (a.rank.length !== b.rank.length) return b.rank.length - a.rank.length;
		if (a.rank.isWild !== b.rank.isWild) return a.rank.isWild ? 1 : -1;
		return b.entry.path.length - a.entry.path.length;
	});
	return rankedEntries.map(({ entry }) => ({
		site: entry.site,
		hosts: entry.isCatchAll ? [] : entry.hosts,
		paths: entry.path === '' ? [] : [entry.path],
	}));
}

/**
 * Measures how specific the hosts of an entry are, by its most specific host: the longest one, not counting `*`, and an exact one
 * rather than a wildcard of the same length.
 */
function specificity(entry: ListenedEntry): { length: number; isWild: boolean } {
	let longestLength = -1;
	let isWild = true;
	for (const host of entry.hosts) {
		const hostLength = host.includes('*') ? host.replaceAll('*', '').length : host.length;
		const hasWildcard = host.includes('*');
		if (hostLength > longestLength || (hostLength === longestLength && isWild && !hasWildcard)) {
			longestLength = hostLength;
			isWild = hasWildcard;
		}
	}
	return { length: longestLength, isWild };
}
