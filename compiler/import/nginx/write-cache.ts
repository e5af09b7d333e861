/** Writes `proxy_cache` and `fastcgi_cache` as `cache`. */
import { isNeverStored } from '../../modules/directives/cache/storable.ts';
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, secondsOf, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

/** The kinds of nginx caches, by the prefix of their directives. */
export type CachePrefix = 'proxy' | 'fastcgi';

/** How long nginx keeps a response that is not requested, unless `inactive` says otherwise. */
const DEFAULT_INACTIVE = '10m';
/** How long a request waits for another one's response, unless `proxy_cache_lock_timeout` says otherwise. */
const DEFAULT_LOCK_TIMEOUT = '5s';
/** Size of the smallest store on disk, in MiB. */
const MIN_DISK_MIB = 4;

/** Returns the `proxy_cache_path` and `fastcgi_cache_path` lines by the names of their zones. */
export function cacheZones(http: readonly NginxDirective[]): ReadonlyMap<string, NginxDirective> {
	const paths = http.filter(({ name }) => name === 'proxy_cache_path' || name === 'fastcgi_cache_path');
	return new Map(paths.map(one => [optionOf(one, 'keys_zone')?.split(':', 1)[0] ?? '', one]));
}

function optionOf({ args }: NginxDirective, name: string): string | undefined {
	return args.find(text => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

/**
 * Returns the lines of the global option for the zones that locations use: they share one store, whose settings are those that
 * nginx has. The store has a folder of its own, because an nginx that is still running removes files that it does not know from its
 * folder.
 */
export function cacheOptionLines(
	zones: ReadonlyMap<string, NginxDirective>,
	directives: readonly NginxDirective[],
	out: ConfigfileWriter,
): string[] {
	const names = usedZones(directives);
	const usedPaths = [...zones].filter(([name]) => names.has(name)).map(([, one]) => one);
	const [first] = usedPaths;
	if (!first) return [];
	const sizes = usedPaths.map(one => optionOf(one, 'max_size'));
	let mebibytes = 0;
	for (const size of sizes) {
		const [, count = '0', unit = ''] = /^(\d+)([kmg]?)$/i.exec(size ?? '') ?? [];
		mebibytes += Number(count) * { '': 1 / 1024 ** 2, k: 1 / 1024, m: 1, g: 1024 }[unit.toLowerCase()]!;
	}
	for (const one of usedPaths) out.count(one);
	const folder = `${(first.args[0] ?? '').replace(/\/$/, '')}-svc`;
	const total = sizes.includes(undefined) ? '' : ` ${Math.max(MIN_DISK_MIB, Math.round(mebibytes))}MiB`;
	return [
		...(usedPaths.length > 1
			? [`# The zones ${[...zones.keys()].filter(name => names.has(name)).join(' and ')} of nginx share this store.`]
			: []),
		...(total === '' ? ['# nginx has no limit for the folder of a zone without `max_size`; here it is 1 GiB.'] : []),
		...['cache {', `\tdisk ${word(folder)}${total}`, '\tclient_control off', '\tstatus_header off', '}'],
	];
}

/** Returns the names of the zones that locations use. */
function usedZones(directives: readonly NginxDirective[]): Set<string> {
	return new Set(
		directives.flatMap(({ name, args, block }) => [
			...(name === 'proxy_cache' || name === 'fastcgi_cache' ? [args[0] ?? ''] : []),
			...usedZones(block ?? []),
		]),
	);
}

/** Reports whether the responses of a scope are cached. */
export function isCached(scope: Scope): boolean {
	return ['proxy_cache', 'fastcgi_cache'].some(name => (scope.value(name) ?? 'off') !== 'off');
}

/** Writes the cache that applies in a scope, before the `reverse_proxy` whose responses it stores. */
export function writeCache(prefix: CachePrefix, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const one = scope.last(`${prefix}_cache`);
	if (!one) return;
	if (one.args[0] === 'off') {
		out.count(one);
		return;
	}
	orKeep(one, out, () => {
		const zone = cx.cacheZones.get(one.args[0] ?? '');
		if (!zone) throw new Untranslatable(`there is no \`${prefix}_cache_path\` for the zone`);
		const lines = [
			...ttlLines(prefix, scope, out),
			...keyLines(prefix, scope, out, variables),
			...staleLines(prefix, scope, out, optionOf(zone, 'inactive') ?? DEFAULT_INACTIVE),
			...lockLines(prefix, scope, out),
		];
		const bypass = bypassLines(prefix, scope, out, variables);
		keepSettings(prefix, scope, out);
		cx.head.line(
			'# Responses to requests with `Cookie` or `Authorization` are cached only if they say `public` or `s-maxage`.',
		);
		cx.head.line('# Cached responses stay until they are stale or the cache is full, although nobody asks for them.');
		if (lines.length + bypass.length === 0) out.line('cache');
		else
			out.block('cache', () => {
				for (const line of [...lines, ...bypass]) out.line(line);
			});
	});
}

/** Returns the lines for `proxy_cache_valid`. Of several times for a status, nginx takes the first. */
function ttlLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter): string[] {
	const times = new Map<string, string>();
	let isComplete = false;
	for (const one of scope.all(`${prefix}_cache_valid`)) {
		const isWritten = orKeep(one, out, () => {
			const time = durationOf(one.args.at(-1) ?? '');
			const written = one.args.slice(0, -1);
			const statuses = written.length === 0 ? ['200', '301', '302'] : written;
			for (const status of isComplete ? [] : statuses) {
				if (status === 'any') isComplete = true;
				const classes = status === 'any' ? ['2xx', '3xx', '4xx', '5xx'] : [status];
				for (const statusOrClass of classes) if (!times.has(statusOrClass)) times.set(statusOrClass, time);
			}
		});
		const never = one.args.slice(0, -1).filter(status => isNeverStored(Number(status)));
		for (const status of never) times.delete(status);
		if (isWritten && never.length > 0) out.keepInstead(one, `responses with ${never.join(', ')} are never stored`);
	}
	const byTime = Map.groupBy(times, ([, time]) => time);
	return [...byTime].map(([time, entries]) => `ttl ${entries.map(([status]) => status).join(' ')} ${time}`);
}

/** Variables of a key that the default key of `cache` contains, which is the URL that the client sent. */
const URL_PART =
	/\$(?:scheme|host|http_host|server_name|proxy_host|server_port|request_method|request_uri|uri|document_uri|is_args|args|query_string)\b/g;

function keyLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, variables: Variables): string[] {
	const key = scope.last(`${prefix}_cache_key`);
	if (!key) return [];
	const lines: string[] = [];
	orKeep(key, out, () => {
		const text = key.args.join(' ').replace(/\$\{(\w+)\}/g, '$$$1');
		const hasWholeUrl = /\$request_uri|\$(?:document_)?uri\$is_args\$(?:args|query_string)/.test(text);
		const isUrl = hasWholeUrl && /^[^\w$]*$/.test(text.replace(URL_PART, ''));
		// Each location has keys of its own, and HEAD is answered with the response to GET.
		const plain = text.replace(/\$(?:proxy_host|request_method)\b/g, '').trim();
		if (isUrl && /\$(?:host|http_host|proxy_host|server_name)\b/.test(text)) return;
		if (plain === '') throw new Untranslatable('the key is the same for all requests');
		lines.push(`key ${word(translated(plain, variables))}`);
	});
	return lines;
}

