/** Writes access control: `limit_req`, `limit_conn`, `allow` and `deny`, `auth_basic`, `auth_request` and `satisfy`. */
import { translateAddressRules } from './conditions.ts';
import { quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translated, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/**
 * Writes the access rules of a scope. Returns true if they refuse every request. If a rule cannot be translated, access is denied,
 * so that an import never opens what was closed.
 */
export function writeAccess(scope: Scope, cx: ServerContext, variables: Variables): boolean {
	const { out } = cx;
	for (const directive of scope.all('limit_req'))
		orKeep(directive, out, () => writeRateLimit(directive, scope, cx, variables));
	for (const directive of scope.all('limit_conn'))
		orKeep(directive, out, () => writeConcurrencyLimit(directive, scope, cx, variables));
	for (const name of ['limit_req_status', 'limit_req_dry_run', 'limit_conn_status', 'limit_conn_dry_run'])
		for (const directive of scope.all(name)) out.count(directive);
	const rules = scope.all('access');
	let allowed: string | boolean;
	try {
		allowed = translateAddressRules(rules, cx.address.matcher);
		for (const rule of rules) out.count(rule);
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		for (const rule of rules) out.keep(rule, `${error.message}; access is denied`);
		allowed = false;
	}
	const satisfy = scope.last('satisfy');
	if (satisfy) out.count(satisfy);
	const basicAuth = scope.last('auth_basic');
	const isBasicAuthOff = basicAuth === undefined || basicAuth.args[0] === 'off';
	if (basicAuth && isBasicAuthOff) out.count(basicAuth);
	const authRequest = scope.last('auth_request');
	const asksOtherServer = authRequest !== undefined && authRequest.args[0] !== 'off';
	if (authRequest && !asksOtherServer) out.count(authRequest);
	const writeRefusal = (): void => out.line('error 403');
	const writeAuthentication = (): boolean => {
		const isWritten =
			(isBasicAuthOff || writeBasicAuth(basicAuth!, scope, cx)) &&
			(!asksOtherServer || writeAuthRequest(authRequest!, scope, cx));
		if (!isWritten) writeRefusal();
		return !isWritten;
	};
	if (satisfy?.args[0] === 'any' && rules.length > 0 && (asksOtherServer || !isBasicAuthOff)) {
		if (allowed === true) return false;
		if (allowed === false) return writeAuthentication();
		out.block(`when ${negated(allowed)}`, () => void writeAuthentication());
		return false;
	}
	if (allowed === false) {
		writeRefusal();
		return true;
	}
	if (allowed !== true) out.block(`when ${negated(allowed)}`, writeRefusal);
	return writeAuthentication();
}

/** Returns the opposite of an expression. */
function negated(expression: string): string {
	if (/ (?:and|or) /.test(expression)) return `not ( ${expression} )`;
	return expression.startsWith('not ') ? expression.slice(4) : `not ${expression}`;
}

/** Writes `auth_basic`. Returns false if it cannot be translated; access must then be denied. */
function writeBasicAuth(auth: NginxDirective, scope: Scope, { out }: ServerContext): boolean {
	const [realm = ''] = auth.args;
	const users = scope.last('auth_basic_user_file');
	const [file = ''] = users?.args ?? [];
	if (!users || hasVariable(realm) || /[${}]/.test(file) || file === '') {
		const reason = users
			? 'a realm or a file that depends on the request has no counterpart'
			: 'no `auth_basic_user_file` holds here';
		out.keep(auth, `${reason}; access is denied`);
		if (users) out.keep(users, 'see `auth_basic`');
		return false;
	}
	out.count(users);
	out.count(auth);
	const isUsableRealm = /^[ -z|~]+$/.test(realm);
	const head = isUsableRealm ? `basic_auth bcrypt ${quoted(realm)}` : 'basic_auth';
	out.block(head, () => out.line(`htpasswd ${word(file)}`));
	if (!isUsableRealm) out.keepInstead(auth, 'a realm is printable ASCII without braces: the default one is used');
	return true;
}

/**
 * Writes `auth_request`, which asks another server for permission. Returns false if it cannot be translated; access must then be
 * denied.
 */
function writeAuthRequest(request: NginxDirective, scope: Scope, cx: ServerContext): boolean {
	const { out } = cx;
	return orKeep(request, out, () => {
		const location = cx.exactLocation(request.args[0] ?? '');
		const pass = location?.block?.find(({ name }) => name === 'proxy_pass');
		const [, host, uri] = /^http:\/\/([^/$]+)(\/[^$]*)?$/.exec(pass?.args[0] ?? '') ?? [];
		if (host === undefined)
			throw new Untranslatable(
				'only an exact location with a `proxy_pass` to a fixed address is asked; access is denied',
			);
		const locationScope = new Scope(cx.scope, location!.block!);
		const address = cx.pools.has(host) ? `upstream://${cx.pools.variantName(host, [], false)}` : upstreamAddress(host);
		out.block(`forward_auth ${word(address)}`, () => {
			out.line(`uri ${word(uri ?? request.args[0]!)}`);
			for (const field of locationScope.all('proxy_set_header')) {
				const [name = '', value = ''] = field.args;
				if (/^(?:content-length|host|connection)$/i.test(name)) out.count(field);
				else orKeep(field, out, () => out.line(`header_up ${name} ${word(translated(value, cx.variables))}`));
			}
			for (const set of scope.all('auth_request_set')) {
				const name = /^\$upstream_http_(\w+)$/.exec(set.args[1] ?? '')?.[1];
				if (name === undefined) out.keep(set, 'only fields of the answer are copied');
				else {
					out.count(set);
					out.line(`copy_headers ${name.replaceAll('_', '-')}`);
				}
			}
			out.line('@refused status 401 403');
			out.block('handle_response @refused', () => out.line('error "refused" {rp.status_code}'));
			out.line('@unknown status 1xx 3xx 4xx 5xx');
			out.block('handle_response @unknown', () => out.line('error 500'));
		});
	});
}

function writeRateLimit(directive: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const option = (name: string): string | undefined =>
		directive.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
	const name = option('zone') ?? '';
	const zone = cx.zones.get(name);
	const [, count, unit] =
		/^(\d+)r\/([sm])$/.exec(zone?.args.find(arg => arg.startsWith('rate='))?.slice(5) ?? '') ?? [];
	if (!zone || count === undefined) throw new Untranslatable('its zone is not defined');
	const burst = Number(option('burst') ?? 0);
	const immediateBurst = directive.args.includes('nodelay') ? burst : Math.min(burst, Number(option('delay') ?? 0));
	const delaySeconds = ((burst - immediateBurst) * (unit === 's' ? 1 : 60)) / Number(count);
	out.count(zone);
	out.block(`rate_limit ${word(name)} ${count} per 1${unit}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		out.line(`burst ${immediateBurst + 1}`);
		if (delaySeconds > 0) out.line(`delay ${Math.round(delaySeconds * 1000)}ms`);
		if (scope.lastArgument('limit_req_dry_run') === 'on') out.line('dry_run');
	});
	if (scope.lastArgument('limit_req_status') !== '429')
		cx.head.addLine('# Requests beyond a limit of `limit_req` are answered with 429, not with 503.');
}

function writeConcurrencyLimit(directive: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [name = '', count = ''] = directive.args;
	const zone = cx.zones.get(name);
	if (zone?.name !== 'limit_conn_zone' || !/^\d+$/.test(count)) throw new Untranslatable('its zone is not defined');
	const status = scope.lastArgument('limit_conn_status') ?? '503';
	out.count(zone);
	out.block(`limit_concurrent ${word(name)} ${count}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		if (status === '429') out.line('status 429');
		if (scope.lastArgument('limit_conn_dry_run') === 'on') out.line('dry_run');
	});
	if (status !== '429' && status !== '503')
		cx.head.addLine('# Requests beyond a limit of `limit_conn` are answered with 503, not with another status.');
}

/** Writes the lines of a limit that say by which key requests are counted. */
function writeKey(key: string, { out }: ServerContext, variables: Variables): void {
	if (key === '$binary_remote_addr' || key === '$remote_addr') {
		out.line('ipv6_prefix 128');
		return;
	}
	const value = translated(key, variables);
	out.line(`key ${word(value)}`);
	// nginx does not count requests with an empty key.
	if (/^\{[^{}]+\}$/.test(value)) out.line(`match not vars ${value} ""`);
}
