/** Writes the `server` blocks of an nginx.conf as sites. */
import { type ConfigfileWriter, type Lines, Slot, word } from './configfile-writer.ts';
import type { ImportContext, ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { escapedRegexp, regexpOf, translated, type VariableLookup, Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { cacheOptionLines, cacheZones } from './write-cache.ts';
import { ErrorPlaces } from './write-error-pages.ts';
import { textTypeOf, writeCompression, writeFields } from './write-headers.ts';
import { isKnown, locationsOf, mayBelongElsewhere, reasonOf, writeBlock, writeLocations } from './write-locations.ts';
import { writeLogs } from './write-logs.ts';
import { MapTable } from './write-maps.ts';
import { writeReplacements } from './write-replacements.ts';
import { orKeep, writeRewrites } from './write-rewrites.ts';
import { Pools } from './write-upstream.ts';

/** What a `server` block listens for. */
interface Listening {
	readonly port: string;
	/** The address to listen on; undefined for all interfaces. */
	readonly host: string | undefined;
	readonly tls: boolean;
	readonly isDefault: boolean;
	/** The `listen` directive; undefined if the server has none that the import can read. */
	readonly directive: NginxDirective | undefined;
}

interface Site {
	readonly server: NginxDirective;
	readonly listens: readonly Listening[];
	readonly names: readonly string[];
	/** Expressions for host names that a site address cannot express, each with the name of its groups. */
	readonly patterns: readonly { readonly label: string; readonly pattern: string; readonly written: string }[];
}

/** A named route that several places of a site run. */
interface Route {
	readonly name: string;
	readonly lines: Lines;
}

/** Reports whether a server listens on every combination of its addresses and ports, as a site does. */
function isProduct(listens: readonly Listening[]): boolean {
	const hosts = new Set(listens.map(({ host }) => host));
	const ports = new Set(listens.map(({ port }) => port));
	const pairs = new Set(listens.map(({ host, port }) => `${host ?? '*'} ${port}`));
	return pairs.size === hosts.size * ports.size && (hosts.size === 1 || !hosts.has(undefined));
}

/** Writes everything in the `http` block. */
export function writeServers(http: readonly NginxDirective[], out: ConfigfileWriter): void {
	const sites: Site[] = http
		.filter(({ name }) => name === 'server')
		.map(server => ({ server, listens: listensOf(server, out), ...namesOf(server, out) }));
	out.line('# Imported from nginx. A comment that begins with `nginx:` is a directive without a counterpart.');
	const head = out.slot();
	if (hasPublicName(sites)) head.line('# lint: off-file tls/off-on-public-name -- as the nginx.conf says');
	if (hasFields(http))
		head.line(
			'# lint: off-file header/after-answer -- as in nginx, errors and other locations have fields of their own',
		);
	out.line('');
	const scope = new Scope(undefined, http);
	const everything = [...http, ...sites.flatMap(({ server }) => server.block!)];
	const trusted = everything.filter(({ name }) => name === 'set_real_ip_from');
	const caches = cacheZones(http);
	writeOptions(sites, everything, trusted, cacheOptionLines(caches, http, out), out);
	const placeholder = trusted.length > 0 ? '{client_ip}' : '{remote_host}';
	const byName = (kind: string): Map<string, NginxDirective> =>
		new Map(http.filter(({ name }) => name === kind).map(one => [one.args[0] ?? '', one]));
	const zones = new Map(
		http
			.filter(({ name }) => /^limit_(?:req|conn)_zone$/.test(name))
			.map(one => [/ zone=([^:\s]+)/.exec(one.text)?.[1] ?? '', one]),
	);
	const address: VariableLookup = name => (/^(?:binary_)?remote_addr$/.test(name) ? placeholder : undefined);
	const matcher = trusted.length > 0 ? 'client_ip' : 'remote_ip';
	const maps = new MapTable(http, out, { placeholder, matcher });
	const pools = new Pools(http, out, new Variables([address]));
	const cx: ImportContext = {
		...{ out, scope, pools, maps, zones, head },
		cacheZones: caches,
		logFormats: byName('log_format'),
		address: { placeholder, matcher },
	};
	const routes: Route[] = [];
	const lines = out.capture(() => {
		const prepared = sites.map((site, index) => prepareSite(site, index, sites, cx, routes));
		for (const site of prepared) writeSite(site, prepared, cx);
	});
	maps.write();
	pools.write();
	out.append(lines);
	for (const route of routes) {
		out.line('');
		out.block(`&(${route.name})`, () => out.append(route.lines));
	}
	const used: ReadonlySet<string> = new Set([
		'server',
		'map',
		'geo',
		'split_clients',
		'upstream',
		'limit_req_zone',
		'limit_conn_zone',
		'log_format',
	]);
	for (const one of http) if (!used.has(one.name) && !scope.isInherited(one)) out.keep(one, reasonOf(one.name));
}

function hasFields(directives: readonly NginxDirective[]): boolean {
	return directives.some(({ name, block }) => name === 'add_header' || name === 'expires' || hasFields(block ?? []));
}

/** Writes the global options. */
function writeOptions(
	sites: readonly Site[],
	directives: readonly NginxDirective[],
	trusted: readonly NginxDirective[],
	cacheLines: readonly string[],
	out: ConfigfileWriter,
): void {
	const lines: string[] = [...cacheLines];
	if (sites.some(({ listens }) => listens.some(({ tls }) => tls))) lines.push('auto_https disable_redirects');
	const ranges = trusted.map(({ args }) => args[0] ?? '').filter(range => /^[\d.:a-fA-F/]+$/.test(range));
	if (ranges.length > 0) {
		const field = directives.find(({ name }) => name === 'real_ip_header');
		lines.push('servers {', `\ttrusted_proxies static ${[...new Set(ranges)].join(' ')}`, '\ttrusted_proxies_strict');
		if (field && /^[\w-]+$/.test(field.args[0] ?? '') && field.args[0] !== 'proxy_protocol')
			lines.push(`\tclient_ip_headers ${field.args[0]}`);
		lines.push('}');
		for (const one of directives)
			if (['real_ip_header', 'real_ip_recursive', 'set_real_ip_from'].includes(one.name)) out.count(one);
	}
	if (lines.length === 0) return;
	out.block('', () => {
		for (const line of lines) out.line(line);
	});
	out.line('');
}

/** A site whose content has been captured, but not written yet. */
interface PreparedSite extends Site {
	readonly addresses: readonly string[];
	/** The ports at which the site is the default server. */
	readonly defaultOf: ReadonlySet<string>;
	/** The name of the route with the site's content; undefined if no other site runs the content. */
	readonly route: string | undefined;
	readonly body: Lines;
	readonly context: ServerContext;
	/** The lines that answer the site's errors. */
	readonly errors: Lines;
}

function prepareSite(
	site: Site,
	index: number,
	sites: readonly Site[],
	cx: ImportContext,
	routes: Route[],
): PreparedSite {
	const { out } = cx;
	const { server, listens, names } = site;
	const defaultIndex = (port: string): number => {
		const marked = sites.findIndex(other => other.listens.some(one => one.port === port && one.isDefault));
		return marked !== -1 ? marked : sites.findIndex(other => other.listens.some(one => one.port === port));
	};
	const addresses = new Set<string>();
	const defaultOf = new Set<string>();
	for (const { port, tls } of listens) {
		const scheme = tls ? 'https' : 'http';
		for (const name of names) addresses.add(`${scheme}://${name}:${port}`);
		if (defaultIndex(port) !== index) continue;
		defaultOf.add(port);
		addresses.add(`${scheme}://:${port}`);
	}
	const isRoute = site.patterns.length > 0;
	const scope = new Scope(cx.scope, server.block!);
	const errors = new ErrorPlaces(isRoute ? new Scope(undefined, []) : scope, kind => out.unusedName(kind));
	const usable = [...addresses].find(address => !address.includes('*') && address.startsWith('http:'));
	const top = new Slot();
	const { context, finish } = serverContext(
		site,
		scope,
		cx,
		usable?.replace('://:', '://127.0.0.1:'),
		routes,
		errors,
		top,
	);
	const route = isRoute ? `server${index + 1}` : undefined;
	const isReached = addresses.size > 0 || isRoute;
	const rewrites = isReached ? writeServerRewrites(context, top) : { lines: [], ended: true };
	const locations = rewrites.ended ? [] : out.capture(() => writeLocations(locationsOf(context.directives), context));
	const errorLines = isReached ? out.capture(() => errors.write(context)) : [];
	const again = finish(locations);
	const body = out.capture(() => {
		out.append(rewrites.lines);
		if (again !== undefined && !rewrites.ended) out.line(`invoke ${again}`);
		else if (again === undefined) out.append(locations);
	});
	if (route !== undefined) routes.push({ name: route, lines: body });
	return { ...site, addresses: [...addresses], defaultOf, route, body, context, errors: errorLines };
}

function writeSite(site: PreparedSite, sites: readonly PreparedSite[], cx: ImportContext): void {
	const { out } = cx;
	const { server, listens, addresses, route, context } = site;
	if (addresses.length === 0) {
		if (route === undefined)
			out.keep(server, 'it is reached by no name of its own, and another server is the default of its port');
		else out.count(server);
		return;
	}
	out.count(server);
	// A server whose name is an expression is chosen inside the site of the port's default server.
	const others = sites.filter(
		other => other.route !== undefined && other.listens.some(({ port }) => site.defaultOf.has(port)),
	);
	out.line('');
	out.block(addresses.join(', '), () => {
		const hosts = listens.map(({ host }) => host);
		if (!isProduct(listens)) {
			const reason = hosts.includes(undefined)
				? 'the site listens on all addresses, because another `listen` of this server does'
				: 'the site listens on each of its addresses with each of its ports';
			for (const { directive, host } of listens)
				if (directive && host !== undefined) out.keepInstead(directive, reason);
		}
		if (hosts.every(host => host !== undefined)) out.line(`bind ${[...new Set(hosts)].join(' ')}`);
		writeCertificate(
			context.scope,
			listens.some(one => one.tls),
			out,
		);
		writeLogs(context.scope, cx);
		for (const other of others) {
			for (const { label, pattern } of other.patterns) {
				out.block(`when vars_regexp ${label} {host} ${word(pattern)}`, () => out.line(`invoke ${other.route}`));
			}
		}
		if (route === undefined) out.append(site.body);
		else out.line(`invoke ${route}`);
		for (const other of others) if (other !== site) out.append(other.errors);
		out.append(site.errors);
	});
}

/** Writes what a server does before a location is chosen. */
function writeServerRewrites(cx: ServerContext, top: Slot): { readonly lines: Lines; readonly ended: boolean } {
	const { out, directives, scope, variables } = cx;
	let ended = false;
	const lines = out.capture(() => {
		out.slot(top);
		for (const one of directives) if (!scope.isInherited(one) && !isKnown(one.name)) out.keep(one, reasonOf(one.name));
		const root = scope.last('root');
		if (root) orKeep(root, out, () => out.line(`root ${word(translated(root.args[0] ?? '', variables))}`));
		if (!cx.locationsCompress) writeCompression(scope, out);
		const place = cx.errorPlace(scope);
		if (place !== undefined) out.line(`vars errors ${place}`);
		ended = writeRewrites(directives, {
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
	return { lines, ended };
}

function serverContext(
	site: Site,
	scope: Scope,
	cx: ImportContext,
	testAddress: string | undefined,
	routes: Route[],
	errors: ErrorPlaces,
	top: Slot,
): { readonly context: ServerContext; readonly finish: (lines: Lines) => string | undefined } {
	const { out } = cx;
	const directives = site.server.block!;
	const locations = locationsOf(directives);
	const sets = all(directives, 'set');
	const authSets = [...all(directives, 'auth_request_set'), ...cx.scope.all('auth_request_set')];
	const constants = new Map<string, string>();
	for (const one of sets) {
		const [name = '', value = ''] = one.args;
		if (sets.filter(({ args }) => args[0] === name).length === 1 && !value.includes('$'))
			constants.set(name.slice(1), value);
	}
	const own: VariableLookup = name => {
		if (name === 'server_name') return site.names[0] ?? '';
		if (name === 'https') return site.listens.every(({ tls }) => tls) ? 'on' : '';
		if (/^(?:binary_)?remote_addr$/.test(name)) return cx.address.placeholder;
		if (name === 'document_root' && scope.value('root') !== undefined) return translatedRoot(scope);
		if (name === 'request_filename' && scope.value('root') !== undefined) return `${translatedRoot(scope)}{path}`;
		if (sets.some(({ args }) => args[0] === `$${name}`)) return `{vars.${name}}`;
		const field = authSets.find(({ args }) => args[0] === `$${name}`)?.args[1];
		if (field?.startsWith('$upstream_http_')) return `{header.${field.slice(15).replaceAll('_', '-')}}`;
		const map = cx.maps.placeholder(name);
		if (!map) return undefined;
		for (const snippet of map.snippets) top.line(`use ${snippet}`);
		return map.placeholder;
	};
	let variables = new Variables([own]);
	for (const { label, written } of site.patterns) variables = variables.after(label, written);
	const hasInternal = all(directives, 'internal').length > 0;
	const locationsCompress = directives.some(
		({ name, block }) => name === 'location' && all(block!, 'gzip').length + all(block!, 'gzip_types').length > 0,
	);
	let route: string | undefined;
	const named = new Map<string, string>();
	const context: ServerContext = {
		...cx,
		...{ directives, scope, variables, constants, testAddress, hasInternal, locationsCompress },
		chooseLocation: () => {
			route ??= out.unusedName('locations');
			if (hasInternal) out.line('vars internal "yes"');
			out.line(`invoke ${route}`);
		},
		mayBelongElsewhere: (path: string, block: readonly NginxDirective[]) => mayBelongElsewhere(path, block, locations),
		exact: (path: string) =>
			(
				locations.find(({ kind, pattern }) => kind === 'exact' && pattern === path) ??
				locations.find(({ pattern }) => pattern === path)
			)?.directive,
		named: (name: string): string => {
			const known = named.get(name);
			if (known !== undefined) return known;
			const found = locations.find(({ kind, pattern }) => kind === 'named' && pattern === name);
			if (!found) throw new Untranslatable(`there is no location ${name}`);
			const made = out.unusedName(`${name.slice(1).replace(/[^A-Za-z\d_]/g, '_')}_`);
			named.set(name, made);
			routes.push({
				name: made,
				lines: out.capture(() => writeBlock(found, scope, context, { kind: 'named' }, variables)),
			});
			return made;
		},
		errorPlace: (of: Scope) => errors.nameOf(of),
		noteEntry: (slot: Slot) => errors.noteEntry(slot),
	};
	const finish = (lines: Lines): string | undefined => {
		if (route !== undefined || named.size > 0) errors.writeEntries();
		if (route !== undefined) routes.push({ name: route, lines });
		return route;
	};
	return { context, finish };
}

function translatedRoot(scope: Scope): string {
	return translated(scope.value('root')!.replace(/\/$/, ''), new Variables([]));
}

function all(directives: readonly NginxDirective[], name: string): NginxDirective[] {
	return directives.flatMap(one => [...(one.name === name ? [one] : []), ...all(one.block ?? [], name)]);
}

function listensOf(server: NginxDirective, out: ConfigfileWriter): Listening[] {
	const found: Listening[] = [];
	for (const one of server.block ?? []) {
		if (one.name !== 'listen') continue;
		const [address = '80', ...flags] = one.args;
		const match = /^(?:(\[[^\]]*\]|[^:[\]]*[^\d:[\]][^:[\]]*|\d+\.\d+\.\d+\.\d+):?)?(\d+)?$/.exec(address);
		if (!match || address.startsWith('unix:')) {
			out.keep(one, 'only ports and addresses are translated');
			continue;
		}
		out.count(one);
		const [, host, port] = match;
		const isEverywhere = host === undefined || ['*', '0.0.0.0', '[::]'].includes(host);
		found.push({
			port: port ?? '80',
			host: isEverywhere ? undefined : host === 'localhost' ? '127.0.0.1' : host,
			tls: flags.includes('ssl'),
			isDefault: flags.includes('default_server') || flags.includes('default'),
			directive: one,
		});
	}
	return found.length > 0
		? found
		: [{ port: '80', host: undefined, tls: false, isDefault: false, directive: undefined }];
}

/** Returns the names of a server that can be site addresses, and expressions for its other names. */
function namesOf(server: NginxDirective, out: ConfigfileWriter): Pick<Site, 'names' | 'patterns'> {
	const names: string[] = [];
	const patterns: { label: string; pattern: string; written: string }[] = [];
	for (const one of server.block ?? []) {
		if (one.name !== 'server_name') continue;
		orKeep(one, out, () => {
			for (const name of one.args) {
				if (name.startsWith('~')) {
					const written = name.slice(1);
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written, true), written });
				} else if (name.endsWith('*')) {
					const written = `^${escapedRegexp(name.slice(0, -1))}.+$`;
					patterns.push({ label: out.unusedName('host'), pattern: regexpOf(written), written });
				} else if (/^\.?(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?$/.test(name) && name !== '_') {
					const lowered = name.toLowerCase().replace(/\.$/, '');
					if (lowered.startsWith('.')) names.push(lowered.slice(1), `*${lowered}`);
					else names.push(lowered);
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
	const [certificate, key, protocols, clients, verify] = lines.map(name => scope.last(name));
	if (!tls) return;
	const inner: string[] = [];
	if (protocols) {
		const versions = protocols.args.filter(name => /^TLSv1\.[23]$/.test(name)).map(name => `tls${name.slice(4)}`);
		if (versions.length > 0) inner.push(`protocols ${versions.sort().join(' ')}`);
		if (versions.length === protocols.args.length) out.count(protocols);
		else out.keep(protocols, 'versions before TLS 1.2 are not supported');
	}
	if (clients && verify && (verify.args[0] === 'on' || verify.args[0] === 'optional')) {
		out.count(clients);
		out.count(verify);
		const mode = verify.args[0] === 'on' ? 'require_and_verify' : 'verify_if_given';
		inner.push('client_auth {', `\tmode ${mode}`, `\ttrust_pool file ${word(clients.args[0] ?? '')}`, '}');
	} else if (verify?.args[0] === 'off') out.count(verify);
	if (!certificate || !key) return;
	out.count(certificate);
	out.count(key);
	const head = `tls ${word(certificate.args[0] ?? '')} ${word(key.args[0] ?? '')}`;
	if (inner.length === 0) out.line(head);
	else
		out.block(head, () => {
			for (const line of inner) out.line(line);
		});
}

/** Reports whether a server has a name that a public authority could certify. */
function hasPublicName(sites: readonly Site[]): boolean {
	return sites.some(({ names }) =>
		names.some(name => /\.(?!test$|example$|localhost$|local$|internal$)[a-z]+$/i.test(name)),
	);
}
