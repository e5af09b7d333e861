/** The request handler of `cache`: answers from the store, or calls later handlers and stores their response (RFC 9111). */
import { isStream } from '../../../exchange/body.ts';
import { Exchange, Request } from '../../../exchange/exchange.ts';
import type { Handler, Predicate } from '../../../exchange/handler.ts';
import { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type {
	CachedResponse,
	ClusterIntent,
	ClusterTier,
	FetchTicket,
	ResponseCache,
} from '../../../exchange/response-cache.ts';
import { type CacheRole, cacheKeyHost, cacheRoleOf, configuredKey, primaryKey } from './cache-key.ts';
import { fetchInCluster, recordTier } from './cluster-fetch.ts';
import type { FreshnessRules } from './freshness.ts';
import {
	currentAgeMs,
	decideUse,
	isUsableOnError,
	lastModifiedSeconds,
	NO_REQUEST_DIRECTIVES,
	parseRequestDirectives,
	type RequestDirectives,
	requiresValidation,
} from './freshness.ts';
import { selectStoredResponse } from './selection.ts';
import { isNeverStored } from './storable.ts';
import { isStorable, storeResponse } from './store-response.ts';
import { answerFromStore } from './stored-answer.ts';
import { type FetchTimes, refreshHead, withoutUnsharedFields } from './stored-head.ts';
import { drainBody, type ReadAheadTotal } from './storing-body.ts';

/** Settings of one `cache` step, fixed when the configuration is compiled. */
export interface CacheRules extends FreshnessRules {
	readonly cache: ResponseCache;
	/** The part of the cache that the machines of a cluster share; undefined if there is none. */
	readonly clusterTier: ClusterTier | undefined;
	/** Maximum size of a stored body in bytes. */
	readonly maxBodyBytes: number;
	/** Identifies this step, because steps never share stored responses. */
	readonly stepPlace: string;
	readonly renderKey: ((x: Exchange) => string) | undefined;
	/** Request fields that always take part in selecting a stored response, in lower case, sorted. */
	readonly selectingFields: readonly string[];
	readonly bypass: Predicate | undefined;
	/** Milliseconds that a request waits for a coalesced fetch; 0 disables waiting. */
	readonly maxWaitMs: number;
	/** Whether `Cache-Control` of requests is obeyed. */
	readonly obeysClients: boolean;
	/** Whether `Cache-Status` is added (RFC 9211). */
	readonly addsStatus: boolean;
	/** Counts the bytes that the step has read ahead of its clients. */
	readonly readAheadTotal: ReadAheadTotal;
	readonly next: Handler;
	/** Number of the step, passed to `Exchange.markAnswered`. */
	readonly stepNumber: number;
}

/** A fetch for a request that could not be answered from the store immediately. */
interface Fetch {
	readonly key: string;
	readonly role: CacheRole;
	readonly requestDirectives: RequestDirectives;
	readonly storedResponse: CachedResponse | undefined;
	/** Why no stored response could be used; the value of `fwd` in `Cache-Status`. */
	readonly reason: 'uri-miss' | 'vary-miss' | 'stale' | 'request';
	readonly ticket: FetchTicket | undefined;
}

/**
 * Request fields that make a response depend on what the client already has. They are removed before a fetch, so that the
 * response can be stored.
 */
const CONDITIONAL_FIELDS: readonly string[] = ['if-none-match', 'if-modified-since', 'if-range', 'range'];

/** Maximum number of times that a request waits for another request's fetch; after that, it fetches by itself. */
const MAX_FETCH_WAITS = 3;

export function createCacheHandler(rules: CacheRules): Handler {
	const { cache, bypass, next } = rules;
	return x => {
		const role = cacheRoleOf(x);
		if (role === 'write') return handleUnsafeMethod(rules, x);
		if (role === 'pass' || bypass?.(x)) {
			x.cacheStatus = 'bypass';
			cache.countEvent('bypass');
			if (!rules.addsStatus) return next(x);
			const { method } = x.request;
			return runAfter(next(x), () =>
				addCacheStatus(x, `svc; fwd=${method === 'GET' || method === 'HEAD' ? 'bypass' : 'method'}`),
			);
		}
		const cacheKey =
			rules.renderKey === undefined
				? primaryKey(x, rules.stepPlace)
				: configuredKey(x, rules.stepPlace, rules.renderKey(x));
		return lookUp(rules, x, cacheKey, role, 0, undefined, false);
	};
}

/**
 * Calls later handlers for a request with an unsafe method. If the request succeeds, invalidates the stored responses of its URL
 * (RFC 9111 §4.4).
 */
function handleUnsafeMethod(rules: CacheRules, x: Exchange): void | Promise<void> {
	x.cacheStatus = 'bypass';
	rules.cache.countEvent('bypass');
	// Later handlers may change the host.
	const host = cacheKeyHost(x.request);
	return runAfter(rules.next(x), () => {
		if (rules.addsStatus) addCacheStatus(x, 'svc; fwd=method');
		const { status, headers } = x.response;
		if (x.upgradeCallback !== undefined || status < 200 || status >= 400) return;
		const invalidations = [rules.cache.invalidate(host, x.received.path, x.received.query)];
		for (const name of ['location', 'content-location']) {
			const url = headers.get(name);
			if (url === undefined) continue;
			const baseUrl = `${x.request.scheme}://${host}${x.received.path}`;
			const targetUrl = URL.canParse(url, baseUrl) ? new URL(url, baseUrl) : undefined;
			// A URL of another host must not be invalidated.
			if (targetUrl?.host !== new URL(baseUrl).host) continue;
			const query = targetUrl.search === '' ? undefined : targetUrl.search.slice(1);
			invalidations.push(rules.cache.invalidate(host, targetUrl.pathname, query));
		}
		// The response is sent only after the invalidations, because a client that has received it must see their effect.
		return invalidations.some(invalidation => invalidation !== undefined)
			? Promise.all(invalidations).then(() => {})
			: undefined;
	});
}

/**
 * Answers from the store, waits for another request's fetch, or fetches.
 * @param waitCount Number of fetches of other requests for which this request has waited.
 * @param waitReason Why this request needed a fetch, if it has waited for one.
 * @param isDiskChecked True if the key has already been looked up on disk.
 */
function lookUp(
	rules: CacheRules,
	x: Exchange,
	cacheKey: string,
	role: CacheRole,
	waitCount: number,
	waitReason: Fetch['reason'] | undefined,
	isDiskChecked: boolean,
): void | Promise<void> {
	const { cache } = rules;
	const candidates = cache.find(cacheKey);
	if (candidates.length === 0 && !isDiskChecked) {
		const diskLoad = cache.loadFromDisk(cacheKey);
		if (diskLoad !== undefined) {
			return diskLoad.then(() => {
				const pending = lookUp(rules, x, cacheKey, role, waitCount, waitReason, true);
				if (pending === undefined && (x.cacheStatus === 'hit' || x.cacheStatus === 'stale')) recordTier(x, 'disk');
				return pending;
			});
		}
	}
	const { headers } = x.request;
	const storedResponse = candidates.length === 0 ? undefined : selectStoredResponse(candidates, headers);
	const requestDirectives =
		rules.obeysClients && (headers.has('cache-control') || headers.has('pragma'))
			? parseRequestDirectives(headers)
			: NO_REQUEST_DIRECTIVES;
	if (storedResponse !== undefined && serveIfUsable(rules, x, cacheKey, storedResponse, requestDirectives, waitReason))
		return;
	const { clusterTier } = rules;
	if (requestDirectives.onlyIfCached && clusterTier === undefined) return refuseFetch(rules, x);
	const reason =
		storedResponse !== undefined
			? decideUse(storedResponse.head, NO_REQUEST_DIRECTIVES, x.now()) === 'validate'
				? 'stale'
				: 'request'
			: candidates.length > 0
				? 'vary-miss'
				: 'uri-miss';
	const fetch: Fetch = { key: cacheKey, role, requestDirectives, storedResponse, reason, ticket: undefined };
	const { noStore, onlyIfCached, noCache } = requestDirectives;
	if (noStore || onlyIfCached || !mayCoalesce(rules, x, role, waitCount)) {
		if (clusterTier === undefined) return fetchResponse(rules, x, fetch);
		return fetchUnlessInCluster(rules, clusterTier, x, fetch, uncoalescedIntent(x, fetch), waitReason);
	}
	const ticket = cache.joinFetch(cacheKey, rules.maxWaitMs);
	if (ticket.ended === undefined) {
		if (clusterTier === undefined) return fetchResponse(rules, x, { ...fetch, ticket });
		return fetchUnlessInCluster(rules, clusterTier, x, { ...fetch, ticket }, noCache ? 'reload' : 'join', waitReason);
	}
	cache.countEvent('collapsed');
	const waitStart = performance.now();
	return ticket.ended.then(() => {
		if (x.isGone) return undefined;
		// A request that has already waited for `maxWaitMs` does not wait for another fetch.
		const hasWaitedTooLong = performance.now() - waitStart >= rules.maxWaitMs;
		return lookUp(
			rules,
			x,
			cacheKey,
			role,
			hasWaitedTooLong ? MAX_FETCH_WAITS : waitCount + 1,
			waitReason ?? reason,
			true,
		);
	});
}

/** Answers with a stored response if it may answer the request. Returns false if it may not, or if it has been evicted. */
function serveIfUsable(
	rules: CacheRules,
	x: Exchange,
	cacheKey: string,
	storedResponse: CachedResponse,
	requestDirectives: RequestDirectives,
	waitReason: Fetch['reason'] | undefined,
): boolean {
	const responseUse = decideUse(storedResponse.head, requestDirectives, x.now());
	if (responseUse === 'validate') return false;
	if (!serveFromStore(rules, x, storedResponse, responseUse === 'fresh' ? 'hit' : 'stale', waitReason)) return false;
	if (responseUse === 'stale') revalidateInBackground(rules, x, cacheKey, storedResponse);
	return true;
}

/** Throws HttpError 504 for a request that accepts only stored responses, if none of them can be used. */
function refuseFetch({ cache, stepNumber }: CacheRules, x: Exchange): never {
	x.cacheStatus = 'miss';
	cache.countEvent('miss');
	x.markAnswered('cache', stepNumber);
	throw new HttpError(504, 'cache: no stored response, and the client accepts no other (only-if-cached)');
}

/** Answers with a response that another machine of the cluster has stored, or else fetches the response. */
function fetchUnlessInCluster(
	rules: CacheRules,
	clusterTier: ClusterTier,
	x: Exchange,
	fetch: Fetch,
	intent: ClusterIntent,
	waitReason: Fetch['reason'] | undefined,
): Promise<void> {
	const { key, requestDirectives, ticket } = fetch;
	return fetchInCluster(clusterTier, x, {
		...{ key, intent, ticket, skipsIfBusy: false },
		answerIfLoaded: () => {
			const storedResponse = selectStoredResponse(rules.cache.find(key), x.request.headers);
			if (storedResponse === undefined) return undefined;
			if (decideUse(storedResponse.head, requestDirectives, x.now()) === 'validate') return storedResponse;
			// If the response is stale, its revalidation in the background needs a ticket of its own.
			ticket?.done('stored');
			if (!serveIfUsable(rules, x, key, storedResponse, requestDirectives, waitReason)) return undefined;
			recordTier(x, 'cluster');
			return 'answered';
		},
		fetch: (ownTicket, storedResponse) =>
			requestDirectives.onlyIfCached
				? refuseFetch(rules, x)
				: fetchResponse(rules, x, {
						...fetch,
						ticket: ownTicket,
						storedResponse: storedResponse ?? fetch.storedResponse,
					}),
	});
}

/** Revalidates a stored response in the background, unless another machine has done so or is doing so. */
function revalidateUnlessInCluster(
	rules: CacheRules,
	clusterTier: ClusterTier,
	x: Exchange,
	fetch: Fetch,
): Promise<void> {
	const { key, ticket } = fetch;
	return fetchInCluster(clusterTier, x, {
		...{ key, intent: 'lead', ticket, skipsIfBusy: true },
		answerIfLoaded: () => {
			const storedResponse = selectStoredResponse(rules.cache.find(key), x.request.headers);
			if (storedResponse === undefined) return undefined;
			const isFresh = decideUse(storedResponse.head, NO_REQUEST_DIRECTIVES, x.now()) === 'fresh';
			return isFresh ? 'answered' : storedResponse;
		},
		fetch: (ownTicket, storedResponse) =>
			fetchResponse(rules, x, { ...fetch, ticket: ownTicket, storedResponse: storedResponse ?? fetch.storedResponse }),
	});
}

/** Returns what a request that is not coalesced asks the cluster for. */
function uncoalescedIntent({ request: { headers } }: Exchange, { role, requestDirectives }: Fetch): ClusterIntent {
	const mayStore = role === 'serve' && !requestDirectives.noStore && !requestDirectives.onlyIfCached;
	// The response to a request with credentials is usually private, so other machines must not wait for it.
	const hasCredentials = headers.has('authorization') || headers.has('cookie');
	return mayStore && !hasCredentials ? 'lead' : 'load';
}

/** Reports whether this request may be coalesced with others, in which case one fetches and the others wait for its response. */
function mayCoalesce({ maxWaitMs }: CacheRules, x: Exchange, role: CacheRole, waitCount: number): boolean {
	if (maxWaitMs === 0 || role !== 'serve' || waitCount >= MAX_FETCH_WAITS) return false;
	const { headers } = x.request;
	return !headers.has('authorization') && !headers.has('cookie');
}

/** Answers from the store; returns false if the response has been evicted. */
function serveFromStore(
	rules: CacheRules,
	x: Exchange,
	storedResponse: CachedResponse,
	cacheStatus: 'hit' | 'stale',
	waitReason: Fetch['reason'] | undefined,
): boolean {
	const statusMember = rules.addsStatus ? formatHitStatus(x, storedResponse, waitReason) : '';
	if (!answerFromStore(x, rules.cache, storedResponse, statusMember)) return false;
	x.markAnswered('cache', rules.stepNumber);
	x.cacheStatus = cacheStatus;
	rules.cache.countEvent(cacheStatus);
	return true;
}

/**
 * Returns the `Cache-Status` of a response from the store: `fwd` if the request waited for the fetch of another request, otherwise
 * `hit`. RFC 9211 §2.1 allows only one of the two.
 */
function formatHitStatus(x: Exchange, { head }: CachedResponse, waitReason: Fetch['reason'] | undefined): string {
	const remainingSeconds = Math.floor((head.lifetime - currentAgeMs(head, x.now())) / 1000);
	return waitReason === undefined
		? `svc; hit; ttl=${remainingSeconds}`
		: `svc; fwd=${waitReason}; ttl=${remainingSeconds}; collapsed`;
}

/** Fetches by calling later handlers, with a validation request if there is a stored response with a validator. */
function fetchResponse(rules: CacheRules, x: Exchange, requestedFetch: Fetch): void | Promise<void> {
	const { request, response } = x;
	const { cache } = rules;
	const earlierHeaders = response.headers.clone();
	const originalHeaders = request.headers.clone();
	// The stored response is pinned, because it must still exist when the origin has confirmed it or failed.
	const releasePin = requestedFetch.storedResponse && cache.pin(requestedFetch.storedResponse);
	const fetch: Fetch = releasePin ? requestedFetch : { ...requestedFetch, storedResponse: undefined };
	const { storedResponse, role } = fetch;
	let isValidation = false;
	if (role === 'serve') for (const name of CONDITIONAL_FIELDS) request.headers.delete(name);
	if (storedResponse !== undefined && !request.headers.has('range')) {
		for (const name of CONDITIONAL_FIELDS) request.headers.delete(name);
		const { etag, modified } = storedResponse.head;
		isValidation = etag !== undefined || modified !== undefined;
		if (etag !== undefined) request.headers.set('If-None-Match', etag);
		if (modified !== undefined) request.headers.set('If-Modified-Since', httpDate(modified));
	}
	const requestedAt = x.now();
	const purgeEpoch = cache.urlEpoch(cacheKeyHost(request), x.received.path, x.received.query);
	const { stepBase, exclusiveGroups: exclusive } = x;
	const { method, host, authority, path, query } = request;
	const restoreRequest = (): void => {
		x.stepBase = stepBase;
		// The authority is part of the URL by which the response is purged.
		request.host = host;
		request.authority = authority;
		request.headers.clear();
		for (let i = 0; i < originalHeaders.size; i++)
			request.headers.add(originalHeaders.nameAt(i), originalHeaders.valueAt(i));
	};
	/** Restarts later handlers with a clean response; the first run may have rewritten the request. */
	const fetchAgain = (): void | Promise<void> => {
		resetResponse(x, earlierHeaders);
		Object.assign(request, { method, path, query });
		x.exclusiveGroups = exclusive;
		return fetchResponse(rules, x, { ...fetch, storedResponse: undefined });
	};
	const onAnswer = (): void | Promise<void> => {
		restoreRequest();
		try {
			return processResponse(
				rules,
				x,
				fetch,
				earlierHeaders,
				{ requestedAt, receivedAt: x.now(), purgeEpoch },
				isValidation,
				fetchAgain,
			);
		} catch (error) {
			fetch.ticket?.done('failed');
			throw error;
		} finally {
			releasePin?.();
		}
	};
	const onError = (error: unknown): void => {
		restoreRequest();
		fetch.ticket?.done('failed');
		const isServerFailure = error instanceof HttpError ? error.status >= 500 : true;
		if (isServerFailure && storedResponse !== undefined && !x.isGone && isUsableOnError(storedResponse.head, x.now())) {
			resetResponse(x, earlierHeaders);
			if (serveFromStore(rules, x, storedResponse, 'stale', undefined)) {
				releasePin?.();
				return;
			}
		}
		releasePin?.();
		x.cacheStatus = 'miss';
		cache.countEvent('miss');
		throw error;
	};
	let pending: void | Promise<void>;
	try {
		pending = rules.next(x);
	} catch (error) {
		onError(error);
		return;
	}
	return pending instanceof Promise ? pending.then(onAnswer, onError) : onAnswer();
}

/** Processes the answer of later handlers: stores it, or updates or removes the stored response. */
function processResponse(
	rules: CacheRules,
	x: Exchange,
	fetch: Fetch,
	earlierHeaders: HeaderList,
	times: FetchTimes,
	isValidation: boolean,
	fetchAgain: () => void | Promise<void>,
): void | Promise<void> {
	const { cache } = rules;
	const { response } = x;
	const { storedResponse, ticket } = fetch;
	const { status } = response;
	if (x.isAborted || x.upgradeCallback !== undefined || status === 0) {
		ticket?.done('private');
		x.cacheStatus = 'miss';
		cache.countEvent('miss');
		return;
	}
	if (storedResponse !== undefined && status === 304 && isValidation) {
		if (!refersToStored(response.headers, storedResponse)) {
			cache.remove(storedResponse);
			return fetchAgain();
		}
		const { head } = storedResponse;
		const refreshedHead = refreshHead(head, x.request.headers, response.headers, earlierHeaders, times, rules);
		const earlierCookies = earlierHeaders.getAll('set-cookie');
		const newCookies = response.headers.getAll('set-cookie').filter(cookie => !earlierCookies.includes(cookie));
		const isRefreshed =
			newCookies.length === 0 &&
			isStorable(
				rules,
				x,
				{ status: head.status, headers: new HeaderList([...refreshedHead.fields]) },
				times,
				fetch.requestDirectives,
			);
		const refreshedResponse = isRefreshed
			? cache.refresh(storedResponse, withoutUnsharedFields(refreshedHead), ticket?.leaseId)
			: storedResponse;
		cache.countEvent('revalidated');
		resetResponse(x, earlierHeaders);
		const statusMember = rules.addsStatus ? `svc; fwd=${fetch.reason}; fwd-status=304` : '';
		answerFromStore(x, cache, refreshedResponse, statusMember, refreshedHead);
		if (isRefreshed) ticket?.done(requiresValidation(refreshedHead) ? 'private' : 'stored');
		else {
			// This 304 is for one client only, or must not be stored. Other clients must get neither its fields nor its lifetime.
			for (const cookie of newCookies) x.response.headers.add('Set-Cookie', cookie);
			if (isSameForEveryone(x, fetch)) cache.remove(storedResponse);
			ticket?.done('private');
		}
		x.markAnswered('cache', rules.stepNumber);
		x.cacheStatus = 'hit';
		cache.countEvent('hit');
		return;
	}
	if (storedResponse !== undefined && status >= 500 && isUsableOnError(storedResponse.head, x.now())) {
		ticket?.done('failed');
		const { body } = response;
		resetResponse(x, earlierHeaders);
		if (isStream(body)) body.cancel();
		if (serveFromStore(rules, x, storedResponse, 'stale', undefined)) return;
	}
	x.cacheStatus = 'miss';
	cache.countEvent('miss');
	const { role, requestDirectives } = fetch;
	const refusal =
		role === 'serve' ? storeResponse(rules, x, fetch.key, earlierHeaders, times, requestDirectives, ticket) : 'private';
	const isStored = refusal === undefined;
	if (refusal !== undefined) ticket?.done(refusal);
	// A full response shows that the stored one is obsolete (RFC 9111 §4.3.3), even if the full response may not be stored.
	if (
		!isStored &&
		storedResponse !== undefined &&
		status < 500 &&
		!isNeverStored(status) &&
		isSameForEveryone(x, fetch)
	)
		cache.remove(storedResponse);
	if (storedResponse !== undefined && role === 'look' && x.request.method === 'HEAD')
		updateFromHeadResponse(rules, storedResponse, x, earlierHeaders, times);
	if (rules.addsStatus)
		addCacheStatus(
			x,
			`svc; fwd=${fetch.reason}${fetch.reason === 'stale' ? `; fwd-status=${status}` : ''}${isStored ? '; stored' : ''}`,
		);
}

/** Reports whether other clients would get the same response to this request. */
function isSameForEveryone({ request: { headers } }: Exchange, { role, requestDirectives }: Fetch): boolean {
	return role === 'serve' && !requestDirectives.noStore && !headers.has('authorization') && !headers.has('cookie');
}

/** Reports whether a 304 refers to the stored response, not to another one (RFC 9111 §4.3.4). */
function refersToStored(headers: HeaderList, { head }: CachedResponse): boolean {
	const etag = headers.get('etag');
	return etag === undefined || (head.etag !== undefined && etag.replace(/^W\//, '') === head.etag.replace(/^W\//, ''));
}

/**
 * Compares a HEAD response with the stored response. If they differ, the stored response is removed; otherwise its header fields
 * are updated (RFC 9111 §4.3.5).
 */
function updateFromHeadResponse(
	rules: CacheRules,
	storedResponse: CachedResponse,
	x: Exchange,
	earlierHeaders: HeaderList,
	times: FetchTimes,
): void {
	const { cache } = rules;
	const { status, headers } = x.response;
	if (status !== 200) return;
	const declaredLength = headers.get('content-length');
	const { etag, modified } = storedResponse.head;
	const isUnchanged =
		(declaredLength === undefined || declaredLength === String(storedResponse.length)) &&
		(headers.has('etag') ? headers.get('etag') === etag : true) &&
		(headers.has('last-modified') ? lastModifiedSeconds(headers, times.receivedAt) === modified : true);
	if (!isUnchanged) cache.remove(storedResponse);
	else if (
		(headers.has('etag') || headers.has('last-modified')) &&
		isStorable(rules, x, x.response, times, NO_REQUEST_DIRECTIVES)
	) {
		const { head } = storedResponse;
		const refreshedHead = refreshHead(head, x.request.headers, headers, earlierHeaders, times, rules);
		cache.refresh(storedResponse, withoutUnsharedFields(refreshedHead));
	}
}

/** Resets the response to what it was before later handlers ran. */
function resetResponse(x: Exchange, earlierHeaders: HeaderList): void {
	const { response } = x;
	response.headers = earlierHeaders.clone();
	response.body = null;
	response.status = 0;
	response.mayBeTruncated = false;
	response.trailers = undefined;
}

/** Revalidates a response in the background after it was served stale (RFC 5861 §3). Only one thread does this. */
function revalidateInBackground(
	rules: CacheRules,
	clientExchange: Exchange,
	cacheKey: string,
	storedResponse: CachedResponse,
): void {
	const ticket = rules.cache.joinFetch(cacheKey, 0);
	if (ticket.ended !== undefined) return;
	const x = createBackgroundExchange(clientExchange, storedResponse);
	const fetch: Fetch = {
		key: cacheKey,
		role: 'serve',
		requestDirectives: NO_REQUEST_DIRECTIVES,
		storedResponse,
		reason: 'stale',
		ticket,
	};
	const backgroundRules: CacheRules = { ...rules, cache: withoutHitCounts(rules.cache), addsStatus: false };
	const drainResponse = (): void => {
		if (isStream(x.response.body)) void drainBody(x.response.body);
		else ticket.done('failed');
	};
	// The revalidation is deferred, so that the client's response is sent first.
	setImmediate(() => {
		try {
			const { clusterTier } = rules;
			const pending =
				clusterTier === undefined
					? fetchResponse(backgroundRules, x, fetch)
					: revalidateUnlessInCluster(backgroundRules, clusterTier, x, fetch);
			if (pending instanceof Promise) pending.then(drainResponse, drainResponse);
			else drainResponse();
		} catch {
			drainResponse();
		}
	});
}

/**
 * Returns an exchange for a copy of the client's request; no client waits for it. The copy omits the client's credentials, unless
 * the stored response was requested with credentials or is selected by a credential field.
 */
function createBackgroundExchange(clientExchange: Exchange, { head }: CachedResponse): Exchange {
	const { request, received } = clientExchange;
	const requestCopy = new Request(
		{ ...received, method: 'GET' },
		request.scheme,
		request.host,
		request.headers.clone(),
		null,
	);
	requestCopy.authority = request.authority;
	requestCopy.path = request.path;
	requestCopy.query = request.query;
	for (const name of [...CONDITIONAL_FIELDS, 'cache-control', 'pragma']) requestCopy.headers.delete(name);
	for (const name of ['authorization', 'cookie']) {
		if (head.credentials !== true && !head.selecting.includes(name)) requestCopy.headers.delete(name);
	}
	const transport = { sendInterim: () => {}, watch: () => {} };
	const x = new Exchange(
		clientExchange.protocol,
		clientExchange.connection,
		received,
		requestCopy,
		transport,
		performance.now(),
	);
	x.siteName = clientExchange.siteName;
	x.response.headers = new HeaderList(['Server', 'svc']);
	x.now = () => clientExchange.now();
	return x;
}

/** Returns a view of the cache for background requests, which counts neither hits nor misses. */
function withoutHitCounts(cache: ResponseCache): ResponseCache {
	return {
		maxBodyBytes: cache.maxBodyBytes,
		find: key => cache.find(key),
		loadFromDisk: key => cache.loadFromDisk(key),
		body: (response, start, end) => cache.body(response, start, end),
		pin: response => cache.pin(response),
		urlEpoch: (host, path, query) => cache.urlEpoch(host, path, query),
		store: (head, length, maxBytes, purgeEpoch, leaseId) => cache.store(head, length, maxBytes, purgeEpoch, leaseId),
		refresh: (response, head, leaseId) => cache.refresh(response, head, leaseId),
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

function addCacheStatus(x: Exchange, statusMember: string): void {
	if (x.response.status !== 0 && x.upgradeCallback === undefined) x.response.headers.add('Cache-Status', statusMember);
}

function runAfter(pending: void | Promise<void>, continuation: () => void | Promise<void>): void | Promise<void> {
	return pending instanceof Promise ? pending.then(continuation) : continuation();
}
