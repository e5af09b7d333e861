/** Builds the stored head of a response and updates it after validation (RFC 9111 §3.1, §3.2). */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedHead } from '../../../exchange/response-cache.ts';
import { directiveFieldNames } from './cache-control.ts';
import { cacheKeyHost } from './cache-key.ts';
import {
	type FreshnessRules,
	freshnessLifetime,
	initialAge,
	lastModifiedOf,
	responseDirectives,
	staleTimes,
} from './freshness.ts';

/** Hop-by-hop fields, and fields that are generated anew (RFC 9111 §3.1). */
const NOT_KEPT: ReadonlySet<string> = new Set([
	...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
	...['proxy-authenticate', 'proxy-authentication-info', 'proxy-authorization', 'content-length', 'age'],
	...['set-cookie', 'set-cookie2'],
]);

/** Fields of a 304 that do not update the stored response (RFC 9111 §3.2). */
const NOT_UPDATED: ReadonlySet<string> = new Set([
	...NOT_KEPT,
	...['content-encoding', 'content-type', 'content-range', 'content-location', 'cache-status', 'via', 'server'],
]);

/** Maximum number of tags of a response. */
const MAX_TAGS = 64;
/** Maximum number of characters in a tag. */
const MAX_TAG = 256;

/** Times of a fetch, in milliseconds since 1970. */
export interface FetchTimes {
	readonly askedAt: number;
	readonly cameAt: number;
	/** The URL's purge epoch when the request was sent. If the URL is purged after that, the response is not stored. */
	readonly since: number;
}

/** Returns the head to store for a new response. */
export function storedHead(
	x: Exchange,
	key: string,
	before: HeaderList,
	selecting: readonly string[],
	times: FetchTimes,
	rules: FreshnessRules,
): CachedHead {
	const { status, headers } = x.response;
	const { directives } = responseDirectives(headers);
	const left = new Set([
		...(directiveFieldNames(directives, 'private') ?? []),
		...(directiveFieldNames(directives, 'no-cache') ?? []),
	]);
	for (const option of headers.combined('connection')?.toLowerCase().split(',') ?? []) left.add(option.trim());
	const fields: string[] = [];
	let hasDate = false;
	for (const [name, value] of headers) {
		const lower = name.toLowerCase();
		if (NOT_KEPT.has(lower) || left.has(lower)) continue;
		if (lower === 'date') hasDate = true;
		fields.push(name, value);
	}
	if (!hasDate) fields.push('Date', new Date(times.cameAt).toUTCString());
	const was: string[] = [];
	const removed: string[] = [];
	for (const [name, value] of before) {
		was.push(name, value);
		if (!headers.getAll(name.toLowerCase()).includes(value)) removed.push(name.toLowerCase());
	}
	return {
		key,
		host: cacheKeyHost(x.request),
		path: x.received.path,
		query: x.received.query,
		status,
		fields,
		before: was,
		removed,
		selecting,
		...freshness(status, headers, times, rules),
		etag: headers.get('etag'),
		modified: lastModifiedOf(headers, times.cameAt),
		tags: tagsOf(headers),
		...((x.request.headers.has('authorization') || x.request.headers.has('cookie')) && { credentials: true }),
	};
}

/** Returns the head of a stored response that a 304 has validated. `headers` are those of the 304. */
export function refreshedHead(
	head: CachedHead,
	headers: HeaderList,
	before: HeaderList,
	times: FetchTimes,
	rules: FreshnessRules,
): CachedHead {
	const list = before.clone();
	list.clear();
	for (let i = 0; i < head.fields.length; i += 2) list.add(head.fields[i]!, head.fields[i + 1]!);
	const seen = new Set<string>();
	for (const [name, value] of headers) {
		const lower = name.toLowerCase();
		if (NOT_UPDATED.has(lower) || before.getAll(lower).includes(value)) continue;
		if (!seen.has(lower)) list.delete(lower);
		seen.add(lower);
		list.add(name, value);
	}
	if (!seen.has('date')) list.set('Date', new Date(times.cameAt).toUTCString());
	const age = headers.get('age');
	const dated = list.clone();
	if (age !== undefined) dated.set('Age', age);
	return {
		...head,
		fields: [...list].flat(),
		...freshness(head.status, dated, times, rules),
		etag: list.get('etag'),
		modified: lastModifiedOf(list, times.cameAt),
		tags: tagsOf(list),
	};
}

function freshness(status: number, headers: HeaderList, { askedAt, cameAt }: FetchTimes, rules: FreshnessRules) {
	const parsed = responseDirectives(headers);
	const { directives } = parsed;
	const { lifetime } = freshnessLifetime(status, headers, parsed, rules, cameAt);
	const { whileRevalidate, ifError } = staleTimes(directives, rules);
	return {
		storedAt: cameAt,
		initialAge: initialAge(headers, askedAt, cameAt),
		lifetime,
		staleWhileRevalidate: whileRevalidate,
		staleIfError: ifError,
		mustRevalidate:
			directives.has('must-revalidate') ||
			directives.has('proxy-revalidate') ||
			// `s-maxage` implies `proxy-revalidate` (RFC 9111 §5.2.2.10), unless the response itself says how long it may be served
			// stale.
			(directives.has('s-maxage') && !directives.has('stale-while-revalidate') && !directives.has('stale-if-error')),
		noCache: directives.get('no-cache') === '',
	};
}

/** Parses `Cache-Tag` (commas) and `Surrogate-Key` (spaces). */
function tagsOf(headers: HeaderList): readonly string[] {
	const tags = new Set<string>();
	for (const tag of headers.combined('cache-tag')?.split(',') ?? []) tags.add(tag.trim());
	for (const tag of headers.combined('surrogate-key')?.split(/[ \t,]+/) ?? []) tags.add(tag);
	tags.delete('');
	return [...tags].filter(tag => tag.length <= MAX_TAG).slice(0, MAX_TAGS);
}
