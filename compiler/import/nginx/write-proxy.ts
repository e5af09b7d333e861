/** Translates `proxy_pass`, `grpc_pass` and `fastcgi_pass`. */
import { type ConfigfileWriter, quoteText, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, escapeRegexp, hasVariable, translateText, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** Which requests a location handles. `captureName` is the name of the location's regular expression. */
export type Place =
	| { readonly kind: 'exact' | 'prefix'; readonly path: string }
	| { readonly kind: 'regexp'; readonly captureName: string }
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

/** Translates `proxy_pass` or `grpc_pass`, and the proxy settings of its scope. */
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
	const addressWithScheme = isGrpc && !/^grpcs?:\/\//.test(address) ? `grpc://${address}` : address;
	const [, scheme, host = '', uri] =
		/^(https?|grpcs?):\/\/(unix:[^:]*:?|[^/$]*(?:\$\w+(?::\d+)?)?)([/$].*)?$/.exec(addressWithScheme) ?? [];
	const variableMatch = /^(?:https?:\/\/)?\$(\w+)(\/.*|\$.*)?$/.exec(address);
	const possibleAddresses = variableMatch ? cx.maps.possibleValues(variableMatch[1]!) : undefined;
	if (variableMatch && possibleAddresses) {
		if (
			!translateOrKeep(pass, out, () =>
				writeProxyChoice(pass, variableMatch[1]!, possibleAddresses, scope, cx, place, variables, isRewritten),
			)
		)
			out.writeLine('error 502');
		return;
	}
	const isWritten = translateOrKeep(pass, out, () => {
		if (scheme === undefined || host === '' || (hasVariable(host) && cx.pools.has(host)))
			throw new Untranslatable('the import does not recognize the address');
		writePathChange(uri, place, cx, variables, isRewritten);
		writeForwarding({ scheme, host, uri }, scope, cx, place, variables);
	});
	if (!isWritten) out.writeLine('error 502');
}

