/** Makes what is kept of a response, and brings it up to date when it has been validated (RFC 9111 §3.1, §3.2). */
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedHead } from '../../../exchange/response-cache.ts';
import { namedFields } from './cache-control.ts';
import { keyHost } from './cache-key.ts';
import {
	type FreshnessRules,
	freshnessLifetime,
	initialAge,
	modifiedOf,
	responseDirectives,
	staleTimes,
} from './freshness.ts';

/** Fields of a connection, or that are told anew (RFC 9111 §3.1). */
const NOT_KEPT: ReadonlySet<string> = new Set([
	...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
	...['proxy-authenticate', 'proxy-authentication-info', 'proxy-authorization', 'content-length', 'age'],
	...['set-cookie', 'set-cookie2'],
]);

/** Fields of a 304 that say nothing of the stored response (RFC 9111 §3.2). */
const NOT_UPDATED: ReadonlySet<string> = new Set([
	...NOT_KEPT,
	...['content-encoding', 'content-type', 'content-range', 'content-location', 'cache-status', 'via', 'server'],
]);

/** Tags of one response, and characters of one of them, at most. */
const MOST_TAGS = 64;
const LONGEST_TAG = 256;

/** Moments of a fetch, milliseconds since 1970. */
export interface FetchTimes {
	readonly askedAt: number;
	readonly cameAt: number;
	/** Moment of the URL in the store when it was asked for: what was purged since is not kept. */
	readonly since: number;
}

/** What is kept of a response that has just come. */
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
	const left = new Set([...(namedFields(directives, 'private') ?? []), ...(namedFields(directives, 'no-cache') ?? [])]);
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
		host: keyHost(x.request),
		path: x.received.path,
		query: x.received.query,
		status,
		fields,
		before: was,
		removed,
		selecting,
		...freshness(status, headers, times, rules),
		etag: headers.get('etag'),
		modified: modifiedOf(headers, times.cameAt),
		tags: tagsOf(headers),
		...((x.request.headers.has('authorization') || x.request.headers.has('cookie')) && { credentials: true }),
	};
}

/** The head of a stored response after a 304 has confirmed it. `headers` are those of the 304. */
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
	const told = new Set<string>();
	for (const [name, value] of headers) {
		const lower = name.toLowerCase();
		if (NOT_UPDATED.has(lower) || before.getAll(lower).includes(value)) continue;
		if (!told.has(lower)) list.delete(lower);
		told.add(lower);
		list.add(name, value);
	}
	if (!told.has('date')) list.set('Date', new Date(times.cameAt).toUTCString());
	const age = headers.get('age');
	const dated = list.clone();
	if (age !== undefined) dated.set('Age', age);
	return {
		...head,
		fields: [...list].flat(),
		...freshness(head.status, dated, times, rules),
		etag: list.get('etag'),
		modified: modifiedOf(list, times.cameAt),
		tags: tagsOf(list),
	};
}

function freshness(status: number, headers: HeaderList, { askedAt, cameAt }: FetchTimes, rules: FreshnessRules) {
	const told = responseDirectives(headers);
	const { directives } = told;
	const { lifetime } = freshnessLifetime(status, headers, told, rules, cameAt);
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
			// It means the same (RFC 9111 §5.2.2.10), unless the response says in its own words how stale it may be.
			(directives.has('s-maxage') && !directives.has('stale-while-revalidate') && !directives.has('stale-if-error')),
		noCache: directives.get('no-cache') === '',
	};
}

/** `Cache-Tag` (commas) and `Surrogate-Key` (spaces). */
function tagsOf(headers: HeaderList): readonly string[] {
	const tags = new Set<string>();
	for (const tag of headers.combined('cache-tag')?.split(',') ?? []) tags.add(tag.trim());
	for (const tag of headers.combined('surrogate-key')?.split(/[ \t,]+/) ?? []) tags.add(tag);
	tags.delete('');
	return [...tags].filter(tag => tag.length <= LONGEST_TAG).slice(0, MOST_TAGS);
}
