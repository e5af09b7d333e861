/** The request handler of `cache`: answers from the store, or calls later handlers and stores their response (RFC 9111). */
import { isStream } from '../../../exchange/body.ts';
import { Exchange, Request } from '../../../exchange/exchange.ts';
import type { Handler, Predicate } from '../../../exchange/handler.ts';
import { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CachedResponse, FetchTicket, ResponseCache } from '../../../exchange/response-cache.ts';
import { type CacheRole, cacheKeyHost, cacheRoleOf, configuredKey, primaryKey } from './cache-key.ts';
import type { FreshnessRules } from './freshness.ts';
import {
	type ClientWishes,
	currentAge,
	decideUse,
	isUsableOnError,
	lastModifiedOf,
	NO_CLIENT_WISHES,
	parseClientWishes,
	requiresValidation,
} from './freshness.ts';
import { isStorable, storeResponse } from './keep-response.ts';
import { selectStoredResponse } from './selection.ts';
import { isNeverStored } from './storable.ts';
import { answerFromStore } from './stored-answer.ts';
import { type FetchTimes, refreshedHead } from './stored-head.ts';
import { drainBody, type ReadAheadTotal } from './storing-body.ts';

/** Settings of one `cache` step, fixed when the configuration is compiled. */
export interface CacheRules extends FreshnessRules {
	readonly cache: ResponseCache;
	/** Maximum bytes of a stored body. */
	readonly largest: number;
	/** Identifies this step, because steps never share stored responses. */
	readonly place: string;
	readonly key: ((x: Exchange) => string) | undefined;
	/** Request fields that always take part in selecting a stored response, in lower case, sorted. */
	readonly selecting: readonly string[];
	readonly bypass: Predicate | undefined;
	/** Milliseconds that a request waits for a coalesced fetch; 0 disables waiting. */
	readonly maxWait: number;
	/** Whether `Cache-Control` of requests is obeyed. */
	readonly obeysClients: boolean;
	/** Whether `Cache-Status` is added (RFC 9211). */
	readonly addsStatus: boolean;
	/** State of the step's read-ahead. */
	readonly ahead: ReadAheadTotal;
	readonly next: Handler;
	/** Number of the step, passed to `Exchange.answered`. */
	readonly step: number;
}

/** A request that could not be answered from the store immediately. */
interface Fetch {
	readonly key: string;
	readonly role: CacheRole;
	readonly wishes: ClientWishes;
	readonly stored: CachedResponse | undefined;
	/** Why no stored response could be used, as in `Cache-Status`. */
	readonly reason: 'uri-miss' | 'vary-miss' | 'stale' | 'request';
	readonly turn: FetchTicket | undefined;
}

/**
 * Request fields that make a response depend on what the client already has. They are removed before a fetch, so that the
 * response can be stored.
 */
const CONDITIONAL: readonly string[] = ['if-none-match', 'if-modified-since', 'if-range', 'range'];

/** Maximum times that a request waits for another request's fetch; after that, it fetches by itself. */
const MAX_WAITS = 3;

/** Creates the handler of one step. */
export function cacheHandler(rules: CacheRules): Handler {
	const { cache, bypass, next } = rules;
	return x => {
		const role = cacheRoleOf(x);
		if (role === 'write') return write(rules, x);
		if (role === 'pass' || bypass?.(x)) {
			x.cacheStatus = 'bypass';
			cache.countEvent('bypass');
			if (!rules.addsStatus) return next(x);
			const { method } = x.request;
			return after(next(x), () => tell(x, `svc; fwd=${method === 'GET' || method === 'HEAD' ? 'bypass' : 'method'}`));
		}
		const key = rules.key === undefined ? primaryKey(x, rules.place) : configuredKey(x, rules.place, rules.key(x));
		return lookUp(rules, x, key, role, 0, undefined, false);
	};
}

