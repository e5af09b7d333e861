/** Writes the `server` blocks of an nginx.conf as sites. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { Scope } from './scope.ts';
import { writeLocations } from './write-locations.ts';
import { poolNames, writeUpstream } from './write-upstream.ts';

/** What a `server` block listens for. */
interface Listening {
	readonly port: string;
	/** Undefined for all interfaces. */
	readonly host: string | undefined;
	readonly tls: boolean;
	readonly isDefault: boolean;
	/** Undefined if the server has no `listen` that the import can read. */
	readonly directive: NginxDirective | undefined;
}

/** Reports whether a server listens on each of its addresses with each of its ports, as a site does. */
function isProduct(listens: readonly Listening[]): boolean {
	const hosts = new Set(listens.map(({ host }) => host));
	const ports = new Set(listens.map(({ port }) => port));
	const pairs = new Set(listens.map(({ host, port }) => `${host ?? '*'} ${port}`));
	return pairs.size === hosts.size * ports.size && (hosts.size === 1 || !hosts.has(undefined));
}

/** What needs no word here, because it is always so. */
const ALWAYS: { readonly [name: string]: string } = {
	...{ sendfile: 'files are always sent efficiently', tcp_nopush: 'decided by the server', tcp_nodelay: 'always on' },
	...{ server_tokens: 'no version is ever sent', default_type: 'content types are built in', http2: 'always on' },
	...{ types_hash_max_size: 'sizes itself', server_names_hash_bucket_size: 'sizes itself', gzip_vary: 'always on' },
	...{ ssl_session_cache: 'built in', ssl_session_timeout: 'built in', ssl_prefer_server_ciphers: 'built in' },
	...{ proxy_http_version: 'always 1.1 or later', proxy_buffering: 'bodies are passed on as they arrive' },
	types: 'content types are built in',
};

/** Writes everything in the `http` block. */
export function writeServers(http: readonly NginxDirective[], out: ConfigfileWriter): void {
	const servers = http.filter(({ name }) => name === 'server');
	const claimed = new Set<string>();
	const sites = servers.map(server => ({ server, listens: listensOf(server, out) }));
	for (const port of new Set(sites.flatMap(({ listens }) => listens.map(({ port }) => port)))) {
		const site =
			sites.find(({ listens }) => listens.some(one => one.port === port && one.isDefault)) ??
			sites.find(({ listens }) => listens.some(one => one.port === port));
		if (site) claimed.add(`${servers.indexOf(site.server)} ${port}`);
	}
	out.line('# Imported from nginx. A comment that begins with `nginx:` is a directive without a counterpart.');
	out.line(
		'# Unlike nginx, paths are compared without regard to case, and no limit for bodies applies unless one is written.',
	);
	if (hasPublicName(servers)) out.line('# lint: off-file tls/off-on-public-name -- as the nginx.conf says');
	if (hasOpenPrefix(http)) out.line('# lint: off-file path/prefix-without-slash -- as the nginx.conf says');
	if (sites.some(({ listens }) => listens.some(({ tls }) => tls))) {
		out.block('', () => out.line('auto_https disable_redirects'));
	}
	out.line('');
	const pools = poolNames(http);
	const scope = new Scope(undefined, http);
	for (const one of http) {
		if (one.name === 'server') continue;
		if (one.name === 'upstream' && one.block) writeUpstream(one, out);
		else if (!scope.holds(one)) keepOther(one, out);
	}
	for (const [index, { server, listens }] of sites.entries()) {
		out.line('');
		out.count(server);
		const names = namesOf(server, out);
		const addresses: string[] = [];
		for (const { port, tls } of listens) {
			const scheme = tls ? 'https' : 'http';
			for (const name of names) addresses.push(`${scheme}://${name}:${port}`);
			if (claimed.has(`${index} ${port}`)) addresses.push(`${scheme}://:${port}`);
		}
		if (addresses.length === 0) {
			out.keep(server, 'it is reached by no name of its own, and another server is the default of its port');
			continue;
		}
		out.block([...new Set(addresses)].join(', '), () => {
			const hosts = listens.map(({ host }) => host);
			if (!isProduct(listens)) {
				const reason = hosts.includes(undefined)
					? 'the site listens on all addresses, because another `listen` of this server does'
					: 'the site listens on each of its addresses with each of its ports';
				for (const { directive, host } of listens) if (directive && host !== undefined) out.differs(directive, reason);
			}
			if (hosts.every(host => host !== undefined)) out.line(`bind ${[...new Set(hosts)].join(' ')}`);
			const inner = new Scope(scope, server.block!);
			const tls = listens.some(one => one.tls);
			writeCertificate(inner, tls, out);
			const address = testAddress(addresses);
			writeLocations({ directives: server.block!, scope: inner, out, pools, address, keepOther });
		});
	}
}

