/** Writes `proxy_cache` and `fastcgi_cache` as `cache`. */
import { isNeverStored } from '../../modules/directives/cache/storable.ts';
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { durationOf, secondsOf, translateText, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';

/** The kinds of nginx caches, by the prefix of their directives. */
export type CachePrefix = 'proxy' | 'fastcgi';

/** Default of `inactive`: how long nginx keeps a response that is not requested. */
const DEFAULT_INACTIVE_TIME = '10m';
/** Default of the lock timeout: how long a request waits for the response to a concurrent request. */
const DEFAULT_LOCK_TIMEOUT = '5s';
/** Minimum size of a store on disk, in MiB. */
const MIN_DISK_MIB = 4;

/** Returns the `proxy_cache_path` and `fastcgi_cache_path` lines, by the names of their zones. */
export function findCacheZones(httpDirectives: readonly NginxDirective[]): ReadonlyMap<string, NginxDirective> {
	const pathDirectives = httpDirectives.filter(
		({ name }) => name === 'proxy_cache_path' || name === 'fastcgi_cache_path',
	);
	return new Map(pathDirectives.map(path => [optionOf(path, 'keys_zone')?.split(':', 1)[0] ?? '', path]));
}

function optionOf({ args }: NginxDirective, name: string): string | undefined {
	return args.find(text => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

/**
 * Returns the lines of the global option `cache`. All zones that locations use share one store, with the settings of nginx as far
 * as they have a counterpart. The folder of the store is a new one next to the first zone's, because an nginx that is still running
 * deletes unknown files from its own folder.
 */
export function cacheOptionLines(
	zones: ReadonlyMap<string, NginxDirective>,
	directives: readonly NginxDirective[],
	out: ConfigfileWriter,
): string[] {
	const usedZoneNames = collectUsedZones(directives);
	const usedPathDirectives = [...zones].filter(([name]) => usedZoneNames.has(name)).map(([, path]) => path);
	const [firstPath] = usedPathDirectives;
	if (!firstPath) return [];
	const sizes = usedPathDirectives.map(path => optionOf(path, 'max_size'));
	let totalMebibytes = 0;
	for (const size of sizes) {
		const [, count = '0', unit = ''] = /^(\d+)([kmg]?)$/i.exec(size ?? '') ?? [];
		totalMebibytes += Number(count) * { '': 1 / 1024 ** 2, k: 1 / 1024, m: 1, g: 1024 }[unit.toLowerCase()]!;
	}
	for (const path of usedPathDirectives) out.countTranslated(path);
	const folder = `${(firstPath.args[0] ?? '').replace(/\/$/, '')}-svc`;
	const sizeText = sizes.includes(undefined) ? '' : ` ${Math.max(MIN_DISK_MIB, Math.round(totalMebibytes))}MiB`;
	return [
		...(usedPathDirectives.length > 1
			? [
					`# The zones ${[...zones.keys()].filter(name => usedZoneNames.has(name)).join(' and ')} of nginx share this store.`,
				]
			: []),
		...(sizeText === '' ? ['# nginx has no limit for the folder of a zone without `max_size`; here it is 1 GiB.'] : []),
		...['cache {', `\tdisk ${word(folder)}${sizeText}`, '\tclient_control off', '\tstatus_header off', '}'],
	];
}

/** Returns the names of the cache zones that directives use, including those in inner blocks. */
function collectUsedZones(directives: readonly NginxDirective[]): Set<string> {
	return new Set(
		directives.flatMap(({ name, args, block }) => [
			...(name === 'proxy_cache' || name === 'fastcgi_cache' ? [args[0] ?? ''] : []),
			...collectUsedZones(block ?? []),
		]),
	);
}

export function isCached(scope: Scope): boolean {
	return ['proxy_cache', 'fastcgi_cache'].some(name => (scope.lastArgument(name) ?? 'off') !== 'off');
}

/** Writes the `cache` of a scope, which must precede the `reverse_proxy` whose responses it stores. */
export function writeCache(prefix: CachePrefix, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const cacheDirective = scope.lastDirective(`${prefix}_cache`);
	if (!cacheDirective) return;
	if (cacheDirective.args[0] === 'off') {
		out.countTranslated(cacheDirective);
		return;
	}
	translateOrKeep(cacheDirective, out, () => {
		const zone = cx.cacheZones.get(cacheDirective.args[0] ?? '');
		if (!zone) throw new Untranslatable(`there is no \`${prefix}_cache_path\` for the zone`);
		const lines = [
			...ttlLines(prefix, scope, out),
			...keyLines(prefix, scope, out, variables),
			...staleLines(prefix, scope, out, optionOf(zone, 'inactive') ?? DEFAULT_INACTIVE_TIME),
			...lockLines(prefix, scope, out),
		];
		const bypassSettings = bypassLines(prefix, scope, out, variables);
		keepSettings(prefix, scope, out);
		cx.head.addLine(
			'# Responses to requests with `Cookie` or `Authorization` are cached only if they say `public` or `s-maxage`.',
		);
		cx.head.addLine(
			'# nginx removes what nobody has asked for in a while (`inactive`); here, responses stay until they are stale or the cache is full.',
		);
		if (lines.length + bypassSettings.length === 0) out.writeLine('cache');
		else
			out.writeBlock('cache', () => {
				for (const line of [...lines, ...bypassSettings]) out.writeLine(line);
			});
	});
}

/** Returns the `ttl` lines for `proxy_cache_valid`. If several lines name a status, nginx uses the first. */
function ttlLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter): string[] {
	const ttlsByStatus = new Map<string, string>();
	let hasAnyStatus = false;
	for (const directive of scope.directivesIn(`${prefix}_cache_valid`)) {
		const isWritten = translateOrKeep(directive, out, () => {
			const time = durationOf(directive.args.at(-1) ?? '');
			const writtenStatuses = directive.args.slice(0, -1);
			const statuses = writtenStatuses.length === 0 ? ['200', '301', '302'] : writtenStatuses;
			for (const status of hasAnyStatus ? [] : statuses) {
				if (status === 'any') hasAnyStatus = true;
				const statusesOrClasses = status === 'any' ? ['2xx', '3xx', '4xx', '5xx'] : [status];
				for (const statusOrClass of statusesOrClasses)
					if (!ttlsByStatus.has(statusOrClass)) ttlsByStatus.set(statusOrClass, time);
			}
		});
		const neverStored = directive.args.slice(0, -1).filter(status => isNeverStored(Number(status)));
		for (const status of neverStored) ttlsByStatus.delete(status);
		if (isWritten && neverStored.length > 0)
			out.keepInstead(directive, `responses with ${neverStored.join(', ')} are never stored`);
	}
	const entriesByTtl = Map.groupBy(ttlsByStatus, ([, time]) => time);
	return [...entriesByTtl].map(([time, entries]) => `ttl ${entries.map(([status]) => status).join(' ')} ${time}`);
}

/** Matches variables that are parts of the request URL, which is the default key of `cache`. */
const URL_VARIABLE =
	/\$(?:scheme|host|http_host|server_name|proxy_host|server_port|request_method|request_uri|uri|document_uri|is_args|args|query_string)\b/g;

function keyLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, variables: Variables): string[] {
	const keyDirective = scope.lastDirective(`${prefix}_cache_key`);
	if (!keyDirective) return [];
	const lines: string[] = [];
	translateOrKeep(keyDirective, out, () => {
		const keyText = keyDirective.args.join(' ').replace(/\$\{(\w+)\}/g, '$$$1');
		const hasWholeUrl = /\$request_uri|\$(?:document_)?uri\$is_args\$(?:args|query_string)/.test(keyText);
		const isUrl = hasWholeUrl && /^[^\w$]*$/.test(keyText.replace(URL_VARIABLE, ''));
		// `$proxy_host` and `$request_method` are left out: each location has its own keys, and HEAD is answered with the response to
		// GET.
		const shortenedKey = keyText.replace(/\$(?:proxy_host|request_method)\b/g, '').trim();
		if (isUrl && /\$(?:host|http_host|proxy_host|server_name)\b/.test(keyText)) return;
		if (shortenedKey === '') throw new Untranslatable('the key is the same for all requests');
		lines.push(`key ${word(translateText(shortenedKey, variables))}`);
	});
	return lines;
}

/**
 * Returns the `stale` lines for `proxy_cache_use_stale`. A stale response may be used for the time `inactive`, the time for which
 * nginx keeps a response that is not requested.
 */
function staleLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, inactive: string): string[] {
	const useStale = scope.lastDirective(`${prefix}_cache_use_stale`);
	const backgroundUpdate = scope.lastDirective(`${prefix}_cache_background_update`);
	if (backgroundUpdate) out.countTranslated(backgroundUpdate);
	if (!useStale || useStale.args.includes('off')) {
		if (useStale) out.countTranslated(useStale);
		return [];
	}
	const lines: string[] = [];
	const failureKinds = useStale.args.filter(arg => /^(?:error|timeout|invalid_header|http_5\d\d)$/.test(arg));
	const isWritten = translateOrKeep(useStale, out, () => {
		const seconds = secondsOf(inactive);
		if (failureKinds.length > 0) lines.push(`stale if_error ${seconds}s`);
		if (useStale.args.includes('updating')) lines.push(`stale while_revalidate ${seconds}s`);
	});
	const clientErrorKinds = useStale.args.filter(arg => /^http_4/.test(arg));
	const coversServerErrors = useStale.args.some(arg => arg.startsWith('http_5'));
	const differences = [
		...(clientErrorKinds.length > 0
			? [`after ${clientErrorKinds.join(' and ')}, the stored response is not used`]
			: []),
		...(coversServerErrors || failureKinds.length === 0 ? [] : ['answers with 5xx count as failures too']),
		...(useStale.args.includes('updating') && backgroundUpdate?.args[0] !== 'on'
			? ['the request that finds the response stale gets it too, and does not wait']
			: []),
	];
	if (isWritten && differences.length > 0) out.keepInstead(useStale, differences.join('; '));
	return lines;
}

function lockLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter): string[] {
	const lockDirective = scope.lastDirective(`${prefix}_cache_lock`);
	const timeoutDirective = scope.lastDirective(`${prefix}_cache_lock_timeout`);
	for (const directive of [lockDirective, timeoutDirective]) if (directive) out.countTranslated(directive);
	if (lockDirective?.args[0] !== 'on') return [];
	return [`collapse ${durationOf(timeoutDirective?.args[0] ?? DEFAULT_LOCK_TIMEOUT)}`];
}

/**
 * Returns the `bypass` lines for `proxy_cache_bypass` and `proxy_no_cache`. A request that such a line matches is not answered from
 * the cache, and its response is not stored, so both directives must name the same variables. If they do not, comments say what
 * differs.
 */
function bypassLines(prefix: CachePrefix, scope: Scope, out: ConfigfileWriter, variables: Variables): string[] {
	const bypassDirectives = scope.directivesIn(`${prefix}_cache_bypass`);
	const noCacheDirectives = scope.directivesIn(`${prefix}_no_cache`);
	const lines = new Set<string>();
	const translatedDirectives = new Set<NginxDirective>();
	for (const directive of [...bypassDirectives, ...noCacheDirectives]) {
		const isTranslated = translateOrKeep(directive, out, () => {
			for (const text of directive.args) {
				const [, name] = /^\$\{?(\w+)\}?$/.exec(text) ?? [];
				if (name === undefined) throw new Untranslatable('only single variables are tested');
				lines.add(`bypass not vars ${variables.placeholderOf(name)} "" "0"`);
			}
		});
		if (isTranslated) translatedDirectives.add(directive);
	}
	const argumentsOf = (list: readonly NginxDirective[]): string =>
		[...new Set(list.flatMap(({ args }) => args))].sort().join(' ');
	if (argumentsOf(bypassDirectives) === argumentsOf(noCacheDirectives)) return [...lines];
	for (const directive of bypassDirectives)
		if (translatedDirectives.has(directive))
			out.keepInstead(directive, 'the responses to such requests do not replace what is stored');
	for (const directive of noCacheDirectives)
		if (translatedDirectives.has(directive))
			out.keepInstead(directive, 'such requests are not answered from the cache');
	return [...lines];
}

