/** Writes what answers a request in a location: a proxy, PHP or files, with access rules and header fields. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, sizeOf, translated, Untranslatable } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { orKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** Which requests a location has. */
export type Place =
	| { readonly kind: 'exact' | 'prefix'; readonly path: string }
	| { readonly kind: 'regexp'; readonly captures: string }
	| { readonly kind: 'server' | 'named' };

/** What {@link writeContent} needs to know. */
export interface ContentContext {
	readonly pools: ReadonlySet<string>;
	readonly place: Place;
	/** Finds a named location; the caller counts it. */
	readonly named?: (name: string) => { readonly block: readonly NginxDirective[]; readonly scope: Scope } | undefined;
}

/** Writes the content of a location. */
export function writeContent(
	block: readonly NginxDirective[],
	scope: Scope,
	out: ConfigfileWriter,
	cx: ContentContext,
): void {
	if (writeAccess(scope, out) || writeSettings(scope, out)) return;
	const tries = block.find(({ name }) => name === 'try_files');
	const proxy = block.find(({ name }) => name === 'proxy_pass');
	const php = block.find(({ name }) => name === 'fastcgi_pass');
	const alias = block.find(({ name }) => name === 'alias');
	if (proxy || php) {
		if (tries) out.keep(tries, 'beside a proxy, it is not translated');
		if (proxy) writeProxy(proxy, scope, out, cx);
		else if (php) writePhp(php, scope, out);
		return;
	}
	if (alias) {
		orKeep(alias, out, () => {
			const folder = alias.args[0] ?? '';
			if (cx.place.kind !== 'prefix')
				throw new Untranslatable('`alias` is translated only in a location with a prefix');
			out.line(`uri strip_prefix ${word(cx.place.path.replace(/\/$/, '') || '/')}`);
			out.line(`root ${word(translated(folder))}`);
		});
		if (cx.place.kind !== 'prefix') out.line('error 500');
	} else {
		const root = scope.last('root');
		if (root) orKeep(root, out, () => out.line(`root ${word(translated(root.args[0] ?? ''))}`));
		else out.line('root html');
	}
	if (tries) orKeep(tries, out, () => writeTries(tries, out, cx));
	const index = scope.last('index');
	const browse = scope.last('autoindex');
	if (browse) out.count(browse);
	const head = browse?.args[0] === 'on' ? 'file_server browse' : 'file_server';
	if (!index) {
		out.line(head);
		return;
	}
	out.count(index);
	out.block(head, () => out.line(`index ${index.args.map(name => word(name.replace(/^\//, ''))).join(' ')}`));
}

/** Writes `allow` and `deny`, and returns whether no request passes them. What cannot be translated closes the location, so that an import never opens what was closed. */
function writeAccess(scope: Scope, out: ConfigfileWriter): boolean {
	const rules = scope.all('access');
	const ranges = (name: string): string[] =>
		rules.filter(one => one.name === name && one.args[0] !== 'all').map(({ args }) => args[0] ?? '');
	const allowed = ranges('allow');
	const denied = ranges('deny');
	const last = rules.at(-1);
	const closed = last?.name === 'deny' && last.args[0] === 'all';
	const early = rules.slice(0, -1).some(({ args }) => args[0] === 'all');
	if (rules.length === 0) return false;
	if (early || (allowed.length > 0 && denied.length > 0) || [...allowed, ...denied].includes('unix:')) {
		for (const one of rules) out.keep(one, 'rules in this order are not translated; access is denied');
		out.line('error 403');
		return true;
	}
	for (const one of rules) out.count(one);
	if (closed && allowed.length > 0) out.block(`when not remote_ip ${allowed.join(' ')}`, () => out.line('error 403'));
	else if (closed) out.line('error 403');
	else if (denied.length > 0) out.block(`when remote_ip ${denied.join(' ')}`, () => out.line('error 403'));
	return closed && allowed.length === 0;
}