/** Returns the address for tests: one that needs no certificate of a name, if there is one. */
function testAddress(addresses: readonly string[]): string | undefined {
	const usable = addresses.find(address => !/[*]/.test(address) && address.startsWith('http:'));
	return usable?.replace('://:', '://127.0.0.1:');
}

/** Keeps a directive that has no place in a location or server, or says that it needs none. */
function keepOther(one: NginxDirective, out: ConfigfileWriter): void {
	out.keep(one, ALWAYS[one.name] ?? 'the import does not translate this directive');
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
		const all = host === undefined || ['*', '0.0.0.0', '[::]'].includes(host);
		found.push({
			port: port ?? '80',
			host: all ? undefined : host === 'localhost' ? '127.0.0.1' : host,
			tls: flags.includes('ssl'),
			isDefault: flags.includes('default_server') || flags.includes('default'),
			directive: one,
		});
	}
	return found.length > 0
		? found
		: [{ port: '80', host: undefined, tls: false, isDefault: false, directive: undefined }];
}

/** Returns the names that an address can have. */
function namesOf(server: NginxDirective, out: ConfigfileWriter): string[] {
	const names: string[] = [];
	for (const one of server.block ?? []) {
		if (one.name !== 'server_name') continue;
		const regexps = one.args.filter(name => name.startsWith('~') || /\*$/.test(name));
		if (regexps.length > 0) out.keep(one, 'names that are regular expressions or end with `*` have no counterpart');
		else out.count(one);
		for (const name of one.args) {
			if (name === '_' || name === '' || regexps.includes(name) || name.includes('$')) continue;
			if (name.startsWith('.')) names.push(name.slice(1), `*${name}`);
			else names.push(name);
		}
	}
	return names;
}

function writeCertificate(scope: Scope, tls: boolean, out: ConfigfileWriter): void {
	const certificate = scope.last('ssl_certificate');
	const key = scope.last('ssl_certificate_key');
	const protocols = scope.last('ssl_protocols');
	if (!tls) {
		for (const one of [certificate, key, protocols]) {
			if (one) out.keep(one, 'this server does not listen with TLS');
		}
		return;
	}
	const lines: string[] = [];
	if (protocols) {
		const versions = protocols.args.filter(name => /^TLSv1\.[23]$/.test(name)).map(name => `tls${name.slice(4)}`);
		if (versions.length > 0) lines.push(`protocols ${versions.sort().join(' ')}`);
		if (versions.length === protocols.args.length) out.count(protocols);
		else out.keep(protocols, 'versions before TLS 1.2 are not supported');
	}
	if (certificate && key) {
		out.count(certificate);
		out.count(key);
		const head = `tls ${word(certificate.args[0] ?? '')} ${word(key.args[0] ?? '')}`;
		if (lines.length === 0) out.line(head);
		else out.block(head, () => out.line(lines[0]!));
	}
}

/** Reports whether a server has a name that a public authority could certify. */
function hasPublicName(servers: readonly NginxDirective[]): boolean {
	const names = servers.flatMap(({ block }) => block ?? []).filter(({ name }) => name === 'server_name');
	return names.some(({ args }) =>
		args.some(name => /\.(?!test$|example$|localhost$|local$|internal$)[a-z]+$/i.test(name)),
	);
}

/** Reports whether a location has a prefix that does not end with a slash. */
function hasOpenPrefix(directives: readonly NginxDirective[]): boolean {
	return directives.some(({ name, args, block }) => {
		const [first = '', second = first] = args;
		const isPrefix = name === 'location' && (first === '^~' || args.length === 1) && !/^[@=~]/.test(first);
		return (isPrefix && !second.endsWith('/')) || hasOpenPrefix(block ?? []);
	});
}
