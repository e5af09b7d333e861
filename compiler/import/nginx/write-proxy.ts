/** Writes `proxy_pass`, `grpc_pass` and `fastcgi_pass`. */
import { type ConfigfileWriter, quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, escapedRegexp, hasVariable, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** The kind of a location, that is, how requests are chosen for it. */
export type Place =
	| { readonly kind: 'exact' | 'prefix'; readonly path: string }
	| { readonly kind: 'regexp'; readonly captures: string }
	| { readonly kind: 'server' | 'named' };

/** Values of request fields that `reverse_proxy` sends without being told to. */
const SENT: { readonly [field: string]: readonly string[] } = {
	host: ['$http_host', '$host:$server_port'],
	'x-forwarded-for': ['$remote_addr', '$proxy_add_x_forwarded_for'],
	'x-forwarded-proto': ['$scheme'],
	'x-forwarded-host': ['$http_host'],
	upgrade: ['$http_upgrade'],
	'accept-encoding': ['$http_accept_encoding'],
};

/** Writes `proxy_pass` or `grpc_pass` with the proxy settings that apply in its block. */
export function writeProxy(
	one: NginxDirective,
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	isRewritten: boolean,
): void {
	const { out } = cx;
	const address = (one.args[0] ?? '').replace(/\$\{?(\w+)\}?/g, (text, name: string) => cx.constants.get(name) ?? text);
	const isGrpc = one.name === 'grpc_pass';
	const full = isGrpc && !/^grpcs?:\/\//.test(address) ? `grpc://${address}` : address;
	const [, scheme, host = '', uri] =
		/^(https?|grpcs?):\/\/(unix:[^:]*:?|[^/$]*(?:\$\w+(?::\d+)?)?)([/$].*)?$/.exec(full) ?? [];
	const variable = /^(?:https?:\/\/)?\$(\w+)(\/.*|\$.*)?$/.exec(address);
	const values = variable ? cx.maps.values(variable[1]!) : undefined;
	if (variable && values) {
		if (!orKeep(one, out, () => writeChoice(one, variable[1]!, values, scope, cx, place, variables, isRewritten)))
			out.line('error 502');
		return;
	}
	const isWritten = orKeep(one, out, () => {
		if (scheme === undefined || host === '' || (hasVariable(host) && cx.pools.has(host)))
			throw new Untranslatable('the address is not one that the import knows');
		writeTarget(uri, place, cx, variables, isRewritten);
		writeForwarding({ scheme, host, uri }, scope, cx, place, variables);
	});
	if (!isWritten) out.line('error 502');
}

/** Writes one proxy for each value of the map that selects the address. */
function writeChoice(
	one: NginxDirective,
	name: string,
	values: readonly string[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	isRewritten: boolean,
): void {
	const written = one.args[0]!;
	const placeholder = variables.placeholder(name);
	const addresses = [...new Set(values)];
	for (const [index, value] of addresses.entries()) {
		const isLast = index === addresses.length - 1;
		cx.out.branch(isLast ? undefined : `vars ${placeholder} ${quoted(value)}`, index === 0, () => {
			if (value === '') cx.out.line('error 500');
			else
				writeProxy({ ...one, args: [written.replace(/\$\{?\w+\}?/, value)] }, scope, cx, place, variables, isRewritten);
		});
	}
}

/** Writes how the path changes because the address of `proxy_pass` has a URI. */
function writeTarget(
	uri: string | undefined,
	place: Place,
	cx: ServerContext,
	variables: Variables,
	isRewritten: boolean,
): void {
	const { out } = cx;
	if (uri === undefined || uri === '$request_uri') {
		if (uri !== undefined && isRewritten) out.line('rewrite {orig_uri}');
		return;
	}
	if (hasVariable(uri)) {
		const value = translated(uri.replace(/\$is_args\$args$/, ''), variables);
		out.line(`rewrite ${word(uri.includes('$is_args$args') || uri.includes('?') ? value : `${value}?`)}`);
		return;
	}
	// After a `rewrite`, nginx ignores the URI of the address.
	if (isRewritten) return;
	if (place.kind === 'exact' && uri !== place.path) out.line(`rewrite ${word(uri)}`);
	if (place.kind !== 'prefix' || uri === place.path) return;
	if (place.path.endsWith('/') && uri.endsWith('/')) {
		if (place.path !== '/') out.line(`uri strip_prefix ${word(place.path.slice(0, -1))}`);
		if (uri !== '/') out.line(`rewrite ${word(`${uri.slice(0, -1)}{path}`)}`);
		return;
	}
	const name = out.unusedName('rest');
	out.block(`when path_regexp ${name} ${word(`^${escapedRegexp(place.path)}(?s:(.*))`)}`, () =>
		out.line(`rewrite ${word(`${uri}{re.${name}.1}`)}`),
	);
}

function writeForwarding(
	{ scheme, host, uri }: { scheme: string; host: string; uri: string | undefined },
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
): void {
	const { out, pools } = cx;
	const prefix = scheme.startsWith('grpc') ? 'grpc' : 'proxy';
	const isTls = scheme === 'https' || scheme === 'grpcs';
	const transport = transportOf(prefix, scope, out, cx);
	const retries = retriesOf(scope, out);
	const pool = pools.has(host);
	const settings = [
		...retries,
		...(transport.length > 0 ? ['transport http {', ...transport.map(line => `\t${line}`), '}'] : []),
	];
	const plain = hasVariable(host) ? translated(host, variables) : upstreamAddress(host, isTls ? 443 : 80);
	const to = pool
		? `upstream://${pools.use(host, settings, isTls)}`
		: isTls
			? `https://${plain}`
			: scheme === 'grpc'
				? `h2c://${plain}`
				: plain;
	const fields = scope.all(`${prefix}_set_header`);
	out.block(`reverse_proxy ${word(to)}`, () => {
		const sent = fields.some(({ args }) => args[0]?.toLowerCase() === 'host');
		if (!sent && !hasVariable(host)) out.line(`header_up Host ${word(host.startsWith('unix:') ? 'localhost' : host)}`);
		for (const field of fields) writeField(field, cx, variables);
		if (scope.value('proxy_pass_request_headers') === 'off') out.line('header_up -*');
		for (const one of scope.all('proxy_hide_header')) {
			out.count(one);
			out.line(`header_down ${word(`-${one.args[0]}`)}`);
		}
		writeRedirects(scope, cx, { scheme, host, uri, sent }, place);
		writeIntercepted(scope, out, 'proxy');
		const method = scope.last('proxy_method');
		if (method) orKeep(method, out, () => out.line(`method ${word(translated(method.args[0] ?? '', variables))}`));
		if (!pool) for (const line of settings) if (line !== 'no retries') out.line(line);
	});
}

/** Writes a field that `proxy_set_header` sets. */
export function writeField(field: NginxDirective, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [name = '', value = ''] = field.args;
	const key = name.toLowerCase();
	if (value === '$proxy_add_x_forwarded_for')
		cx.head.line(
			'# Addresses that a client sends in X-Forwarded-For are passed on only if `trusted_proxies` has the client.',
		);
	if (key === 'host' && value === '$host')
		cx.head.line('# lint: off-file proxy/header-up-default -- nginx sends the host without its port');
	// nginx sends no field whose value is empty. A field that is passed on unchanged therefore needs no line.
	const isPassedOn = value === `$http_${key.replaceAll('-', '_')}` && !/^(?:x-forwarded-|te$|keep-alive$)/.test(key);
	if (key === 'connection' || isPassedOn || (Object.hasOwn(SENT, key) && SENT[key]!.includes(value))) out.count(field);
	else if (value === '') orKeep(field, out, () => out.line(`header_up ${word(`-${name}`)}`));
	else {
		const isWritten = orKeep(field, out, () =>
			out.line(`header_up ${word(name)} ${quoted(translated(value, variables))}`),
		);
		// The upstream must not mistake a field that the client sent for the one that nginx sets.
		if (!isWritten) out.line(`header_up ${word(`-${name}`)}`);
	}
}

const TIMES: { readonly [name: string]: string } = {
	connect: 'dial_timeout',
	read: 'read_timeout',
	send: 'write_timeout',
};

function transportOf(prefix: string, scope: Scope, out: ConfigfileWriter, _cx: ServerContext): string[] {
	const lines: string[] = [];
	for (const [name, setting] of Object.entries(TIMES)) {
		const one = scope.last(`${prefix}_${name}_timeout`);
		if (one) orKeep(one, out, () => lines.push(`${setting} ${durationOf(one.args[0] ?? '')}`));
	}
	const certificate = scope.last(`${prefix}_ssl_certificate`);
	const key = scope.last(`${prefix}_ssl_certificate_key`);
	if (certificate && key) {
		lines.push(`tls_client_auth ${word(certificate.args[0] ?? '')} ${word(key.args[0] ?? '')}`);
		out.count(certificate);
		out.count(key);
	}
	const name = scope.last(`${prefix}_ssl_name`);
	if (name && !hasVariable(name.args[0] ?? '')) {
		lines.push(`tls_server_name ${word(name.args[0] ?? '')}`);
		out.count(name);
	}
	const trusted = scope.last(`${prefix}_ssl_trusted_certificate`);
	if (trusted) {
		lines.push(`tls_trust_pool file ${word(trusted.args[0] ?? '')}`);
		out.count(trusted);
	}
	return lines;
}

/** Returns the lines for `proxy_next_upstream`. */
function retriesOf(scope: Scope, out: ConfigfileWriter): string[] {
	const next = scope.last('proxy_next_upstream');
	if (!next) return [];
	if (next.args[0] === 'off') {
		out.count(next);
		return ['no retries'];
	}
	const statuses = next.args.flatMap(arg => /^http_(\d{3})$/.exec(arg)?.[1] ?? []);
	const odd = next.args.filter(arg => !/^(?:error|timeout|http_\d{3}|invalid_header)$/.test(arg));
	if (odd.length > 0) {
		out.keep(next, `no counterpart for ${odd.join(', ')}`);
		return [];
	}
	out.count(next);
	if (statuses.length === 0) return [];
	return [
		`lb_retry_match \`{rp.status_code} in [${statuses.join(', ')}] && method('GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS')\``,
	];
}

/** Writes what nginx replaces in redirects from the upstream: by default, the upstream's address and URI. */
function writeRedirects(
	scope: Scope,
	{ out }: ServerContext,
	to: { scheme: string; host: string; uri: string | undefined; sent: boolean },
	place: Place,
): void {
	const lines = scope.all('proxy_redirect');
	const replace = (from: string, by: string): void => out.line(`header_down Location ${word(from)} ${quoted(by)}`);
	for (const one of lines) {
		const [from = '', by = ''] = one.args;
		if (from === 'off' || from === 'default') out.count(one);
		else if (from.startsWith('~') || hasVariable(from + by)) out.keep(one, 'only fixed texts are replaced');
		else {
			out.count(one);
			replace(`^${escapedRegexp(from)}`, by);
		}
	}
	const isDefault = lines.length === 0 || lines.some(({ args }) => args[0] === 'default');
	if (
		!isDefault ||
		hasVariable(to.host) ||
		hasVariable(to.uri ?? '') ||
		(place.kind !== 'prefix' && place.kind !== 'exact')
	)
		return;
	// With the client's host, upstreams do not redirect to their own addresses.
	if (to.sent && lines.length === 0 && to.uri === undefined) return;
	replace(`^${escapedRegexp(`${to.scheme}://${to.host}${to.uri ?? place.path}`)}`, place.path);
}

/** Writes that errors of the upstream are answered here, by `error_page`. */
function writeIntercepted(scope: Scope, out: ConfigfileWriter, prefix: string): void {
	const one = scope.last(`${prefix}_intercept_errors`);
	if (!one) return;
	out.count(one);
	const statuses = scope.all('error_page').flatMap(({ args }) => args.slice(0, -1).filter(arg => /^\d{3}$/.test(arg)));
	if (one.args[0] !== 'on' || statuses.length === 0) return;
	out.line(`@error status ${[...new Set(statuses)].join(' ')}`);
	out.block('handle_response @error', () => out.line('error "from the upstream" {rp.status_code}'));
}

/** FastCGI parameters that are sent without a line. */
const PARAMETERS: ReadonlySet<string> = new Set([
	...['QUERY_STRING', 'REQUEST_METHOD', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'SCRIPT_NAME', 'REQUEST_URI', 'DOCUMENT_URI'],
	...['DOCUMENT_ROOT', 'SERVER_PROTOCOL', 'REQUEST_SCHEME', 'HTTPS', 'GATEWAY_INTERFACE', 'SERVER_SOFTWARE'],
	...['REMOTE_ADDR', 'REMOTE_PORT', 'REMOTE_USER', 'SERVER_ADDR', 'SERVER_PORT', 'SERVER_NAME', 'REDIRECT_STATUS'],
	...['SCRIPT_FILENAME', 'PATH_INFO', 'PATH_TRANSLATED'],
]);

/** Writes `fastcgi_pass`. The folder is that of the variable `root`. */
export function writePhp(one: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out, pools } = cx;
	const address = (one.args[0] ?? '').replace(/\$\{?(\w+)\}?/g, (text, name: string) => cx.constants.get(name) ?? text);
	for (const name of ['fastcgi_split_path_info', 'fastcgi_index']) for (const line of scope.all(name)) out.count(line);
	const isWritten = orKeep(one, out, () => {
		if (hasVariable(address)) throw new Untranslatable('an address with variables has no counterpart');
		const lines = ['split .php'];
		for (const param of scope.all('fastcgi_param')) {
			const [name = '', value = ''] = param.args;
			if (PARAMETERS.has(name)) out.count(param);
			else orKeep(param, out, () => lines.push(`env ${word(name)} ${quoted(translated(value, variables))}`));
		}
		for (const [name, setting] of Object.entries(TIMES)) {
			const time = scope.last(`fastcgi_${name}_timeout`);
			if (time) orKeep(time, out, () => lines.push(`${setting} ${durationOf(time.args[0] ?? '')}`));
		}
		const transport = ['transport fastcgi {', ...lines.map(line => `\t${line}`), '}'];
		const pool = pools.has(address);
		out.block(
			`reverse_proxy ${word(pool ? `upstream://${pools.use(address, transport, false)}` : upstreamAddress(address, 9000))}`,
			() => {
				for (const hidden of scope.all('fastcgi_hide_header')) {
					out.count(hidden);
					out.line(`header_down ${word(`-${hidden.args[0]}`)}`);
				}
				writeIntercepted(scope, out, 'fastcgi');
				if (!pool) for (const line of transport) out.line(line);
			},
		);
	});
	if (!isWritten) out.line('error 502');
}