/** Writes what holds for every kind of content, and returns whether no request passes it. */
function writeSettings(scope: Scope, out: ConfigfileWriter): boolean {
	const auth = scope.last('auth_basic');
	const users = scope.last('auth_basic_user_file');
	if (auth && auth.args[0] !== 'off') {
		out.keep(auth, 'write the users in `basic_auth`; until then, access is denied');
		if (users) out.keep(users, 'write its users in `basic_auth`');
		out.line('error 403');
		return true;
	}
	if (auth) out.count(auth);
	const log = scope.last('access_log');
	if (log) out.keep(log, '`log` in a site writes an access log');
	const gzip = scope.last('gzip');
	if (gzip) out.count(gzip);
	if (gzip?.args[0] === 'on') out.line('encode gzip');
	const size = scope.last('client_max_body_size');
	// nginx limits bodies to 1 MiB unless told otherwise.
	if (size?.args[0] === '0') out.count(size);
	else if (size) orKeep(size, out, () => writeBodySize(sizeOf(size.args[0] ?? ''), out));
	for (const one of scope.all('add_header')) {
		orKeep(one, out, () => {
			const [field = '', value = '', always] = one.args;
			const edit = `${word(`+${field}`)} ${word(translated(value))}`;
			out.block('header', () => {
				out.line(edit);
				if (always === 'always') out.line('defer');
				else out.line('match status 200 201 204 206 301 302 303 304 307 308');
			});
		});
	}
	const expires = scope.last('expires');
	if (expires) orKeep(expires, out, () => writeExpires(expires.args, out));
	return false;
}

function writeBodySize(size: string, out: ConfigfileWriter): void {
	out.block('request_body', () => out.line(`max_size ${size}`));
}

function writeExpires(args: readonly string[], out: ConfigfileWriter): void {
	const [value = ''] = args;
	if (value === 'off') return;
	const seconds: { readonly [unit: string]: number } = {
		'': 1,
		s: 1,
		m: 60,
		h: 3600,
		d: 86400,
		w: 604800,
		M: 2592000,
		y: 31536000,
	};
	const [, count, unit] = /^(\d+)([smhdwMy]?)$/.exec(value) ?? [];
	const age = value === 'max' ? 315360000 : count === undefined ? undefined : Number(count) * seconds[unit!]!;
	if (value === 'epoch' || value === '-1') out.line('header Cache-Control no-cache');
	else if (age === undefined || args.length > 1)
		throw new Untranslatable('only a duration, `max`, `epoch` and `off` are translated');
	else {
		out.block('header', () => {
			out.line(`Cache-Control max-age=${age}`);
			out.line('match status 200 201 204 206 301 302 303 304 307 308');
		});
	}
}

function writeTries(one: NginxDirective, out: ConfigfileWriter, cx: ContentContext): void {
	const last = one.args.at(-1) ?? '';
	const files = one.args.slice(0, -1).map(text => word(translated(text)));
	if (last.startsWith('@')) {
		const named = cx.named?.(last);
		if (!named) throw new Untranslatable(`there is no location ${last}`);
		const missing = `@${out.unusedName('missing')}`;
		out.block(missing, () => out.line(`not file ${files.join(' ')}`));
		out.block(`handle ${missing}`, () =>
			writeContent(named.block, named.scope, out, { pools: cx.pools, place: { kind: 'named' } }),
		);
		out.line(`try_files ${files.join(' ')}`);
		return;
	}
	if (/^=\d{3}$/.test(last)) out.line(`try_files ${files.join(' ')} ${last}`);
	else out.line(`try_files ${files.join(' ')} ${word(translated(last.replace('$is_args$args', '?$args')))}`);
}

const SENT: ReadonlySet<string> = new Set(['$host', '$http_host', '$host:$server_port']);
/** The values that `reverse_proxy` sends by itself in these fields. */
const SENT_VALUES: { readonly [field: string]: readonly string[] } = {
	'x-forwarded-for': ['$remote_addr'],
	'x-forwarded-proto': ['$scheme'],
	'x-forwarded-host': ['$http_host'],
	upgrade: ['$http_upgrade'],
	connection: ['', 'upgrade', '$connection_upgrade', '$http_connection'],
};