/** Calls later handlers for an unsafe method. If it succeeds, invalidates the stored responses of its URL (RFC 9111 §4.4). */
function write(rules: CacheRules, x: Exchange): void | Promise<void> {
	x.cacheStatus = 'bypass';
	rules.cache.countEvent('bypass');
	return after(rules.next(x), () => {
		if (rules.addsStatus) tell(x, 'svc; fwd=method');
		const { status, headers } = x.response;
		if (x.upgradeCallback !== undefined || status < 200 || status >= 400) return;
		const host = cacheKeyHost(x.request);
		const pending = [rules.cache.invalidate(host, x.received.path, x.received.query)];
		for (const name of ['location', 'content-location']) {
			const url = headers.get(name);
			if (url === undefined) continue;
			const base = `${x.request.scheme}://${x.request.authority}${x.received.path}`;
			const target = URL.canParse(url, base) ? new URL(url, base) : undefined;
			// A URL of another host must not be invalidated.
			if (target?.host !== new URL(base).host) continue;
			const query = target.search === '' ? undefined : target.search.slice(1);
			pending.push(rules.cache.invalidate(host, target.pathname, query));
		}
		// The response is held until the invalidations are complete, because a client that has received it must see their effect.
		return pending.some(one => one !== undefined) ? Promise.all(pending).then(() => {}) : undefined;
	});
}

/**
 * Answers from the store, waits for another request's fetch, or fetches.
 * @param turns Number of fetches of other requests for which this request has waited.
 * @param waited Why this request needed a fetch, if it has waited for one.
 * @param recalled True if the key has already been looked up on disk.
 */
function lookUp(
	rules: CacheRules,
	x: Exchange,
	key: string,
	role: CacheRole,
	turns: number,
	waited: Fetch['reason'] | undefined,
	recalled: boolean,
): void | Promise<void> {
	const { cache } = rules;
	const candidates = cache.find(key);
	if (candidates.length === 0 && !recalled) {
		const recall = cache.loadFromDisk(key);
		if (recall !== undefined) return recall.then(() => lookUp(rules, x, key, role, turns, waited, true));
	}
	const { headers } = x.request;
	const stored = candidates.length === 0 ? undefined : selectStoredResponse(candidates, headers);
	const wishes =
		rules.obeysClients && (headers.has('cache-control') || headers.has('pragma'))
			? parseClientWishes(headers)
			: NO_CLIENT_WISHES;
	if (stored !== undefined) {
		const now = x.now();
		const use = decideUse(stored.head, wishes, now);
		if (use !== 'validate' && serve(rules, x, stored, use === 'fresh' ? 'hit' : 'stale', waited)) {
			if (use === 'stale') revalidateLater(rules, x, key, stored);
			return;
		}
	}
	if (wishes.onlyIfCached) {
		x.cacheStatus = 'miss';
		cache.countEvent('miss');
		x.markAnswered('cache', rules.step);
		throw new HttpError(504, 'cache: no stored response, and the client accepts no other (only-if-cached)');
	}
	const reason =
		stored !== undefined
			? decideUse(stored.head, NO_CLIENT_WISHES, x.now()) === 'validate'
				? 'stale'
				: 'request'
			: candidates.length > 0
				? 'vary-miss'
				: 'uri-miss';
	const fetch: Fetch = { key, role, wishes, stored, reason, turn: undefined };
	if (wishes.noStore || !mayShare(rules, x, role, turns)) return ask(rules, x, fetch);
	const turn = cache.joinFetch(key, rules.maxWait);
	if (turn.ended === undefined) return ask(rules, x, { ...fetch, turn });
	cache.countEvent('collapsed');
	const begun = performance.now();
	return turn.ended.then(() => {
		if (x.isGone) return undefined;
		// A request that has already waited for as long as `maxWait` is fetched without coalescing.
		const tired = performance.now() - begun >= rules.maxWait;
		return lookUp(rules, x, key, role, tired ? MAX_WAITS : turns + 1, waited ?? reason, true);
	});
}

