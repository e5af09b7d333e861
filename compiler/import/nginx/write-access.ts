/** Writes who may pass: `limit_req`, `limit_conn`, `allow` and `deny`, `auth_basic`, `auth_request` and `satisfy`. */
import { allowedAddresses } from './conditions.ts';
import { quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translated, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/**
 * Writes the rules of access. Returns true if no request passes them. A rule that cannot be translated closes the location, so that
 * an import never opens what was closed.
 */
export function writeAccess(scope: Scope, cx: ServerContext, variables: Variables): boolean {
	const { out } = cx;
	for (const one of scope.all('limit_req')) orKeep(one, out, () => writeRateLimit(one, scope, cx, variables));
	for (const one of scope.all('limit_conn')) orKeep(one, out, () => writeConcurrencyLimit(one, scope, cx, variables));
	for (const name of ['limit_req_status', 'limit_req_dry_run', 'limit_conn_status', 'limit_conn_dry_run'])
		for (const one of scope.all(name)) out.count(one);
	const rules = scope.all('access');
	let allowed: string | boolean;
	try {
		allowed = allowedAddresses(rules, cx.address.matcher);
		for (const one of rules) out.count(one);
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		for (const one of rules) out.keep(one, `${error.message}; access is denied`);
		allowed = false;
	}
	const satisfy = scope.last('satisfy');
	if (satisfy) out.count(satisfy);
	const auth = scope.last('auth_basic');
	const isOff = auth === undefined || auth.args[0] === 'off';
	if (auth && isOff) out.count(auth);
	const request = scope.last('auth_request');
	const asksOtherServer = request !== undefined && request.args[0] !== 'off';
	if (request && !asksOtherServer) out.count(request);
	const refuse = (): void => out.line('error 403');
	const writeIdentification = (): boolean => {
		const isWritten =
			(isOff || writeBasicAuth(auth!, scope, cx)) && (!asksOtherServer || writeAuthRequest(request!, scope, cx));
		if (!isWritten) refuse();
		return !isWritten;
	};
	if (satisfy?.args[0] === 'any' && rules.length > 0 && (asksOtherServer || !isOff)) {
		if (allowed === true) return false;
		if (allowed === false) return writeIdentification();
		out.block(`when ${negated(allowed)}`, () => void writeIdentification());
		return false;
	}
	if (allowed === false) {
		refuse();
		return true;
	}
	if (allowed !== true) out.block(`when ${negated(allowed)}`, refuse);
	return writeIdentification();
}

/** Returns the opposite of an expression. */
function negated(expression: string): string {
	if (/ (?:and|or) /.test(expression)) return `not ( ${expression} )`;
	return expression.startsWith('not ') ? expression.slice(4) : `not ${expression}`;
}

/** Writes `auth_basic`. Returns false if it has no counterpart, so that access must be denied. */
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
	const isUsable = /^[ -z|~]+$/.test(realm);
	const head = isUsable ? `basic_auth bcrypt ${quoted(realm)}` : 'basic_auth';
	out.block(head, () => out.line(`htpasswd ${word(file)}`));
	if (!isUsable) out.keepInstead(auth, 'a realm is printable ASCII without braces: the default one is used');
	return true;
}

/** Writes an `auth_request`, which asks another server for permission. Returns false if it has no counterpart. */
function writeAuthRequest(request: NginxDirective, scope: Scope, cx: ServerContext): boolean {
	const { out } = cx;
	return orKeep(request, out, () => {
		const location = cx.exact(request.args[0] ?? '');
		const pass = location?.block?.find(({ name }) => name === 'proxy_pass');
		const [, host, uri] = /^http:\/\/([^/$]+)(\/[^$]*)?$/.exec(pass?.args[0] ?? '') ?? [];
		if (host === undefined)
			throw new Untranslatable(
				'only an exact location with a `proxy_pass` to a fixed address is asked; access is denied',
			);
		const inner = new Scope(cx.scope, location!.block!);
		const address = cx.pools.has(host) ? `upstream://${cx.pools.use(host, [], false)}` : upstreamAddress(host);
		out.block(`forward_auth ${word(address)}`, () => {
			out.line(`uri ${word(uri ?? request.args[0]!)}`);
			for (const field of inner.all('proxy_set_header')) {
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

function writeRateLimit(one: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const option = (name: string): string | undefined =>
		one.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
	const name = option('zone') ?? '';
	const zone = cx.zones.get(name);
	const [, count, unit] =
		/^(\d+)r\/([sm])$/.exec(zone?.args.find(arg => arg.startsWith('rate='))?.slice(5) ?? '') ?? [];
	if (!zone || count === undefined) throw new Untranslatable('its zone is not defined');
	const burst = Number(option('burst') ?? 0);
	const immediate = one.args.includes('nodelay') ? burst : Math.min(burst, Number(option('delay') ?? 0));
	const seconds = ((burst - immediate) * (unit === 's' ? 1 : 60)) / Number(count);
	out.count(zone);
	out.block(`rate_limit ${word(name)} ${count} per 1${unit}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		out.line(`burst ${immediate + 1}`);
		if (seconds > 0) out.line(`delay ${Math.round(seconds * 1000)}ms`);
		if (scope.value('limit_req_dry_run') === 'on') out.line('dry_run');
	});
	if (scope.value('limit_req_status') !== '429')
		cx.head.line('# Requests beyond a limit of `limit_req` are answered with 429, not with 503.');
}

function writeConcurrencyLimit(one: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [name = '', count = ''] = one.args;
	const zone = cx.zones.get(name);
	if (zone?.name !== 'limit_conn_zone' || !/^\d+$/.test(count)) throw new Untranslatable('its zone is not defined');
	const status = scope.value('limit_conn_status') ?? '503';
	out.count(zone);
	out.block(`limit_concurrent ${word(name)} ${count}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		if (status === '429') out.line('status 429');
		if (scope.value('limit_conn_dry_run') === 'on') out.line('dry_run');
	});
	if (status !== '429' && status !== '503')
		cx.head.line('# Requests beyond a limit of `limit_conn` are answered with 503, not with another status.');
}

/** Writes the lines of a zone that say which requests it counts separately. */
function writeKey(key: string, { out }: ServerContext, variables: Variables): void {
	if (key === '$binary_remote_addr' || key === '$remote_addr') {
		out.line('ipv6_prefix 128');
		return;
	}
	const value = translated(key, variables);
	out.line(`key ${word(value)}`);
	// An empty key is not counted.
	if (/^\{[^{}]+\}$/.test(value)) out.line(`match not vars ${value} ""`);
}