/** Returns why a field that `reverse_proxy` sends by itself differs from the one of nginx. */
function whyFieldDiffers(name: string, value: string): string {
	if (name === 'x-forwarded-for' && value === '$proxy_add_x_forwarded_for')
		return 'addresses that a client sends in this field are passed on only if `trusted_proxies` contains the client';
	return '`reverse_proxy` sends this field with its own value';
}

function writeProxy(one: NginxDirective, scope: Scope, out: ConfigfileWriter, { pools, place }: ContentContext): void {
	const [, scheme, host = '', uri] = /^(https?):\/\/(unix:[^:]*:?|[^/]*)(\/.*)?$/.exec(one.args[0] ?? '') ?? [];
	if (scheme === undefined || one.args[0]!.includes('$')) {
		out.keep(one, 'an address with variables has no counterpart');
		out.line('error 502');
		return;
	}
	out.count(one);
	if (uri !== undefined && place.kind === 'prefix' && uri !== place.path) {
		if (!/[{}$]/.test(uri))
			out.line(`uri path_regexp ${word(`^${place.path.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&')}`)} ${word(uri)}`);
	} else if (uri !== undefined && place.kind === 'exact' && uri !== place.path) out.line(`rewrite ${word(uri)}`);
	const to = pools.has(host)
		? `upstream://${host}`
		: scheme === 'https'
			? `https://${/:\d+$/.test(host) ? host : `${host}:443`}`
			: upstreamAddress(host);
	const times = ['proxy_connect_timeout', 'proxy_read_timeout', 'proxy_send_timeout'].flatMap(
		name => scope.last(name) ?? [],
	);
	const fields = scope.all('proxy_set_header');
	out.block(`reverse_proxy ${word(to)}`, () => {
		if (!fields.some(({ args }) => args[0]?.toLowerCase() === 'host')) out.line(`header_up Host ${word(host)}`);
		for (const field of fields) {
			const [name = '', value = ''] = field.args;
			if (name.toLowerCase() === 'host' && SENT.has(value)) out.count(field);
			else if (SENT_VALUES[name.toLowerCase()]?.includes(value.toLowerCase())) out.count(field);
			else if (SENT_VALUES[name.toLowerCase()]) out.keep(field, whyFieldDiffers(name.toLowerCase(), value));
			else if (value === '') orKeep(field, out, () => out.line(`header_up -${name}`));
			else orKeep(field, out, () => out.line(`header_up ${name} ${word(translated(value))}`));
		}
		if (pools.has(host)) {
			for (const time of times) out.keep(time, `write it in the block \`upstream ${host}\``);
			return;
		}
		if (times.length === 0) return;
		out.block('transport http', () => {
			for (const time of times) {
				const setting =
					{ proxy_connect_timeout: 'dial_timeout', proxy_read_timeout: 'read_timeout' }[time.name] ?? 'write_timeout';
				orKeep(time, out, () => out.line(`${setting} ${durationOf(time.args[0] ?? '')}`));
			}
		});
	});
}

function writePhp(one: NginxDirective, scope: Scope, out: ConfigfileWriter): void {
	const root = scope.last('root');
	if (root) orKeep(root, out, () => out.line(`root ${word(translated(root.args[0] ?? ''))}`));
	const address = one.args[0] ?? '';
	if (address.includes('$')) {
		out.keep(one, 'an address with variables has no counterpart');
		out.line('error 502');
		return;
	}
	out.count(one);
	out.block(`php_fastcgi ${word(upstreamAddress(address))}`, () => {
		out.line('index off');
		for (const param of scope.all('fastcgi_param')) {
			const [name = '', value = ''] = param.args;
			if (name === 'SCRIPT_FILENAME') out.count(param);
			else orKeep(param, out, () => out.line(`env ${name} ${word(translated(value))}`));
		}
	});
}
