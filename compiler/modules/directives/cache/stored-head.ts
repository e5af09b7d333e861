/** Builds the stored head of a response and updates it after validation (RFC 9111 §3.1, §3.2). */
import type { Exchange } from '../../../exchange/exchange.ts';
import { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedHead } from '../../../exchange/response-cache.ts';
import { directiveFieldNames } from './cache-control.ts';
import { cacheKeyHost } from './cache-key.ts';
import {
	type FreshnessRules,
	freshnessLifetime,
	initialAgeMs,
	lastModifiedSeconds,
	responseDirectives,
	staleTimes,
} from './freshness.ts';
import { selectingNames, selectingValues } from './selection.ts';

/**
 * Fields that are not stored (RFC 9111 §3.1): hop-by-hop fields, fields that are set anew for each response, and cookies, which
 * are meant for one client.
 */
const UNSTORED_FIELDS: ReadonlySet<string> = new Set([
	...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
	...['proxy-authenticate', 'proxy-authentication-info', 'proxy-authorization', 'content-length', 'age'],
	...['set-cookie', 'set-cookie2'],
]);

/** Fields of a 304 that do not update the stored response (RFC 9111 §3.2). */
const UNREFRESHED_FIELDS: ReadonlySet<string> = new Set([
	...UNSTORED_FIELDS,
	...['content-encoding', 'content-type', 'content-range', 'content-location', 'cache-status', 'via', 'server'],
]);

/** Maximum number of cache tags of a response; further ones are ignored. */
const MAX_CACHE_TAGS = 64;
/** Maximum number of characters in a cache tag; longer tags are ignored. */
const MAX_TAG_LENGTH = 256;

/** Times of a fetch, in milliseconds since 1970. */
export interface FetchTimes {
	readonly requestedAt: number;
	readonly receivedAt: number;
	/** The URL's purge epoch when the request was sent. If the URL is purged after that, the response is not stored. */
	readonly purgeEpoch: number;
}

/** Returns the head under which a new response is stored: its key, status, fields, freshness and tags. */
export function createStoredHead(
	x: Exchange,
	cacheKey: string,
	earlierHeaders: HeaderList,
	selecting: readonly string[],
	times: FetchTimes,
	rules: FreshnessRules,
): CachedHead {
	const { status, headers } = x.response;
	const omittedNames = new Set(unsharedNames(headers));
	for (const option of headers.getCombined('connection')?.toLowerCase().split(',') ?? [])
		omittedNames.add(option.trim());
	const fields: string[] = [];
	let hasDate = false;
	for (const [name, value] of headers) {
		const lowerName = name.toLowerCase();
		if (UNSTORED_FIELDS.has(lowerName) || omittedNames.has(lowerName)) continue;
		if (lowerName === 'date') hasDate = true;
		fields.push(name, value);
	}
	if (!hasDate) fields.push('Date', new Date(times.receivedAt).toUTCString());
	const earlierFields: string[] = [];
	const removedNames: string[] = [];
	for (const [name, value] of earlierHeaders) {
		earlierFields.push(name, value);
		if (!headers.getAll(name.toLowerCase()).includes(value)) removedNames.push(name.toLowerCase());
	}
	return {
		key: cacheKey,
		host: cacheKeyHost(x.request),
		path: x.received.path,
		query: x.received.query,
		status,
		fields,
		before: earlierFields,
		removed: removedNames,
		selecting,
		...computeFreshness(status, headers, times, rules),
		etag: headers.get('etag'),
		modified: lastModifiedSeconds(headers, times.receivedAt),
		tags: cacheTagsOf(headers),
		...((x.request.headers.has('authorization') || x.request.headers.has('cookie')) && { credentials: true }),
	};
}

/** Returns the lower-case names of the fields that `private="…"` and `no-cache="…"` exclude from the store. */
function unsharedNames(headers: HeaderList): readonly string[] {
	const { directives } = responseDirectives(headers);
	return ['private', 'no-cache'].flatMap(name => directiveFieldNames(directives, name) ?? []);
}

/** Returns a head without the fields that `private="…"` and `no-cache="…"` exclude from the store. */
export function withoutUnsharedFields(head: CachedHead): CachedHead {
	const headers = new HeaderList([...head.fields]);
	const names = unsharedNames(headers);
	if (names.length === 0) return head;
	for (const name of names) headers.delete(name);
	return { ...head, fields: [...headers].flat() };
}

/**
 * Returns the head of a stored response that the origin has validated. `headers` are the fields of the origin's response, which
 * is a 304 or the response to a HEAD, and `requestHeaders` the fields of the request.
 */
export function refreshHead(
	head: CachedHead,
	requestHeaders: HeaderList,
	headers: HeaderList,
	earlierHeaders: HeaderList,
	times: FetchTimes,
	rules: FreshnessRules & { readonly selectingFields: readonly string[] },
): CachedHead {
	const mergedHeaders = earlierHeaders.clone();
	mergedHeaders.clear();
	for (let i = 0; i < head.fields.length; i += 2) mergedHeaders.add(head.fields[i]!, head.fields[i + 1]!);
	const updatedNames = new Set<string>();
	for (const [name, value] of headers) {
		const lowerName = name.toLowerCase();
		if (UNREFRESHED_FIELDS.has(lowerName) || earlierHeaders.getAll(lowerName).includes(value)) continue;
		if (!updatedNames.has(lowerName)) mergedHeaders.delete(lowerName);
		updatedNames.add(lowerName);
		mergedHeaders.add(name, value);
	}
	if (!updatedNames.has('date')) mergedHeaders.set('Date', new Date(times.receivedAt).toUTCString());
	const age = headers.get('age');
	const headersWithAge = mergedHeaders.clone();
	if (age !== undefined) headersWithAge.set('Age', age);
	return {
		...head,
		fields: [...mergedHeaders].flat(),
		// The origin may have changed `Vary`. This request selects the response, so its fields are the ones to compare with.
		selecting: selectingValues(selectingNames(mergedHeaders, rules.selectingFields), requestHeaders, mergedHeaders),
		...computeFreshness(head.status, headersWithAge, times, rules),
		etag: mergedHeaders.get('etag'),
		modified: lastModifiedSeconds(mergedHeaders, times.receivedAt),
		tags: cacheTagsOf(mergedHeaders),
	};
}

function computeFreshness(
	status: number,
	headers: HeaderList,
	{ requestedAt, receivedAt }: FetchTimes,
	rules: FreshnessRules,
) {
	const parsedDirectives = responseDirectives(headers);
	const { directives } = parsedDirectives;
	const { lifetimeMs: lifetime } = freshnessLifetime(status, headers, parsedDirectives, rules, receivedAt);
	const { whileRevalidateMs: whileRevalidate, ifErrorMs: ifError } = staleTimes(directives, rules);
	return {
		storedAt: receivedAt,
		initialAge: initialAgeMs(headers, requestedAt, receivedAt),
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

/** Returns the tags in `Cache-Tag` (separated by commas) and `Surrogate-Key` (separated by spaces). */
function cacheTagsOf(headers: HeaderList): readonly string[] {
	const tags = new Set<string>();
	for (const tag of headers.getCombined('cache-tag')?.split(',') ?? []) tags.add(tag.trim());
	for (const tag of headers.getCombined('surrogate-key')?.split(/[ \t,]+/) ?? []) tags.add(tag);
	tags.delete('');
	return [...tags].filter(tag => tag.length <= MAX_TAG_LENGTH).slice(0, MAX_CACHE_TAGS);
}
