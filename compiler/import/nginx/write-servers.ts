/** Writes the `server` blocks of an nginx.conf as sites. */
import { type CapturedLines, type ConfigfileWriter, Slot, word } from './configfile-writer.ts';
import type { ImportContext, ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapeRegexp, regexpOf, translateText, type VariableLookup, Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { cacheOptionLines, findCacheZones } from './write-cache.ts';
import { ErrorRules } from './write-error-pages.ts';
import { textTypeOf, writeCompression, writeFields } from './write-headers.ts';
import {
	isKnownDirective,
	locationsOf,
	mayChooseOtherLocation,
	untranslatedReason,
	writeLocation,
	writeLocations,
} from './write-locations.ts';
import { writeLogs } from './write-logs.ts';
import { MapTable } from './write-maps.ts';
import { writeReplacements } from './write-replacements.ts';
import { translateOrKeep, writeRewrites } from './write-rewrites.ts';
import { Pools } from './write-upstream.ts';

/** An address and port on which a `server` block listens. */
interface ListenAddress {
	readonly port: string;
	/** The address to listen on; undefined for all interfaces. */
	readonly host: string | undefined;
	readonly isTls: boolean;
	readonly isDefault: boolean;
	/** The `listen` directive; undefined if the server has none that the import can translate. */
	readonly directive: NginxDirective | undefined;
}

interface Site {
	readonly server: NginxDirective;
	readonly listenAddresses: readonly ListenAddress[];
	readonly names: readonly string[];
	/**
	 * Regular expressions for server names that a site address cannot express. `label` is the prefix of the placeholders for their
	 * groups, and `written` the expression as written in nginx.
	 */
	readonly patterns: readonly { readonly label: string; readonly pattern: string; readonly written: string }[];
}

/** A named route that several blocks of a site invoke. */
interface Route {
	readonly name: string;
	readonly lines: CapturedLines;
}

/** Reports whether a server listens on every combination of its addresses and ports, as a site of a Configfile does. */
function listensOnAllCombinations(listenAddresses: readonly ListenAddress[]): boolean {
	const hosts = new Set(listenAddresses.map(({ host }) => host));
	const ports = new Set(listenAddresses.map(({ port }) => port));
	const pairs = new Set(listenAddresses.map(({ host, port }) => `${host ?? '*'} ${port}`));
	return pairs.size === hosts.size * ports.size && (hosts.size === 1 || !hosts.has(undefined));
}

/** Writes the global options, pools, maps and sites for an `http` block. */
export function writeServers(httpDirectives: readonly NginxDirective[], out: ConfigfileWriter): void {
	const sites: Site[] = httpDirectives
		.filter(({ name }) => name === 'server')
		.map(server => ({ server, listenAddresses: listenAddressesOf(server, out), ...serverNamesOf(server, out) }));
	out.writeLine('# Imported from nginx. A comment that begins with `nginx:` is a directive without a counterpart.');
	const headComments = out.slot();
	if (hasPublicName(sites)) headComments.addLine('# lint: off-file tls/off-on-public-name -- as the nginx.conf says');
	if (setsFields(httpDirectives))
		headComments.addLine(
			'# lint: off-file header/after-answer -- as in nginx, errors and other locations have fields of their own',
		);
	out.writeLine('');
	const scope = new Scope(undefined, httpDirectives);
	const allDirectives = [...httpDirectives, ...sites.flatMap(({ server }) => server.block!)];
	const trustedProxies = allDirectives.filter(({ name }) => name === 'set_real_ip_from');
	const cacheZonesByName = findCacheZones(httpDirectives);
	writeOptions(sites, allDirectives, trustedProxies, cacheOptionLines(cacheZonesByName, httpDirectives, out), out);
	const placeholder = trustedProxies.length > 0 ? '{client_ip}' : '{remote_host}';
	const directivesByArgument = (directiveName: string): Map<string, NginxDirective> =>
		new Map(
			httpDirectives
				.filter(({ name }) => name === directiveName)
				.map(directive => [directive.args[0] ?? '', directive]),
		);
	const zones = new Map(
		httpDirectives
			.filter(({ name }) => /^limit_(?:req|conn)_zone$/.test(name))
			.map(directive => [/ zone=([^:\s]+)/.exec(directive.text)?.[1] ?? '', directive]),
	);
	const addressLookup: VariableLookup = name => (/^(?:binary_)?remote_addr$/.test(name) ? placeholder : undefined);
	const matcher = trustedProxies.length > 0 ? 'client_ip' : 'remote_ip';
	const maps = new MapTable(httpDirectives, out, { placeholder, matcher });
	const pools = new Pools(httpDirectives, out, new Variables([addressLookup]));
	const cx: ImportContext = {
		...{ out, scope, pools, maps, zones, head: headComments },
		cacheZones: cacheZonesByName,
		logFormats: directivesByArgument('log_format'),
		address: { placeholder, matcher },
	};
	const routes: Route[] = [];
	const siteLines = out.capture(() => {
		const preparedSites = sites.map((site, index) => prepareSite(site, index, sites, cx, routes));
		for (const site of preparedSites) writeSite(site, preparedSites, cx);
	});
	maps.write();
	pools.write();
	out.append(siteLines);
	for (const route of routes) {
		out.writeLine('');
		out.writeBlock(`&(${route.name})`, () => out.append(route.lines));
	}
	const elsewhereDirectives: ReadonlySet<string> = new Set([
		'server',
		'map',
		'geo',
		'split_clients',
		'upstream',
		'limit_req_zone',
		'limit_conn_zone',
		'log_format',
	]);
	for (const directive of httpDirectives)
		if (!elsewhereDirectives.has(directive.name) && !scope.isInherited(directive))
			out.keepAsComment(directive, untranslatedReason(directive.name));
}

function setsFields(directives: readonly NginxDirective[]): boolean {
	return directives.some(({ name, block }) => name === 'add_header' || name === 'expires' || setsFields(block ?? []));
}

function writeOptions(
	sites: readonly Site[],
	directives: readonly NginxDirective[],
	trustedProxies: readonly NginxDirective[],
	cacheLines: readonly string[],
	out: ConfigfileWriter,
): void {
	const lines: string[] = [...cacheLines];
	if (sites.some(({ listenAddresses }) => listenAddresses.some(({ isTls: tls }) => tls)))
		lines.push('auto_https disable_redirects');
	const trustedRanges = trustedProxies.map(({ args }) => args[0] ?? '').filter(range => /^[\d.:a-fA-F/]+$/.test(range));
	if (trustedRanges.length > 0) {
		const headerDirective = directives.find(({ name }) => name === 'real_ip_header');
		lines.push(
			'servers {',
			`\ttrusted_proxies static ${[...new Set(trustedRanges)].join(' ')}`,
			'\ttrusted_proxies_strict',
		);
		if (
			headerDirective &&
			/^[\w-]+$/.test(headerDirective.args[0] ?? '') &&
			headerDirective.args[0] !== 'proxy_protocol'
		)
			lines.push(`\tclient_ip_headers ${headerDirective.args[0]}`);
		lines.push('}');
		for (const directive of directives)
			if (['real_ip_header', 'real_ip_recursive', 'set_real_ip_from'].includes(directive.name))
				out.countTranslated(directive);
	}
	if (lines.length === 0) return;
	out.writeBlock('', () => {
		for (const line of lines) out.writeLine(line);
	});
	out.writeLine('');
}

/** A site whose content has been captured but not written yet. */
interface PreparedSite extends Site {
	readonly addresses: readonly string[];
	/** The ports for which the server is nginx's default server. */
	readonly defaultPorts: ReadonlySet<string>;
	/** Name of the route with the site's content; undefined if only this site uses the content. */
	readonly route: string | undefined;
	readonly bodyLines: CapturedLines;
	readonly context: ServerContext;
	/** The `handle_errors` lines of the site. */
	readonly errorLines: CapturedLines;
}

function prepareSite(
	site: Site,
	siteIndex: number,
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
	const defaultPorts = new Set<string>();
	for (const { port, isTls: tls } of listenAddresses) {
		const scheme = tls ? 'https' : 'http';
		for (const name of names) addresses.add(`${scheme}://${name}:${port}`);
		if (defaultSiteIndex(port) !== siteIndex) continue;
		defaultPorts.add(port);
		addresses.add(`${scheme}://:${port}`);
	}
	const isRoute = site.patterns.length > 0;
	const scope = new Scope(cx.scope, server.block!);
	const errorRules = new ErrorRules(isRoute ? new Scope(undefined, []) : scope, kind => out.unusedName(kind));
	const testableAddress = [...addresses].find(address => !address.includes('*') && address.startsWith('http:'));
	const startSlot = new Slot();
	const { context, finishLocations } = serverContext(
		site,
		scope,
		cx,
		testableAddress?.replace('://:', '://127.0.0.1:'),
		routes,
		errorRules,
		startSlot,
	);
	const route = isRoute ? `server${siteIndex + 1}` : undefined;
	const isReached = addresses.size > 0 || isRoute;
	const rewrites = isReached ? writeServerRewrites(context, startSlot) : { lines: [], isAnswered: true };
	const locations = rewrites.isAnswered
		? []
		: out.capture(() => writeLocations(locationsOf(context.directives), context));
	const errorLines = isReached ? out.capture(() => errorRules.write(context)) : [];
	const locationsRoute = finishLocations(locations);
	const bodyLines = out.capture(() => {
		out.append(rewrites.lines);
		if (locationsRoute !== undefined && !rewrites.isAnswered) out.writeLine(`invoke ${locationsRoute}`);
		else if (locationsRoute === undefined) out.append(locations);
	});
	if (route !== undefined) routes.push({ name: route, lines: bodyLines });
	return { ...site, addresses: [...addresses], defaultPorts, route, bodyLines, context, errorLines };
}

function writeSite(site: PreparedSite, sites: readonly PreparedSite[], cx: ImportContext): void {
	const { out } = cx;
	const { server, listenAddresses, addresses, route, context } = site;
	if (addresses.length === 0) {
		if (route === undefined)
			out.keepAsComment(server, 'it has no name of its own, and another server is the default of its port');
		else out.countTranslated(server);
		return;
	}
	out.countTranslated(server);
	// A server whose name is a regular expression is chosen inside the site of its port's default server.
	const patternSites = sites.filter(
		other => other.route !== undefined && other.listenAddresses.some(({ port }) => site.defaultPorts.has(port)),
	);
	out.writeLine('');
	out.writeBlock(addresses.join(', '), () => {
		const hosts = listenAddresses.map(({ host }) => host);
		if (!listensOnAllCombinations(listenAddresses)) {
			const reason = hosts.includes(undefined)
				? 'the site listens on all addresses, because another `listen` of this server does'
				: 'the site listens on each of its addresses with each of its ports';
			for (const { directive, host } of listenAddresses)
				if (directive && host !== undefined) out.keepInstead(directive, reason);
		}
		if (hosts.every(host => host !== undefined)) out.writeLine(`bind ${[...new Set(hosts)].join(' ')}`);
		writeCertificate(
			context.scope,
			listenAddresses.some(one => one.isTls),
			out,
		);
		writeLogs(context.scope, cx);
		for (const patternSite of patternSites) {
			for (const { label, pattern } of patternSite.patterns) {
				out.writeBlock(`when vars_regexp ${label} {host} ${word(pattern)}`, () =>
					out.writeLine(`invoke ${patternSite.route}`),
				);
			}
		}
		if (route === undefined) out.append(site.bodyLines);
		else out.writeLine(`invoke ${route}`);
		for (const other of patternSites) if (other !== site) out.append(other.errorLines);
		out.append(site.errorLines);
	});
}

/** Writes the server's own lines, which run before a location is chosen. `isAnswered` is true if they answer every request. */
function writeServerRewrites(
	cx: ServerContext,
	startSlot: Slot,
): { readonly lines: CapturedLines; readonly isAnswered: boolean } {
	const { out, directives, scope, variables } = cx;
	let isAnswered = false;
	const lines = out.capture(() => {
		out.slot(startSlot);
		for (const directive of directives)
			if (!scope.isInherited(directive) && !isKnownDirective(directive.name))
				out.keepAsComment(directive, untranslatedReason(directive.name));
		const rootDirective = scope.lastDirective('root');
		if (rootDirective)
			translateOrKeep(rootDirective, out, () =>
				out.writeLine(`root ${word(translateText(rootDirective.args[0] ?? '', variables))}`),
			);
		if (!cx.locationsCompress) writeCompression(scope, out);
		const errorRules = cx.errorRulesName(scope);
		if (errorRules !== undefined) out.writeLine(`vars errors ${errorRules}`);
		isAnswered = writeRewrites(directives, {
			...{ out, place: 'server' },
			condition: {
				variables,
				root: rootDirective?.args[0]?.replace(/\/$/, ''),
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
): { readonly context: ServerContext; readonly finishLocations: (lines: CapturedLines) => string | undefined } {
	const { out } = cx;
	const directives = site.server.block!;
	const locations = locationsOf(directives);
	const setDirectives = directivesNamed(directives, 'set');
	const authSetDirectives = [
		...directivesNamed(directives, 'auth_request_set'),
		...cx.scope.directivesIn('auth_request_set'),
	];
	const constants = new Map<string, string>();
	for (const directive of setDirectives) {
		const [name = '', value = ''] = directive.args;
		if (setDirectives.filter(({ args }) => args[0] === name).length === 1 && !value.includes('$'))
			constants.set(name.slice(1), value);
	}
	const lookUp: VariableLookup = name => {
		if (name === 'server_name') return site.names[0] ?? '';
		if (name === 'https') return site.listenAddresses.every(({ isTls: tls }) => tls) ? 'on' : '';
		if (/^(?:binary_)?remote_addr$/.test(name)) return cx.address.placeholder;
		if (name === 'document_root' && scope.lastArgument('root') !== undefined) return translatedRoot(scope);
		if (name === 'request_filename' && scope.lastArgument('root') !== undefined)
			return `${translatedRoot(scope)}{path}`;
		if (setDirectives.some(({ args }) => args[0] === `$${name}`)) return `{vars.${name}}`;
		const authField = authSetDirectives.find(({ args }) => args[0] === `$${name}`)?.args[1];
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
	let locationsRoute: string | undefined;
	const routesByLocation = new Map<string, string>();
	const context: ServerContext = {
		...cx,
		...{ directives, scope, variables, constants, testAddress, hasInternalLocation: hasInternal, locationsCompress },
		chooseLocation: () => {
			locationsRoute ??= out.unusedName('locations');
			if (hasInternal) out.writeLine('vars internal "yes"');
			out.writeLine(`invoke ${locationsRoute}`);
		},
		mayChooseOtherLocation: (path: string, block: readonly NginxDirective[]) =>
			mayChooseOtherLocation(path, block, locations),
		findExactLocation: (path: string) =>
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
		errorRulesName: (scope: Scope) => errorRules.rulesNameOf(scope),
		noteEntrySlot: (slot: Slot) => errorRules.noteEntrySlot(slot),
	};
	const finishLocations = (lines: CapturedLines): string | undefined => {
		if (locationsRoute !== undefined || routesByLocation.size > 0) errorRules.fillEntrySlots();
		if (locationsRoute !== undefined) routes.push({ name: locationsRoute, lines });
		return locationsRoute;
	};
	return { context, finishLocations };
}

function translatedRoot(scope: Scope): string {
	return translateText(scope.lastArgument('root')!.replace(/\/$/, ''), new Variables([]));
}

function directivesNamed(directives: readonly NginxDirective[], name: string): NginxDirective[] {
	return directives.flatMap(one => [...(one.name === name ? [one] : []), ...directivesNamed(one.block ?? [], name)]);
}

function listenAddressesOf(server: NginxDirective, out: ConfigfileWriter): ListenAddress[] {
	const addresses: ListenAddress[] = [];
	for (const directive of server.block ?? []) {
		if (directive.name !== 'listen') continue;
		const [address = '80', ...flags] = directive.args;
		const addressMatch = /^(?:(\[[^\]]*\]|[^:[\]]*[^\d:[\]][^:[\]]*|\d+\.\d+\.\d+\.\d+):?)?(\d+)?$/.exec(address);
		if (!addressMatch || address.startsWith('unix:')) {
			out.keepAsComment(directive, 'only ports and addresses are translated');
			continue;
		}
		out.countTranslated(directive);
		const [, host, port] = addressMatch;
		const isAnyAddress = host === undefined || ['*', '0.0.0.0', '[::]'].includes(host);
		addresses.push({
			port: port ?? '80',
			host: isAnyAddress ? undefined : host === 'localhost' ? '127.0.0.1' : host,
			isTls: flags.includes('ssl'),
			isDefault: flags.includes('default_server') || flags.includes('default'),
			directive,
		});
	}
	return addresses.length > 0
		? addresses
		: [{ port: '80', host: undefined, isTls: false, isDefault: false, directive: undefined }];
}

/** Returns the names of a server that can be site addresses, and expressions for its other names. */
function serverNamesOf(server: NginxDirective, out: ConfigfileWriter): Pick<Site, 'names' | 'patterns'> {
	const names: string[] = [];
	const patterns: { label: string; pattern: string; written: string }[] = [];
	for (const directive of server.block ?? []) {
		if (directive.name !== 'server_name') continue;
		translateOrKeep(directive, out, () => {
			for (const name of directive.args) {
				if (name.startsWith('~')) {
					const written = name.slice(1);
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written, true), written });
				} else if (name.endsWith('*')) {
					const written = `^${escapeRegexp(name.slice(0, -1))}.+$`;
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written), written });
				} else if (/^\.?(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?$/.test(name) && name !== '_') {
					const lowerName = name.toLowerCase().replace(/\.$/, '');
					if (lowerName.startsWith('.')) names.push(lowerName.slice(1), `*${lowerName}`);
					else names.push(lowerName);
				}
			}
		});
	}
	return { names, patterns };
}

function writeCertificate(scope: Scope, isTls: boolean, out: ConfigfileWriter): void {
	const directiveNames = [
		'ssl_certificate',
		'ssl_certificate_key',
		'ssl_protocols',
		'ssl_client_certificate',
		'ssl_verify_client',
	];
	const [certificate, key, protocols, clientAuthorities, verifyDirective] = directiveNames.map(name =>
		scope.lastDirective(name),
	);
	if (!isTls) return;
	const settings: string[] = [];
	if (protocols) {
		const versions = protocols.args.filter(name => /^TLSv1\.[23]$/.test(name)).map(name => `tls${name.slice(4)}`);
		if (versions.length > 0) settings.push(`protocols ${versions.sort().join(' ')}`);
		if (versions.length === protocols.args.length) out.countTranslated(protocols);
		else out.keepAsComment(protocols, 'versions before TLS 1.2 are not supported');
	}
	if (
		clientAuthorities &&
		verifyDirective &&
		(verifyDirective.args[0] === 'on' || verifyDirective.args[0] === 'optional')
	) {
		out.countTranslated(clientAuthorities);
		out.countTranslated(verifyDirective);
		const mode = verifyDirective.args[0] === 'on' ? 'require_and_verify' : 'verify_if_given';
		settings.push('client_auth {', `\tmode ${mode}`, `\ttrust_pool file ${word(clientAuthorities.args[0] ?? '')}`, '}');
	} else if (verifyDirective?.args[0] === 'off') out.countTranslated(verifyDirective);
	if (!certificate || !key) return;
	out.countTranslated(certificate);
	out.countTranslated(key);
	const head = `tls ${word(certificate.args[0] ?? '')} ${word(key.args[0] ?? '')}`;
	if (settings.length === 0) out.writeLine(head);
	else
		out.writeBlock(head, () => {
			for (const line of settings) out.writeLine(line);
		});
}

/** Reports whether a site has a name for which a public certificate authority could issue a certificate. */
function hasPublicName(sites: readonly Site[]): boolean {
	return sites.some(({ names }) =>
		names.some(name => /\.(?!test$|example$|localhost$|local$|internal$)[a-z]+$/i.test(name)),
	);
}