/** Reports whether this request may be coalesced with others, in which case one fetches and the others wait for its response. */
function mayShare({ maxWait }: CacheRules, x: Exchange, role: CacheRole, turns: number): boolean {
	if (maxWait === 0 || role !== 'serve' || turns >= MAX_WAITS) return false;
	const { headers } = x.request;
	return !headers.has('authorization') && !headers.has('cookie');
}

/** Answers from the store; returns false if the response has been evicted. */
function serve(
	rules: CacheRules,
	x: Exchange,
	stored: CachedResponse,
	as: 'hit' | 'stale',
	waited: Fetch['reason'] | undefined,
): boolean {
	const note = rules.addsStatus ? hitNote(x, stored, waited) : '';
	if (!answerFromStore(x, rules.cache, stored, note)) return false;
	x.markAnswered('cache', rules.step);
	x.cacheStatus = as;
	rules.cache.countEvent(as);
	return true;
}

/**
 * Returns the `Cache-Status` of a response from the store: `fwd` if the request waited for another's fetch, otherwise `hit`.
 * RFC 9211 §2.1 allows only one of the two.
 */
function hitNote(x: Exchange, { head }: CachedResponse, waited: Fetch['reason'] | undefined): string {
	const left = Math.floor((head.lifetime - currentAge(head, x.now())) / 1000);
	return waited === undefined ? `svc; hit; ttl=${left}` : `svc; fwd=${waited}; ttl=${left}; collapsed`;
}

/** Fetches by calling later handlers, with a validation request if there is a stored response with a validator. */
function ask(rules: CacheRules, x: Exchange, wanted: Fetch): void | Promise<void> {
	const { request, response } = x;
	const { cache } = rules;
	const before = response.headers.clone();
	const asked = request.headers.clone();
	// The stored response must still exist when the origin confirms it or fails.
	const release = wanted.stored && cache.pin(wanted.stored);
	const fetch: Fetch = release ? wanted : { ...wanted, stored: undefined };
	const { stored, role } = fetch;
	let validates = false;
	if (role === 'serve') for (const name of CONDITIONAL) request.headers.delete(name);
	if (stored !== undefined && !request.headers.has('range')) {
		for (const name of CONDITIONAL) request.headers.delete(name);
		const { etag, modified } = stored.head;
		validates = etag !== undefined || modified !== undefined;
		if (etag !== undefined) request.headers.set('If-None-Match', etag);
		if (modified !== undefined) request.headers.set('If-Modified-Since', httpDate(modified));
	}
	const askedAt = x.now();
	const since = cache.urlEpoch(cacheKeyHost(request), x.received.path, x.received.query);
	const { stepBase, exclusiveGroups: exclusive } = x;
	const { method, path, query } = request;
	const restore = (): void => {
		x.stepBase = stepBase;
		request.headers.clear();
		for (let i = 0; i < asked.size; i++) request.headers.add(asked.nameAt(i), asked.valueAt(i));
	};
	/** Restarts later handlers with a clean response; the first run may have rewritten the request. */
	const again = (): void | Promise<void> => {
		discard(x, before);
		Object.assign(request, { method, path, query });
		x.exclusiveGroups = exclusive;
		return ask(rules, x, { ...fetch, stored: undefined });
	};
	const answered = (): void | Promise<void> => {
		restore();
		try {
			return settle(rules, x, fetch, before, { askedAt, cameAt: x.now(), since }, validates, again);
		} catch (error) {
			fetch.turn?.done('failed');
			throw error;
		} finally {
			release?.();
		}
	};
	const failed = (error: unknown): void => {
		restore();
		fetch.turn?.done('failed');
		const failure = error instanceof HttpError ? error.status >= 500 : true;
		if (failure && stored !== undefined && !x.isGone && isUsableOnError(stored.head, x.now())) {
			discard(x, before);
			if (serve(rules, x, stored, 'stale', undefined)) {
				release?.();
				return;
			}
		}
		release?.();
		x.cacheStatus = 'miss';
		cache.countEvent('miss');
		throw error;
	};
	let pending: void | Promise<void>;
	try {
		pending = rules.next(x);
	} catch (error) {
		failed(error);
		return;
	}
	return pending instanceof Promise ? pending.then(answered, failed) : answered();
}