/**
 * Values of nginx's settings that need no line in a Configfile, because `cache` always behaves that way. Each is a pattern; the
 * key is the name of the setting without its prefix, such as `proxy_`.
 */
const BUILT_IN_VALUES: { readonly [name: string]: RegExp } = {
	cache_methods: /^(?:GET|HEAD| )*$/,
	cache_revalidate: /^on$/,
	cache_min_uses: /^1$/,
	cache_convert_head: /^on$/,
};

/** The reasons why settings of caches have no counterpart, by setting without its prefix. */
const NO_COUNTERPART_REASONS: { readonly [name: string]: string } = {
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
	for (const [name, reason] of Object.entries(NO_COUNTERPART_REASONS)) {
		for (const directive of scope.directivesIn(`${prefix}_${name}`)) {
			if (BUILT_IN_VALUES[name]?.test(directive.args.join(' '))) out.countTranslated(directive);
			else out.keepAsComment(directive, reason);
		}
	}
}

/** Name of the snippet that provides the placeholder for `$upstream_cache_status`. */
export const CACHE_STATUS_SNIPPET = 'cache_status';

/** The lines of the snippet {@link CACHE_STATUS_SNIPPET}. */
export const CACHE_STATUS_LINES: readonly string[] = [
	'map {http.cache.status} {map_upstream_cache_status} {',
	...['hit', 'miss', 'stale', 'bypass'].map(status => `\t${status} ${status.toUpperCase()}`),
	'}',
];