/** Writes a proxy for each value of the variable that selects the address. `variableName` is the variable's name. */
function writeProxyChoice(
	pass: NginxDirective,
	variableName: string,
	values: readonly string[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	isRewritten: boolean,
): void {
	const addressText = pass.args[0]!;
	const placeholder = variables.placeholderOf(variableName);
	const addresses = [...new Set(values)];
	for (const [index, value] of addresses.entries()) {
		const isLast = index === addresses.length - 1;
		cx.out.writeBranch(isLast ? undefined : `vars ${placeholder} ${quoteText(value)}`, index === 0, () => {
			if (value === '') cx.out.writeLine('error 500');
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

/** Writes the lines that change the path as nginx does if the address in `proxy_pass` has a URI. */
function writePathChange(
	uri: string | undefined,
	place: Place,
	cx: ServerContext,
	variables: Variables,
	isRewritten: boolean,
): void {
	const { out } = cx;
	if (uri === undefined || uri === '$request_uri') {
		if (uri !== undefined && isRewritten) out.writeLine('rewrite {orig_uri}');
		return;
	}
	if (hasVariable(uri)) {
		const value = translateText(uri.replace(/\$is_args\$args$/, ''), variables);
		out.writeLine(`rewrite ${word(uri.includes('$is_args$args') || uri.includes('?') ? value : `${value}?`)}`);
		return;
	}
	// After a `rewrite` of the path, nginx ignores the URI in the address.
	if (isRewritten) return;
	if (place.kind === 'exact' && uri !== place.path) out.writeLine(`rewrite ${word(uri)}`);
	if (place.kind !== 'prefix' || uri === place.path) return;
	if (place.path.endsWith('/') && uri.endsWith('/')) {
		if (place.path !== '/') out.writeLine(`uri strip_prefix ${word(place.path.slice(0, -1))}`);
		if (uri !== '/') out.writeLine(`rewrite ${word(`${uri.slice(0, -1)}{path}`)}`);
		return;
	}
	const captureName = out.unusedName('rest');
	out.writeBlock(`when path_regexp ${captureName} ${word(`^${escapeRegexp(place.path)}(?s:(.*))`)}`, () =>
		out.writeLine(`rewrite ${word(`${uri}{re.${captureName}.1}`)}`),
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
	const directivePrefix = scheme.startsWith('grpc') ? 'grpc' : 'proxy';
	const isTls = scheme === 'https' || scheme === 'grpcs';
	const transportSettings = transportLines(directivePrefix, scope, out, cx);
	const retrySettings = retryLines(scope, out);
	const isPool = pools.has(host);
	const settings = [
		...retrySettings,
		...(transportSettings.length > 0 ? ['transport http {', ...transportSettings.map(line => `\t${line}`), '}'] : []),
	];
	const address = hasVariable(host) ? translateText(host, variables) : upstreamAddress(host, isTls ? 443 : 80);
	const target = isPool
		? `upstream://${pools.variantName(host, settings, isTls)}`
		: isTls
			? `https://${address}`
			: scheme === 'grpc'
				? `h2c://${address}`
				: address;
	const fieldDirectives = scope.directivesIn(`${directivePrefix}_set_header`);
	out.writeBlock(`reverse_proxy ${word(target)}`, () => {
		const setsHost = fieldDirectives.some(({ args }) => args[0]?.toLowerCase() === 'host');
		if (!setsHost && !hasVariable(host))
			out.writeLine(`header_up Host ${word(host.startsWith('unix:') ? 'localhost' : host)}`);
		for (const field of fieldDirectives) writeField(field, cx, variables);
		if (scope.lastArgument('proxy_pass_request_headers') === 'off') out.writeLine('header_up -*');
		for (const hideDirective of scope.directivesIn('proxy_hide_header')) {
			out.countTranslated(hideDirective);
			out.writeLine(`header_down ${word(`-${hideDirective.args[0]}`)}`);
		}
		writeRedirects(scope, cx, { scheme, host, uri, setsHost }, place);
		writeErrorInterception(scope, out, 'proxy');
		const methodDirective = scope.lastDirective('proxy_method');
		if (methodDirective)
			translateOrKeep(methodDirective, out, () =>
				out.writeLine(`method ${word(translateText(methodDirective.args[0] ?? '', variables))}`),
			);
		if (!isPool) for (const line of settings) if (line !== 'no retries') out.writeLine(line);
	});
}

/** Writes the translation of a `proxy_set_header` line. */
export function writeField(field: NginxDirective, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [name = '', value = ''] = field.args;
	const lowerName = name.toLowerCase();
	if (value === '$proxy_add_x_forwarded_for')
		cx.head.addLine(
			'# Addresses that a client sends in X-Forwarded-For are passed on only if `trusted_proxies` has the client.',
		);
	if (lowerName === 'host' && value === '$host')
		cx.head.addLine('# lint: off-file proxy/header-up-default -- nginx sends the host without its port');
	// nginx does not send a field with an empty value, so a field that is passed on unchanged needs no line.
	const isUnchanged =
		value === `$http_${lowerName.replaceAll('-', '_')}` && !/^(?:x-forwarded-|te$|keep-alive$)/.test(lowerName);
	if (
		lowerName === 'connection' ||
		isUnchanged ||
		(Object.hasOwn(DEFAULT_FIELD_VALUES, lowerName) && DEFAULT_FIELD_VALUES[lowerName]!.includes(value))
	)
		out.countTranslated(field);
	else if (value === '') translateOrKeep(field, out, () => out.writeLine(`header_up ${word(`-${name}`)}`));
	else {
		const isWritten = translateOrKeep(field, out, () =>
			out.writeLine(`header_up ${word(name)} ${quoteText(translateText(value, variables))}`),
		);
		// If the value cannot be translated, the client's field is removed, so that the upstream does not mistake it for the one
		// that nginx sets.
		if (!isWritten) out.writeLine(`header_up ${word(`-${name}`)}`);
	}
}

const TIMEOUT_SETTINGS: { readonly [name: string]: string } = {
	connect: 'dial_timeout',
	read: 'read_timeout',
	send: 'write_timeout',
};

function transportLines(prefix: string, scope: Scope, out: ConfigfileWriter, _cx: ServerContext): string[] {
	const lines: string[] = [];
	for (const [timeoutName, setting] of Object.entries(TIMEOUT_SETTINGS)) {
		const timeoutDirective = scope.lastDirective(`${prefix}_${timeoutName}_timeout`);
		if (timeoutDirective)
			translateOrKeep(timeoutDirective, out, () =>
				lines.push(`${setting} ${durationOf(timeoutDirective.args[0] ?? '')}`),
			);
	}
	const certificateDirective = scope.lastDirective(`${prefix}_ssl_certificate`);
	const keyDirective = scope.lastDirective(`${prefix}_ssl_certificate_key`);
	if (certificateDirective && keyDirective) {
		lines.push(`tls_client_auth ${word(certificateDirective.args[0] ?? '')} ${word(keyDirective.args[0] ?? '')}`);
		out.countTranslated(certificateDirective);
		out.countTranslated(keyDirective);
	}
	const nameDirective = scope.lastDirective(`${prefix}_ssl_name`);
	if (nameDirective && !hasVariable(nameDirective.args[0] ?? '')) {
		lines.push(`tls_server_name ${word(nameDirective.args[0] ?? '')}`);
		out.countTranslated(nameDirective);
	}
	const trustedDirective = scope.lastDirective(`${prefix}_ssl_trusted_certificate`);
	if (trustedDirective) {
		lines.push(`tls_trust_pool file ${word(trustedDirective.args[0] ?? '')}`);
		out.countTranslated(trustedDirective);
	}
	return lines;
}

/** Returns the settings for `proxy_next_upstream`. The line `no retries` is a marker for the caller and is not written. */
function retryLines(scope: Scope, out: ConfigfileWriter): string[] {
	const directive = scope.lastDirective('proxy_next_upstream');
	if (!directive) return [];
	if (directive.args[0] === 'off') {
		out.countTranslated(directive);
		return ['no retries'];
	}
	const statuses = directive.args.flatMap(arg => /^http_(\d{3})$/.exec(arg)?.[1] ?? []);
	const unsupportedArguments = directive.args.filter(arg => !/^(?:error|timeout|http_\d{3}|invalid_header)$/.test(arg));
	if (unsupportedArguments.length > 0) {
		out.keepAsComment(directive, `no counterpart for ${unsupportedArguments.join(', ')}`);
		return [];
	}
	out.countTranslated(directive);
	if (statuses.length === 0) return [];
	return [
		`lb_retry_match \`{rp.status_code} in [${statuses.join(', ')}] && method('GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS')\``,
	];
}

/** Writes the lines that change redirects from the upstream. By default, nginx replaces the upstream's address and URI. */
function writeRedirects(
	scope: Scope,
	{ out }: ServerContext,
	target: { scheme: string; host: string; uri: string | undefined; setsHost: boolean },
	place: Place,
): void {
	const redirectDirectives = scope.directivesIn('proxy_redirect');
	const writeReplacement = (from: string, replacement: string): void =>
		out.writeLine(`header_down Location ${word(from)} ${quoteText(replacement)}`);
	for (const directive of redirectDirectives) {
		const [from = '', replacement = ''] = directive.args;
		if (from === 'off' || from === 'default') out.countTranslated(directive);
		else if (from.startsWith('~') || hasVariable(from + replacement))
			out.keepAsComment(directive, 'only fixed texts are replaced');
		else {
			out.countTranslated(directive);
			writeReplacement(`^${escapeRegexp(from)}`, replacement);
		}
	}
	const usesDefault = redirectDirectives.length === 0 || redirectDirectives.some(({ args }) => args[0] === 'default');
	if (
		!usesDefault ||
		hasVariable(target.host) ||
		hasVariable(target.uri ?? '') ||
		(place.kind !== 'prefix' && place.kind !== 'exact')
	)
		return;
	// An upstream that receives the client's `Host` does not redirect to its own address, so there is nothing to replace.
	if (target.setsHost && redirectDirectives.length === 0 && target.uri === undefined) return;
	writeReplacement(`^${escapeRegexp(`${target.scheme}://${target.host}${target.uri ?? place.path}`)}`, place.path);
}

/** Writes the lines that let the rules of `error_page` answer errors from the upstream. */
function writeErrorInterception(scope: Scope, out: ConfigfileWriter, prefix: string): void {
	const directive = scope.lastDirective(`${prefix}_intercept_errors`);
	if (!directive) return;
	out.countTranslated(directive);
	const statuses = scope
		.directivesIn('error_page')
		.flatMap(({ args }) => args.slice(0, -1).filter(arg => /^\d{3}$/.test(arg)));
	if (directive.args[0] !== 'on' || statuses.length === 0) return;
	out.writeLine(`@error status ${[...new Set(statuses)].join(' ')}`);
	out.writeBlock('handle_response @error', () => out.writeLine('error "from the upstream" {rp.status_code}'));
}

/** FastCGI parameters that the server sends by default, so that they need no line. */
const DEFAULT_FASTCGI_PARAMETERS: ReadonlySet<string> = new Set([
	...['QUERY_STRING', 'REQUEST_METHOD', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'SCRIPT_NAME', 'REQUEST_URI', 'DOCUMENT_URI'],
	...['DOCUMENT_ROOT', 'SERVER_PROTOCOL', 'REQUEST_SCHEME', 'HTTPS', 'GATEWAY_INTERFACE', 'SERVER_SOFTWARE'],
	...['REMOTE_ADDR', 'REMOTE_PORT', 'REMOTE_USER', 'SERVER_ADDR', 'SERVER_PORT', 'SERVER_NAME', 'REDIRECT_STATUS'],
	...['SCRIPT_FILENAME', 'PATH_INFO', 'PATH_TRANSLATED'],
]);

/** Translates `fastcgi_pass`. The folder of the scripts is the one that a `root` line sets. */
export function writePhp(pass: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out, pools } = cx;
	const address = (pass.args[0] ?? '').replace(
		/\$\{?(\w+)\}?/g,
		(text, name: string) => cx.constants.get(name) ?? text,
	);
	for (const name of ['fastcgi_split_path_info', 'fastcgi_index'])
		for (const line of scope.directivesIn(name)) out.countTranslated(line);
	const isWritten = translateOrKeep(pass, out, () => {
		if (hasVariable(address)) throw new Untranslatable('an address with variables has no counterpart');
		const transportSettings = ['split .php'];
		for (const paramDirective of scope.directivesIn('fastcgi_param')) {
			const [name = '', value = ''] = paramDirective.args;
			if (DEFAULT_FASTCGI_PARAMETERS.has(name)) out.countTranslated(paramDirective);
			else
				translateOrKeep(paramDirective, out, () =>
					transportSettings.push(`env ${word(name)} ${quoteText(translateText(value, variables))}`),
				);
		}
		for (const [timeoutName, setting] of Object.entries(TIMEOUT_SETTINGS)) {
			const timeoutDirective = scope.lastDirective(`fastcgi_${timeoutName}_timeout`);
			if (timeoutDirective)
				translateOrKeep(timeoutDirective, out, () =>
					transportSettings.push(`${setting} ${durationOf(timeoutDirective.args[0] ?? '')}`),
				);
		}
		const transportBlock = ['transport fastcgi {', ...transportSettings.map(line => `\t${line}`), '}'];
		const isPool = pools.has(address);
		out.writeBlock(
			`reverse_proxy ${word(isPool ? `upstream://${pools.variantName(address, transportBlock, false)}` : upstreamAddress(address, 9000))}`,
			() => {
				for (const hideDirective of scope.directivesIn('fastcgi_hide_header')) {
					out.countTranslated(hideDirective);
					out.writeLine(`header_down ${word(`-${hideDirective.args[0]}`)}`);
				}
				writeErrorInterception(scope, out, 'fastcgi');
				if (!isPool) for (const line of transportBlock) out.writeLine(line);
			},
		);
	});
	if (!isWritten) out.writeLine('error 502');
}