/** Processes the answer of later handlers: stores it, or updates or removes the stored response. */
function settle(
	rules: CacheRules,
	x: Exchange,
	fetch: Fetch,
	before: HeaderList,
	times: FetchTimes,
	validates: boolean,
	again: () => void | Promise<void>,
): void | Promise<void> {
	const { cache } = rules;
	const { response } = x;
	const { stored, turn } = fetch;
	const { status } = response;
	if (x.aborted || x.upgradeCallback !== undefined || status === 0) {
		turn?.done('private');
		x.cacheStatus = 'miss';
		cache.countEvent('miss');
		return;
	}
	if (stored !== undefined && status === 304 && validates) {
		if (!confirms(response.headers, stored)) {
			cache.remove(stored);
			return again();
		}
		const head = refreshedHead(stored.head, response.headers, before, times, rules);
		const refreshed = cache.refresh(stored, head);
		cache.countEvent('revalidated');
		turn?.done(requiresValidation(head) ? 'private' : 'stored');
		discard(x, before);
		const note = rules.addsStatus ? `svc; fwd=${fetch.reason}; fwd-status=304` : '';
		answerFromStore(x, cache, refreshed, note);
		x.markAnswered('cache', rules.step);
		x.cacheStatus = 'hit';
		cache.countEvent('hit');
		return;
	}
	if (stored !== undefined && status >= 500 && isUsableOnError(stored.head, x.now())) {
		turn?.done('failed');
		const { body } = response;
		discard(x, before);
		if (isStream(body)) body.cancel();
		if (serve(rules, x, stored, 'stale', undefined)) return;
	}
	x.cacheStatus = 'miss';
	cache.countEvent('miss');
	const { role, wishes } = fetch;
	const unkept = role === 'serve' ? storeResponse(rules, x, fetch.key, before, times, wishes, turn) : 'private';
	const kept = unkept === undefined;
	if (unkept !== undefined) turn?.done(unkept);
	// A full response shows that the stored one is obsolete (RFC 9111 §4.3.3), even if the new one may not be stored.
	if (!kept && stored !== undefined && status < 500 && !isNeverStored(status) && isForAll(x, fetch))
		cache.remove(stored);
	if (stored !== undefined && role === 'look' && x.request.method === 'HEAD')
		judgeByHead(rules, stored, x, before, times);
	if (rules.addsStatus)
		tell(
			x,
			`svc; fwd=${fetch.reason}${fetch.reason === 'stale' ? `; fwd-status=${status}` : ''}${kept ? '; stored' : ''}`,
		);
}

/** Reports whether other clients would get the same response to this request. */
function isForAll({ request: { headers } }: Exchange, { role, wishes }: Fetch): boolean {
	return role === 'serve' && !wishes.noStore && !headers.has('authorization') && !headers.has('cookie');
}