/**
 * Returns the lines for `proxy_cache_use_stale`. Stale responses are used for as long as nginx keeps a response that is not
 * requested.
 */
function staleLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, inactive: string): string[] {
	const use = scope.last(`${prefix}_cache_use_stale`);
	const background = scope.last(`${prefix}_cache_background_update`);
	if (background) out.count(background);
	if (!use || use.args.includes('off')) {
		if (use) out.count(use);
		return [];
	}
	const lines: string[] = [];
	const onFailure = use.args.filter(arg => /^(?:error|timeout|invalid_header|http_5\d\d)$/.test(arg));
	const isWritten = orKeep(use, out, () => {
		const seconds = secondsOf(inactive);
		if (onFailure.length > 0) lines.push(`stale if_error ${seconds}s`);
		if (use.args.includes('updating')) lines.push(`stale while_revalidate ${seconds}s`);
	});
	const clientErrors = use.args.filter(arg => /^http_4/.test(arg));
	const isForAnswers = use.args.some(arg => arg.startsWith('http_5'));
	const differences = [
		...(clientErrors.length > 0 ? [`after ${clientErrors.join(' and ')}, the stored response is not used`] : []),
		...(isForAnswers || onFailure.length === 0 ? [] : ['answers with 5xx count as failures too']),
		...(use.args.includes('updating') && background?.args[0] !== 'on'
			? ['the request that finds the response stale gets it too, and does not wait']
			: []),
	];
	if (isWritten && differences.length > 0) out.keepInstead(use, differences.join('; '));
	return lines;
}

function lockLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter): string[] {
	const lock = scope.last(`${prefix}_cache_lock`);
	const timeout = scope.last(`${prefix}_cache_lock_timeout`);
	for (const one of [lock, timeout]) if (one) out.count(one);
	if (lock?.args[0] !== 'on') return [];
	return [`collapse ${durationOf(timeout?.args[0] ?? DEFAULT_LOCK_TIMEOUT)}`];
}

/**
 * Returns the lines for `proxy_cache_bypass` and `proxy_no_cache`. A `bypass` line covers requests that are neither answered from
 * the cache nor have their responses stored, so both directives must name the same variables; otherwise, comments say what differs.
 */
function bypassLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, variables: Variables): string[] {
	const bypass = scope.all(`${prefix}_cache_bypass`);
	const unstored = scope.all(`${prefix}_no_cache`);
	const lines = new Set<string>();
	const isWritten = new Set<NginxDirective>();
	for (const one of [...bypass, ...unstored]) {
		const ok = orKeep(one, out, () => {
			for (const text of one.args) {
				const [, name] = /^\$\{?(\w+)\}?$/.exec(text) ?? [];
				if (name === undefined) throw new Untranslatable('only single variables are tested');
				lines.add(`bypass not vars ${variables.placeholder(name)} "" "0"`);
			}
		});
		if (ok) isWritten.add(one);
	}
	const wordsOf = (list: readonly NginxDirective[]): string =>
		[...new Set(list.flatMap(({ args }) => args))].sort().join(' ');
	if (wordsOf(bypass) === wordsOf(unstored)) return [...lines];
	for (const one of bypass)
		if (isWritten.has(one)) out.keepInstead(one, 'the responses to such requests do not replace what is stored');
	for (const one of unstored)
		if (isWritten.has(one)) out.keepInstead(one, 'such requests are not answered from the cache');
	return [...lines];
}

/** Settings that need no line, because `cache` always behaves as with the values matched here. */
const BUILT_IN: { readonly [name: string]: RegExp } = {
	cache_methods: /^(?:GET|HEAD| )*$/,
	cache_revalidate: /^on$/,
	cache_min_uses: /^1$/,
	cache_convert_head: /^on$/,
};

/** The reasons why some settings of caches have no counterpart, by the setting. */
const NO_COUNTERPART: { readonly [name: string]: string } = {
	cache_methods: 'only responses to GET are stored',
	cache_revalidate: 'stale responses are always revalidated if they have a validator',
	cache_min_uses: 'responses are stored at their first use',
	cache_convert_head: 'HEAD is answered with the stored response to GET',
	cache_lock_age: 'a request that has waited for long enough is sent',
	cache_max_range_offset: 'ranges are answered from complete responses',
	cache_purge: 'the Admin API purges: `POST /cache/purge`',
	ignore_headers: 'the response’s own fields are obeyed, because they say who may see it',
};

function keepSettings(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter): void {
	for (const [name, reason] of Object.entries(NO_COUNTERPART)) {
		for (const one of scope.all(`${prefix}_${name}`)) {
			if (BUILT_IN[name]?.test(one.args.join(' '))) out.count(one);
			else out.keep(one, reason);
		}
	}
}

/** Name of the snippet that defines the placeholder of `$upstream_cache_status`. */
export const CACHE_STATUS_SNIPPET = 'cache_status';

/** The lines of the snippet {@link CACHE_STATUS_SNIPPET}. */
export const CACHE_STATUS_LINES: readonly string[] = [
	'map {http.cache.status} {map_upstream_cache_status} {',
	...['hit', 'miss', 'stale', 'bypass'].map(status => `\t${status} ${status.toUpperCase()}`),
	'}',
];
