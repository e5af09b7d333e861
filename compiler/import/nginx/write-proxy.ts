/** Writes `proxy_pass`, `grpc_pass` and `fastcgi_pass`. */
import { type ConfigfileWriter, quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, escapedRegexp, hasVariable, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** How requests are chosen for a block. `captures` is the name of the location's regular expression. */
export type Place =
	| { readonly kind: 'exact' | 'prefix'; readonly path: string }
	| { readonly kind: 'regexp'; readonly captures: string }
	| { readonly kind: 'server' | 'named' };

/** Values with which `reverse_proxy` sets request fields by itself, by the field's lower-case name. */
const DEFAULT_FIELD_VALUES: { readonly [field: string]: readonly string[] } = {
	host: ['$http_host', '$host:$server_port'],
	'x-forwarded-for': ['$remote_addr', '$proxy_add_x_forwarded_for'],
	'x-forwarded-proto': ['$scheme'],
	'x-forwarded-host': ['$http_host'],
	upgrade: ['$http_upgrade'],
	'accept-encoding': ['$http_accept_encoding'],
};

/** Writes `proxy_pass` or `grpc_pass` with the proxy settings of its scope. */
export function writeProxy(
	pass: NginxDirective,
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	isRewritten: boolean,
): void {
	const { out } = cx;
	const address = (pass.args[0] ?? '').replace(
		/\$\{?(\w+)\}?/g,
		(text, name: string) => cx.constants.get(name) ?? text,
	);
	const isGrpc = pass.name === 'grpc_pass';
	const withScheme = isGrpc && !/^grpcs?:\/\//.test(address) ? `grpc://${address}` : address;
	const [, scheme, host = '', uri] =
		/^(https?|grpcs?):\/\/(unix:[^:]*:?|[^/$]*(?:\$\w+(?::\d+)?)?)([/$].*)?$/.exec(withScheme) ?? [];
	const variable = /^(?:https?:\/\/)?\$(\w+)(\/.*|\$.*)?$/.exec(address);
	const values = variable ? cx.maps.possibleValues(variable[1]!) : undefined;
	if (variable && values) {
		if (
			!orKeep(pass, out, () => writeProxyChoice(pass, variable[1]!, values, scope, cx, place, variables, isRewritten))
		)
			out.line('error 502');
		return;
	}
	const isWritten = orKeep(pass, out, () => {
		if (scheme === undefined || host === '' || (hasVariable(host) && cx.pools.has(host)))
			throw new Untranslatable('the address is not one that the import knows');
		writePathChange(uri, place, cx, variables, isRewritten);
		writeForwarding({ scheme, host, uri }, scope, cx, place, variables);
	});
	if (!isWritten) out.line('error 502');
}

/** Writes a proxy for each value of the variable that selects the address. `name` is the variable's name. */
function writeProxyChoice(
	pass: NginxDirective,
	name: string,
	values: readonly string[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	isRewritten: boolean,
): void {
	const addressText = pass.args[0]!;
	const placeholder = variables.placeholder(name);
	const addresses = [...new Set(values)];
	for (const [index, value] of addresses.entries()) {
		const isLast = index === addresses.length - 1;
		cx.out.branch(isLast ? undefined : `vars ${placeholder} ${quoted(value)}`, index === 0, () => {
			if (value === '') cx.out.line('error 500');
			else
				writeProxy(
					{ ...pass, args: [addressText.replace(/\$\{?\w+\}?/, value)] },
					scope,
					cx,
					place,
					variables,
					isRewritten,
				);
		});
	}
}

/** Writes the change of the path that a URI in the address of `proxy_pass` causes. */
function writePathChange(
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
	// After a `rewrite` of the path, nginx ignores the URI in the address.
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
	const transport = transportLines(prefix, scope, out, cx);
	const retries = retryLines(scope, out);
	const pool = pools.has(host);
	const settings = [
		...retries,
		...(transport.length > 0 ? ['transport http {', ...transport.map(line => `\t${line}`), '}'] : []),
	];
	const address = hasVariable(host) ? translated(host, variables) : upstreamAddress(host, isTls ? 443 : 80);
	const target = pool
		? `upstream://${pools.variantName(host, settings, isTls)}`
		: isTls
			? `https://${address}`
			: scheme === 'grpc'
				? `h2c://${address}`
				: address;
	const fields = scope.all(`${prefix}_set_header`);
	out.block(`reverse_proxy ${word(target)}`, () => {
		const setsHost = fields.some(({ args }) => args[0]?.toLowerCase() === 'host');
		if (!setsHost && !hasVariable(host))
			out.line(`header_up Host ${word(host.startsWith('unix:') ? 'localhost' : host)}`);
		for (const field of fields) writeField(field, cx, variables);
		if (scope.lastArgument('proxy_pass_request_headers') === 'off') out.line('header_up -*');
		for (const hidden of scope.all('proxy_hide_header')) {
			out.count(hidden);
			out.line(`header_down ${word(`-${hidden.args[0]}`)}`);
		}
		writeRedirects(scope, cx, { scheme, host, uri, setsHost }, place);
		writeErrorInterception(scope, out, 'proxy');
		const method = scope.last('proxy_method');
		if (method) orKeep(method, out, () => out.line(`method ${word(translated(method.args[0] ?? '', variables))}`));
		if (!pool) for (const line of settings) if (line !== 'no retries') out.line(line);
	});
}

/** Writes the translation of a `proxy_set_header` line. */
export function writeField(field: NginxDirective, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [name = '', value = ''] = field.args;
	const key = name.toLowerCase();
	if (value === '$proxy_add_x_forwarded_for')
		cx.head.addLine(
			'# Addresses that a client sends in X-Forwarded-For are passed on only if `trusted_proxies` has the client.',
		);
	if (key === 'host' && value === '$host')
		cx.head.addLine('# lint: off-file proxy/header-up-default -- nginx sends the host without its port');
	// nginx sends no field whose value is empty, so a field that is passed on unchanged needs no line.
	const isUnchanged = value === `$http_${key.replaceAll('-', '_')}` && !/^(?:x-forwarded-|te$|keep-alive$)/.test(key);
	if (
		key === 'connection' ||
		isUnchanged ||
		(Object.hasOwn(DEFAULT_FIELD_VALUES, key) && DEFAULT_FIELD_VALUES[key]!.includes(value))
	)
		out.count(field);
	else if (value === '') orKeep(field, out, () => out.line(`header_up ${word(`-${name}`)}`));
	else {
		const isWritten = orKeep(field, out, () =>
			out.line(`header_up ${word(name)} ${quoted(translated(value, variables))}`),
		);
		// If the value cannot be translated, the client's field is removed, so that the upstream does not mistake it for the one
		// that nginx sets.
		if (!isWritten) out.line(`header_up ${word(`-${name}`)}`);
	}
}

const TIMEOUTS: { readonly [name: string]: string } = {
	connect: 'dial_timeout',
	read: 'read_timeout',
	send: 'write_timeout',
};

function transportLines(prefix: string, scope: Scope, out: ConfigfileWriter, _cx: ServerContext): string[] {
	const lines: string[] = [];
	for (const [name, setting] of Object.entries(TIMEOUTS)) {
		const timeout = scope.last(`${prefix}_${name}_timeout`);
		if (timeout) orKeep(timeout, out, () => lines.push(`${setting} ${durationOf(timeout.args[0] ?? '')}`));
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

/** Returns the settings for `proxy_next_upstream`. The line `no retries` is a mark and is not written. */
function retryLines(scope: Scope, out: ConfigfileWriter): string[] {
	const directive = scope.last('proxy_next_upstream');
	if (!directive) return [];
	if (directive.args[0] === 'off') {
		out.count(directive);
		return ['no retries'];
	}
	const statuses = directive.args.flatMap(arg => /^http_(\d{3})$/.exec(arg)?.[1] ?? []);
	const unsupported = directive.args.filter(arg => !/^(?:error|timeout|http_\d{3}|invalid_header)$/.test(arg));
	if (unsupported.length > 0) {
		out.keep(directive, `no counterpart for ${unsupported.join(', ')}`);
		return [];
	}
	out.count(directive);
	if (statuses.length === 0) return [];
	return [
		`lb_retry_match \`{rp.status_code} in [${statuses.join(', ')}] && method('GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS')\``,
	];
}

/** Writes how redirects from the upstream are changed. By default, nginx replaces the upstream's address and URI. */
function writeRedirects(
	scope: Scope,
	{ out }: ServerContext,
	target: { scheme: string; host: string; uri: string | undefined; setsHost: boolean },
	place: Place,
): void {
	const lines = scope.all('proxy_redirect');
	const replace = (from: string, replacement: string): void =>
		out.line(`header_down Location ${word(from)} ${quoted(replacement)}`);
	for (const directive of lines) {
		const [from = '', replacement = ''] = directive.args;
		if (from === 'off' || from === 'default') out.count(directive);
		else if (from.startsWith('~') || hasVariable(from + replacement))
			out.keep(directive, 'only fixed texts are replaced');
		else {
			out.count(directive);
			replace(`^${escapedRegexp(from)}`, replacement);
		}
	}
	const isDefault = lines.length === 0 || lines.some(({ args }) => args[0] === 'default');
	if (
		!isDefault ||
		hasVariable(target.host) ||
		hasVariable(target.uri ?? '') ||
		(place.kind !== 'prefix' && place.kind !== 'exact')
	)
		return;
	// An upstream that receives the client's `Host` does not redirect to its own address.
	if (target.setsHost && lines.length === 0 && target.uri === undefined) return;
	replace(`^${escapedRegexp(`${target.scheme}://${target.host}${target.uri ?? place.path}`)}`, place.path);
}

/** Writes that errors from the upstream are answered by the rules of `error_page` instead. */
function writeErrorInterception(scope: Scope, out: ConfigfileWriter, prefix: string): void {
	const directive = scope.last(`${prefix}_intercept_errors`);
	if (!directive) return;
	out.count(directive);
	const statuses = scope.all('error_page').flatMap(({ args }) => args.slice(0, -1).filter(arg => /^\d{3}$/.test(arg)));
	if (directive.args[0] !== 'on' || statuses.length === 0) return;
	out.line(`@error status ${[...new Set(statuses)].join(' ')}`);
	out.block('handle_response @error', () => out.line('error "from the upstream" {rp.status_code}'));
}

/** FastCGI parameters that are sent without a line. */
const DEFAULT_PARAMETERS: ReadonlySet<string> = new Set([
	...['QUERY_STRING', 'REQUEST_METHOD', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'SCRIPT_NAME', 'REQUEST_URI', 'DOCUMENT_URI'],
	...['DOCUMENT_ROOT', 'SERVER_PROTOCOL', 'REQUEST_SCHEME', 'HTTPS', 'GATEWAY_INTERFACE', 'SERVER_SOFTWARE'],
	...['REMOTE_ADDR', 'REMOTE_PORT', 'REMOTE_USER', 'SERVER_ADDR', 'SERVER_PORT', 'SERVER_NAME', 'REDIRECT_STATUS'],
	...['SCRIPT_FILENAME', 'PATH_INFO', 'PATH_TRANSLATED'],
]);

/** Writes `fastcgi_pass`. The folder of the scripts is the one that a `root` line sets. */
export function writePhp(pass: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out, pools } = cx;
	const address = (pass.args[0] ?? '').replace(
		/\$\{?(\w+)\}?/g,
		(text, name: string) => cx.constants.get(name) ?? text,
	);
	for (const name of ['fastcgi_split_path_info', 'fastcgi_index']) for (const line of scope.all(name)) out.count(line);
	const isWritten = orKeep(pass, out, () => {
		if (hasVariable(address)) throw new Untranslatable('an address with variables has no counterpart');
		const lines = ['split .php'];
		for (const param of scope.all('fastcgi_param')) {
			const [name = '', value = ''] = param.args;
			if (DEFAULT_PARAMETERS.has(name)) out.count(param);
			else orKeep(param, out, () => lines.push(`env ${word(name)} ${quoted(translated(value, variables))}`));
		}
		for (const [name, setting] of Object.entries(TIMEOUTS)) {
			const timeout = scope.last(`fastcgi_${name}_timeout`);
			if (timeout) orKeep(timeout, out, () => lines.push(`${setting} ${durationOf(timeout.args[0] ?? '')}`));
		}
		const transport = ['transport fastcgi {', ...lines.map(line => `\t${line}`), '}'];
		const pool = pools.has(address);
		out.block(
			`reverse_proxy ${word(pool ? `upstream://${pools.variantName(address, transport, false)}` : upstreamAddress(address, 9000))}`,
			() => {
				for (const hidden of scope.all('fastcgi_hide_header')) {
					out.count(hidden);
					out.line(`header_down ${word(`-${hidden.args[0]}`)}`);
				}
				writeErrorInterception(scope, out, 'fastcgi');
				if (!pool) for (const line of transport) out.line(line);
			},
		);
	});
	if (!isWritten) out.line('error 502');
}
