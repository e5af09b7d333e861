/** Writes the `server` blocks of an nginx.conf as sites. */
import { type ConfigfileWriter, type Lines, Slot, word } from './configfile-writer.ts';
import type { ImportContext, ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapedRegexp, regexpOf, translated, type VariableLookup, Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { cacheOptionLines, cacheZones } from './write-cache.ts';
import { ErrorRules } from './write-error-pages.ts';
import { textTypeOf, writeCompression, writeFields } from './write-headers.ts';
import {
	isKnownDirective,
	locationsOf,
	mayBelongElsewhere,
	untranslatedReason,
	writeLocation,
	writeLocations,
} from './write-locations.ts';
import { writeLogs } from './write-logs.ts';
import { MapTable } from './write-maps.ts';
import { writeReplacements } from './write-replacements.ts';
import { orKeep, writeRewrites } from './write-rewrites.ts';
import { Pools } from './write-upstream.ts';

/** An address and port on which a `server` block listens. */
interface ListenAddress {
	readonly port: string;
	/** The address to listen on; undefined for all interfaces. */
	readonly host: string | undefined;
	readonly tls: boolean;
	readonly isDefault: boolean;
	/** The `listen` directive; undefined if the server has none that the import can translate. */
	readonly directive: NginxDirective | undefined;
}

interface Site {
	readonly server: NginxDirective;
	readonly listenAddresses: readonly ListenAddress[];
	readonly names: readonly string[];
	/**
	 * Expressions for names that a site address cannot express. `label` is the prefix of the placeholders for groups, and `written`
	 * the expression as in nginx.
	 */
	readonly patterns: readonly { readonly label: string; readonly pattern: string; readonly written: string }[];
}

/** A named route that several places of a site run. */
interface Route {
	readonly name: string;
	readonly lines: Lines;
}

/** Reports whether a server listens on every combination of its addresses and ports, as a site of a Configfile does. */
function listensOnAllCombinations(listenAddresses: readonly ListenAddress[]): boolean {
	const hosts = new Set(listenAddresses.map(({ host }) => host));
	const ports = new Set(listenAddresses.map(({ port }) => port));
	const pairs = new Set(listenAddresses.map(({ host, port }) => `${host ?? '*'} ${port}`));
	return pairs.size === hosts.size * ports.size && (hosts.size === 1 || !hosts.has(undefined));
}

/** Writes the global options, pools, maps and sites for an `http` block. */
export function writeServers(http: readonly NginxDirective[], out: ConfigfileWriter): void {
	const sites: Site[] = http
		.filter(({ name }) => name === 'server')
		.map(server => ({ server, listenAddresses: listenAddressesOf(server, out), ...namesOf(server, out) }));
	out.line('# Imported from nginx. A comment that begins with `nginx:` is a directive without a counterpart.');
	const headComments = out.slot();
	if (hasPublicName(sites)) headComments.addLine('# lint: off-file tls/off-on-public-name -- as the nginx.conf says');
	if (setsFields(http))
		headComments.addLine(
			'# lint: off-file header/after-answer -- as in nginx, errors and other locations have fields of their own',
		);
	out.line('');
	const scope = new Scope(undefined, http);
	const allDirectives = [...http, ...sites.flatMap(({ server }) => server.block!)];
	const trustedProxies = allDirectives.filter(({ name }) => name === 'set_real_ip_from');
	const cacheZonesByName = cacheZones(http);
	writeOptions(sites, allDirectives, trustedProxies, cacheOptionLines(cacheZonesByName, http, out), out);
	const placeholder = trustedProxies.length > 0 ? '{client_ip}' : '{remote_host}';
	const directivesByArgument = (kind: string): Map<string, NginxDirective> =>
		new Map(http.filter(({ name }) => name === kind).map(directive => [directive.args[0] ?? '', directive]));
	const zones = new Map(
		http
			.filter(({ name }) => /^limit_(?:req|conn)_zone$/.test(name))
			.map(directive => [/ zone=([^:\s]+)/.exec(directive.text)?.[1] ?? '', directive]),
	);
	const address: VariableLookup = name => (/^(?:binary_)?remote_addr$/.test(name) ? placeholder : undefined);
	const matcher = trustedProxies.length > 0 ? 'client_ip' : 'remote_ip';
	const maps = new MapTable(http, out, { placeholder, matcher });
	const pools = new Pools(http, out, new Variables([address]));
	const cx: ImportContext = {
		...{ out, scope, pools, maps, zones, head: headComments },
		cacheZones: cacheZonesByName,
		logFormats: directivesByArgument('log_format'),
		address: { placeholder, matcher },
	};
	const routes: Route[] = [];
	const lines = out.capture(() => {
		const preparedSites = sites.map((site, index) => prepareSite(site, index, sites, cx, routes));
		for (const site of preparedSites) writeSite(site, preparedSites, cx);
	});
	maps.write();
	pools.write();
	out.append(lines);
	for (const route of routes) {
		out.line('');
		out.block(`&(${route.name})`, () => out.append(route.lines));
	}
	const usedElsewhere: ReadonlySet<string> = new Set([
		'server',
		'map',
		'geo',
		'split_clients',
		'upstream',
		'limit_req_zone',
		'limit_conn_zone',
		'log_format',
	]);
	for (const directive of http)
		if (!usedElsewhere.has(directive.name) && !scope.isInherited(directive))
			out.keep(directive, untranslatedReason(directive.name));
}

function setsFields(directives: readonly NginxDirective[]): boolean {
	return directives.some(({ name, block }) => name === 'add_header' || name === 'expires' || setsFields(block ?? []));
}

/** Writes the global options. */
function writeOptions(
	sites: readonly Site[],
	directives: readonly NginxDirective[],
	trustedProxies: readonly NginxDirective[],
	cacheLines: readonly string[],
	out: ConfigfileWriter,
): void {
	const lines: string[] = [...cacheLines];
	if (sites.some(({ listenAddresses }) => listenAddresses.some(({ tls }) => tls)))
		lines.push('auto_https disable_redirects');
	const ranges = trustedProxies.map(({ args }) => args[0] ?? '').filter(range => /^[\d.:a-fA-F/]+$/.test(range));
	if (ranges.length > 0) {
		const field = directives.find(({ name }) => name === 'real_ip_header');
		lines.push('servers {', `\ttrusted_proxies static ${[...new Set(ranges)].join(' ')}`, '\ttrusted_proxies_strict');
		if (field && /^[\w-]+$/.test(field.args[0] ?? '') && field.args[0] !== 'proxy_protocol')
			lines.push(`\tclient_ip_headers ${field.args[0]}`);
		lines.push('}');
		for (const directive of directives)
			if (['real_ip_header', 'real_ip_recursive', 'set_real_ip_from'].includes(directive.name)) out.count(directive);
	}
	if (lines.length === 0) return;
	out.block('', () => {
		for (const line of lines) out.line(line);
	});
	out.line('');
}

/** A site whose content has been captured but not written yet. */
interface PreparedSite extends Site {
	readonly addresses: readonly string[];
	/** The ports for which the server is nginx's default server. */
	readonly defaultPorts: ReadonlySet<string>;
	/** Name of the route with the site's content; undefined if only this site uses the content. */
	readonly route: string | undefined;
	readonly body: Lines;
	readonly context: ServerContext;
	/** The `handle_errors` lines of the site. */
	readonly errorLines: Lines;
}

function prepareSite(
	site: Site,
	index: number,
	sites: readonly Site[],
	cx: ImportContext,
	routes: Route[],
): PreparedSite {
	const { out } = cx;
	const { server, listenAddresses, names } = site;
	const defaultSiteIndex = (port: string): number => {
		const markedIndex = sites.findIndex(other => other.listenAddresses.some(one => one.port === port && one.isDefault));
		return markedIndex !== -1
			? markedIndex
			: sites.findIndex(other => other.listenAddresses.some(one => one.port === port));
	};
	const addresses = new Set<string>();
	const defaultOf = new Set<string>();
	for (const { port, tls } of listenAddresses) {
		const scheme = tls ? 'https' : 'http';
		for (const name of names) addresses.add(`${scheme}://${name}:${port}`);
		if (defaultSiteIndex(port) !== index) continue;
		defaultOf.add(port);
		addresses.add(`${scheme}://:${port}`);
	}
	const isRoute = site.patterns.length > 0;
	const scope = new Scope(cx.scope, server.block!);
	const errorRules = new ErrorRules(isRoute ? new Scope(undefined, []) : scope, kind => out.unusedName(kind));
	const testableAddress = [...addresses].find(address => !address.includes('*') && address.startsWith('http:'));
	const startSlot = new Slot();
	const { context, finish } = serverContext(
		site,
		scope,
		cx,
		testableAddress?.replace('://:', '://127.0.0.1:'),
		routes,
		errorRules,
		startSlot,
	);
	const route = isRoute ? `server${index + 1}` : undefined;
	const isReached = addresses.size > 0 || isRoute;
	const rewrites = isReached ? writeServerRewrites(context, startSlot) : { lines: [], isAnswered: true };
	const locations = rewrites.isAnswered
		? []
		: out.capture(() => writeLocations(locationsOf(context.directives), context));
	const errorLines = isReached ? out.capture(() => errorRules.write(context)) : [];
	const locationsRoute = finish(locations);
	const body = out.capture(() => {
		out.append(rewrites.lines);
		if (locationsRoute !== undefined && !rewrites.isAnswered) out.line(`invoke ${locationsRoute}`);
		else if (locationsRoute === undefined) out.append(locations);
	});
	if (route !== undefined) routes.push({ name: route, lines: body });
	return { ...site, addresses: [...addresses], defaultPorts: defaultOf, route, body, context, errorLines: errorLines };
}

function writeSite(site: PreparedSite, sites: readonly PreparedSite[], cx: ImportContext): void {
	const { out } = cx;
	const { server, listenAddresses, addresses, route, context } = site;
	if (addresses.length === 0) {
		if (route === undefined)
			out.keep(server, 'it is reached by no name of its own, and another server is the default of its port');
		else out.count(server);
		return;
	}
	out.count(server);
	// A server whose name is a regular expression is chosen inside the site of its port's default server.
	const patternSites = sites.filter(
		other => other.route !== undefined && other.listenAddresses.some(({ port }) => site.defaultPorts.has(port)),
	);
	out.line('');
	out.block(addresses.join(', '), () => {
		const hosts = listenAddresses.map(({ host }) => host);
		if (!listensOnAllCombinations(listenAddresses)) {
			const reason = hosts.includes(undefined)
				? 'the site listens on all addresses, because another `listen` of this server does'
				: 'the site listens on each of its addresses with each of its ports';
			for (const { directive, host } of listenAddresses)
				if (directive && host !== undefined) out.keepInstead(directive, reason);
		}
		if (hosts.every(host => host !== undefined)) out.line(`bind ${[...new Set(hosts)].join(' ')}`);
		writeCertificate(
			context.scope,
			listenAddresses.some(one => one.tls),
			out,
		);
		writeLogs(context.scope, cx);
		for (const other of patternSites) {
			for (const { label, pattern } of other.patterns) {
				out.block(`when vars_regexp ${label} {host} ${word(pattern)}`, () => out.line(`invoke ${other.route}`));
			}
		}
		if (route === undefined) out.append(site.body);
		else out.line(`invoke ${route}`);
		for (const other of patternSites) if (other !== site) out.append(other.errorLines);
		out.append(site.errorLines);
	});
}

/** Writes the server's own lines, which run before a location is chosen. `isAnswered` is true if they answer every request. */
function writeServerRewrites(
	cx: ServerContext,
	startSlot: Slot,
): { readonly lines: Lines; readonly isAnswered: boolean } {
	const { out, directives, scope, variables } = cx;
	let isAnswered = false;
	const lines = out.capture(() => {
		out.slot(startSlot);
		for (const directive of directives)
			if (!scope.isInherited(directive) && !isKnownDirective(directive.name))
				out.keep(directive, untranslatedReason(directive.name));
		const root = scope.last('root');
		if (root) orKeep(root, out, () => out.line(`root ${word(translated(root.args[0] ?? '', variables))}`));
		if (!cx.locationsCompress) writeCompression(scope, out);
		const errorRules = cx.errorRulesName(scope);
		if (errorRules !== undefined) out.line(`vars errors ${errorRules}`);
		isAnswered = writeRewrites(directives, {
			...{ out, place: 'server' },
			condition: {
				variables,
				root: root?.args[0]?.replace(/\/$/, ''),
				referers: undefined,
				unusedName: kind => out.unusedName(kind),
			},
			chooseAgain: () => {},
			beforeAnswer: () => writeFields(scope, out, variables),
			beforeAnswerOf: inner => writeFields(new Scope(scope, inner), out, variables),
			beforeText: () => writeReplacements(scope, cx, variables),
			textType: textTypeOf(scope, out),
		});
	});
	return { lines, isAnswered };
}

function serverContext(
	site: Site,
	scope: Scope,
	cx: ImportContext,
	testAddress: string | undefined,
	routes: Route[],
	errorRules: ErrorRules,
	startSlot: Slot,
): { readonly context: ServerContext; readonly finish: (lines: Lines) => string | undefined } {
	const { out } = cx;
	const directives = site.server.block!;
	const locations = locationsOf(directives);
	const setDirectives = directivesNamed(directives, 'set');
	const authSets = [...directivesNamed(directives, 'auth_request_set'), ...cx.scope.all('auth_request_set')];
	const constants = new Map<string, string>();
	for (const directive of setDirectives) {
		const [name = '', value = ''] = directive.args;
		if (setDirectives.filter(({ args }) => args[0] === name).length === 1 && !value.includes('$'))
			constants.set(name.slice(1), value);
	}
	const lookUp: VariableLookup = name => {
		if (name === 'server_name') return site.names[0] ?? '';
		if (name === 'https') return site.listenAddresses.every(({ tls }) => tls) ? 'on' : '';
		if (/^(?:binary_)?remote_addr$/.test(name)) return cx.address.placeholder;
		if (name === 'document_root' && scope.lastArgument('root') !== undefined) return translatedRoot(scope);
		if (name === 'request_filename' && scope.lastArgument('root') !== undefined)
			return `${translatedRoot(scope)}{path}`;
		if (setDirectives.some(({ args }) => args[0] === `$${name}`)) return `{vars.${name}}`;
		const authField = authSets.find(({ args }) => args[0] === `$${name}`)?.args[1];
		if (authField?.startsWith('$upstream_http_')) return `{header.${authField.slice(15).replaceAll('_', '-')}}`;
		const mapPlaceholder = cx.maps.placeholder(name);
		if (!mapPlaceholder) return undefined;
		for (const snippet of mapPlaceholder.snippets) startSlot.addLine(`use ${snippet}`);
		return mapPlaceholder.placeholder;
	};
	let variables = new Variables([lookUp]);
	for (const { label, written } of site.patterns) variables = variables.withGroups(label, written);
	const hasInternal = directivesNamed(directives, 'internal').length > 0;
	const locationsCompress = directives.some(
		({ name, block }) =>
			name === 'location' && directivesNamed(block!, 'gzip').length + directivesNamed(block!, 'gzip_types').length > 0,
	);
	let route: string | undefined;
	const routesByLocation = new Map<string, string>();
	const context: ServerContext = {
		...cx,
		...{ directives, scope, variables, constants, testAddress, hasInternalLocation: hasInternal, locationsCompress },
		chooseLocation: () => {
			route ??= out.unusedName('locations');
			if (hasInternal) out.line('vars internal "yes"');
			out.line(`invoke ${route}`);
		},
		mayBelongElsewhere: (path: string, block: readonly NginxDirective[]) => mayBelongElsewhere(path, block, locations),
		exactLocation: (path: string) =>
			(
				locations.find(({ kind, pattern }) => kind === 'exact' && pattern === path) ??
				locations.find(({ pattern }) => pattern === path)
			)?.directive,
		routeOf: (name: string): string => {
			const existingRoute = routesByLocation.get(name);
			if (existingRoute !== undefined) return existingRoute;
			const location = locations.find(({ kind, pattern }) => kind === 'named' && pattern === name);
			if (!location) throw new Untranslatable(`there is no location ${name}`);
			const routeName = out.unusedName(`${name.slice(1).replace(/[^A-Za-z\d_]/g, '_')}_`);
			routesByLocation.set(name, routeName);
			routes.push({
				name: routeName,
				lines: out.capture(() => writeLocation(location, scope, context, { kind: 'named' }, variables)),
			});
			return routeName;
		},
		errorRulesName: (scope: Scope) => errorRules.nameOf(scope),
		noteEntry: (slot: Slot) => errorRules.noteEntry(slot),
	};
	const finish = (lines: Lines): string | undefined => {
		if (route !== undefined || routesByLocation.size > 0) errorRules.fillEntrySlots();
		if (route !== undefined) routes.push({ name: route, lines });
		return route;
	};
	return { context, finish };
}

function translatedRoot(scope: Scope): string {
	return translated(scope.lastArgument('root')!.replace(/\/$/, ''), new Variables([]));
}

function directivesNamed(directives: readonly NginxDirective[], name: string): NginxDirective[] {
	return directives.flatMap(one => [...(one.name === name ? [one] : []), ...directivesNamed(one.block ?? [], name)]);
}

function listenAddressesOf(server: NginxDirective, out: ConfigfileWriter): ListenAddress[] {
	const addresses: ListenAddress[] = [];
	for (const directive of server.block ?? []) {
		if (directive.name !== 'listen') continue;
		const [address = '80', ...flags] = directive.args;
		const match = /^(?:(\[[^\]]*\]|[^:[\]]*[^\d:[\]][^:[\]]*|\d+\.\d+\.\d+\.\d+):?)?(\d+)?$/.exec(address);
		if (!match || address.startsWith('unix:')) {
			out.keep(directive, 'only ports and addresses are translated');
			continue;
		}
		out.count(directive);
		const [, host, port] = match;
		const isEverywhere = host === undefined || ['*', '0.0.0.0', '[::]'].includes(host);
		addresses.push({
			port: port ?? '80',
			host: isEverywhere ? undefined : host === 'localhost' ? '127.0.0.1' : host,
			tls: flags.includes('ssl'),
			isDefault: flags.includes('default_server') || flags.includes('default'),
			directive: directive,
		});
	}
	return addresses.length > 0
		? addresses
		: [{ port: '80', host: undefined, tls: false, isDefault: false, directive: undefined }];
}