/** Reports whether a 304 refers to the stored response, not to another one (RFC 9111 §4.3.4). */
function confirms(headers: HeaderList, { head }: CachedResponse): boolean {
	const etag = headers.get('etag');
	return etag === undefined || (head.etag !== undefined && etag.replace(/^W\//, '') === head.etag.replace(/^W\//, ''));
}

/**
 * Compares a HEAD response with the stored response. A difference invalidates the stored one; otherwise, its fields are updated
 * (RFC 9111 §4.3.5).
 */
function judgeByHead(
	rules: CacheRules,
	stored: CachedResponse,
	x: Exchange,
	before: HeaderList,
	times: FetchTimes,
): void {
	const { cache } = rules;
	const { status, headers } = x.response;
	if (status !== 200) return;
	const length = headers.get('content-length');
	const { etag, modified } = stored.head;
	const same =
		(length === undefined || length === String(stored.length)) &&
		(headers.has('etag') ? headers.get('etag') === etag : true) &&
		(headers.has('last-modified') ? lastModifiedOf(headers, times.cameAt) === modified : true);
	if (!same) cache.remove(stored);
	else if ((headers.has('etag') || headers.has('last-modified')) && isStorable(rules, x, times, NO_CLIENT_WISHES)) {
		cache.refresh(stored, refreshedHead(stored.head, headers, before, times, rules));
	}
}

/** Undoes what a later handler added to the response. */
function discard(x: Exchange, before: HeaderList): void {
	const { response } = x;
	response.headers = before.clone();
	response.body = null;
	response.status = 0;
	response.trailers = undefined;
}

/** Revalidates a response that was served stale in the background (RFC 5861 §3), once for all threads. */
function revalidateLater(rules: CacheRules, client: Exchange, key: string, stored: CachedResponse): void {
	const turn = rules.cache.joinFetch(key, 0);
	if (turn.ended !== undefined) return;
	const x = unattended(client, stored);
	const fetch: Fetch = { key, role: 'serve', wishes: NO_CLIENT_WISHES, stored, reason: 'stale', turn };
	const quiet: CacheRules = { ...rules, cache: uncounted(rules.cache), addsStatus: false };
	const finish = (): void => {
		if (isStream(x.response.body)) void drainBody(x.response.body);
		else turn.done('failed');
	};
	// The revalidation is deferred, so that the client's response is sent first.
	setImmediate(() => {
		try {
			const pending = ask(quiet, x, fetch);
			if (pending instanceof Promise) pending.then(finish, finish);
			else finish();
		} catch {
			finish();
		}
	});
}

/**
 * Returns a copy of the request that no client waits for. It omits the client's credentials, unless the stored response was
 * requested with credentials or is selected by them.
 */
function unattended(client: Exchange, { head }: CachedResponse): Exchange {
	const { request, received } = client;
	const copy = new Request({ ...received, method: 'GET' }, request.scheme, request.host, request.headers.clone(), null);
	copy.authority = request.authority;
	copy.path = request.path;
	copy.query = request.query;
	for (const name of [...CONDITIONAL, 'cache-control', 'pragma']) copy.headers.delete(name);
	for (const name of ['authorization', 'cookie']) {
		if (head.credentials !== true && !head.selecting.includes(name)) copy.headers.delete(name);
	}
	const transport = { sendInterim: () => {}, watch: () => {} };
	const x = new Exchange(client.protocol, client.connection, received, copy, transport, performance.now());
	x.site = client.site;
	x.response.headers = new HeaderList(['Server', 'svc']);
	x.now = () => client.now();
	return x;
}

/** Returns a view of the cache that does not count hits and misses, for background requests. */
function uncounted(cache: ResponseCache): ResponseCache {
	return {
		maxBodyBytes: cache.maxBodyBytes,
		find: key => cache.find(key),
		loadFromDisk: key => cache.loadFromDisk(key),
		body: (response, start, end) => cache.body(response, start, end),
		pin: response => cache.pin(response),
		urlEpoch: (host, path, query) => cache.urlEpoch(host, path, query),
		store: (head, length, most, since) => cache.store(head, length, most, since),
		refresh: (response, head) => cache.refresh(response, head),
		remove: response => cache.remove(response),
		invalidate: (host, path, query) => cache.invalidate(host, path, query),
		joinFetch: (key, maxWait) => cache.joinFetch(key, maxWait),
		countEvent: event => {
			if (event === 'revalidated' || event === 'store') cache.countEvent(event);
		},
	};
}

function httpDate(seconds: number): string {
	return new Date(seconds * 1000).toUTCString();
}

function tell(x: Exchange, note: string): void {
	if (x.response.status !== 0 && x.upgradeCallback === undefined) x.response.headers.add('Cache-Status', note);
}

function after(pending: void | Promise<void>, then: () => void | Promise<void>): void | Promise<void> {
	return pending instanceof Promise ? pending.then(then) : then();
}