/** Returns the names of a server that can be site addresses, and expressions for its other names. */
function namesOf(server: NginxDirective, out: ConfigfileWriter): Pick<Site, 'names' | 'patterns'> {
	const names: string[] = [];
	const patterns: { label: string; pattern: string; written: string }[] = [];
	for (const directive of server.block ?? []) {
		if (directive.name !== 'server_name') continue;
		orKeep(directive, out, () => {
			for (const name of directive.args) {
				if (name.startsWith('~')) {
					const written = name.slice(1);
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written, true), written });
				} else if (name.endsWith('*')) {
					const written = `^${escapedRegexp(name.slice(0, -1))}.+$`;
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written), written });
				} else if (/^\.?(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?$/.test(name) && name !== '_') {
					const lowerCase = name.toLowerCase().replace(/\.$/, '');
					if (lowerCase.startsWith('.')) names.push(lowerCase.slice(1), `*${lowerCase}`);
					else names.push(lowerCase);
				}
			}
		});
	}
	return { names, patterns };
}

function writeCertificate(scope: Scope, tls: boolean, out: ConfigfileWriter): void {
	const lines = [
		'ssl_certificate',
		'ssl_certificate_key',
		'ssl_protocols',
		'ssl_client_certificate',
		'ssl_verify_client',
	];
	const [certificate, key, protocols, clientAuthorities, verify] = lines.map(name => scope.last(name));
	if (!tls) return;
	const settings: string[] = [];
	if (protocols) {
		const versions = protocols.args.filter(name => /^TLSv1\.[23]$/.test(name)).map(name => `tls${name.slice(4)}`);
		if (versions.length > 0) settings.push(`protocols ${versions.sort().join(' ')}`);
		if (versions.length === protocols.args.length) out.count(protocols);
		else out.keep(protocols, 'versions before TLS 1.2 are not supported');
	}
	if (clientAuthorities && verify && (verify.args[0] === 'on' || verify.args[0] === 'optional')) {
		out.count(clientAuthorities);
		out.count(verify);
		const mode = verify.args[0] === 'on' ? 'require_and_verify' : 'verify_if_given';
		settings.push('client_auth {', `\tmode ${mode}`, `\ttrust_pool file ${word(clientAuthorities.args[0] ?? '')}`, '}');
	} else if (verify?.args[0] === 'off') out.count(verify);
	if (!certificate || !key) return;
	out.count(certificate);
	out.count(key);
	const head = `tls ${word(certificate.args[0] ?? '')} ${word(key.args[0] ?? '')}`;
	if (settings.length === 0) out.line(head);
	else
		out.block(head, () => {
			for (const line of settings) out.line(line);
		});
}

/** Reports whether a site has a name for which a public certificate authority could issue a certificate. */
function hasPublicName(sites: readonly Site[]): boolean {
	return sites.some(({ names }) =>
		names.some(name => /\.(?!test$|example$|localhost$|local$|internal$)[a-z]+$/i.test(name)),
	);
}
