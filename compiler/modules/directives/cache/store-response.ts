/** Stores a new response, if allowed, while it is sent to the client. */
import { bodyLength, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { FetchTicket } from '../../../exchange/response-cache.ts';
import { evaluatePreconditions, omitContentFields } from '../../representations/conditional.ts';
import type { CacheRules } from './cache-handler.ts';
import { freshnessLifetime, type RequestDirectives, requiresValidation, responseDirectives } from './freshness.ts';
import { selectingNames, selectingValues } from './selection.ts';
import { findStorageObjection } from './storable.ts';
import { createStoredHead, type FetchTimes } from './stored-head.ts';
import { drainBody, StoringBody } from './storing-body.ts';

/** Reports whether the header fields of the request allow storing a response with this status and these header fields. */
export function isStorable(
	rules: CacheRules,
	x: Exchange,
	{ status, headers }: { readonly status: number; readonly headers: HeaderList },
	times: FetchTimes,
	requestDirectives: RequestDirectives,
): boolean {
	const { request } = x;
	const parsedDirectives = responseDirectives(headers);
	const lifetime = freshnessLifetime(status, headers, parsedDirectives, rules, times.receivedAt);
	const requestProperties = {
		hasAuthorization: request.headers.has('authorization'),
		hasCookies: request.headers.has('cookie'),
		forbidsStoring: requestDirectives.noStore,
	};
	const hasValidator = headers.has('etag') || headers.has('last-modified');
	return (
		findStorageObjection(x, status, headers, parsedDirectives.directives, lifetime, requestProperties, hasValidator) ===
		undefined
	);
}

/**
 * Starts to store the response, if allowed, and returns undefined; `ticket` is completed when the body has ended. Otherwise returns
 * the outcome to report to the requests that wait for this fetch.
 */
export function storeResponse(
	rules: CacheRules,
	x: Exchange,
	cacheKey: string,
	earlierHeaders: HeaderList,
	times: FetchTimes,
	requestDirectives: RequestDirectives,
	ticket: FetchTicket | undefined,
): 'private' | 'failed' | undefined {
	const { cache } = rules;
	const { request, response } = x;
	const { status, headers, body } = response;
	// A failure, or a response whose client has left, does not show whether the next response may be stored.
	const refusalOutcome = x.isGone || status >= 500 ? 'failed' : 'private';
	if (response.mayBeTruncated || !isStorable(rules, x, response, times, requestDirectives)) return refusalOutcome;
	const length = bodyLength(body);
	if (length !== undefined && length > rules.maxBodyBytes) return refusalOutcome;
	// A body shorter than its declared length is incomplete.
	const declaredLength = headers.get('content-length');
	if (!isStream(body) && declaredLength !== undefined && declaredLength !== String(length)) return refusalOutcome;
	const selecting = selectingValues(selectingNames(headers, rules.selectingFields), request.headers, headers);
	const head = createStoredHead(x, cacheKey, earlierHeaders, selecting, times, rules);
	// The URL was purged or invalidated after this response was requested; the next response will be up to date.
	if (cache.urlEpoch(head.host, head.path, head.query) !== times.purgeEpoch) return 'failed';
	const writer = cache.store(head, length, rules.maxBodyBytes, times.purgeEpoch, ticket?.leaseId);
	const successOutcome = requiresValidation(head) ? 'private' : 'stored';
	if (writer === undefined) return refusalOutcome;
	if (isStream(body)) {
		const storingBody = new StoringBody({
			...{
				body,
				declaredLength,
				writer,
				isAwaited: ticket !== undefined,
				readAheadTotal: rules.readAheadTotal,
			},
			onEnd: stored => {
				if (stored) cache.countEvent('store');
				ticket?.done(stored ? successOutcome : 'failed');
			},
		});
		response.body = storingBody;
		if (clientHasResponse(x, head)) {
			void drainBody(storingBody);
			answerNotModified(x);
		}
		return undefined;
	}
	const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
	if (bytes !== null && bytes.byteLength > 0 && !writer.write(bytes)) return refusalOutcome;
	const isStored = writer.commit();
	if (isStored) cache.countEvent('store');
	ticket?.done(isStored ? successOutcome : 'failed');
	if (clientHasResponse(x, head)) answerNotModified(x);
	return undefined;
}

function answerNotModified({ response }: Exchange): void {
	response.status = 304;
	response.body = null;
	omitContentFields(response.headers);
}

/**
 * Reports whether the client already has this response and can be answered with 304. The origin could not decide this, because the
 * client's conditions were removed from the request so that the response could be stored.
 */
function clientHasResponse(x: Exchange, head: { etag?: string | undefined; modified?: number | undefined }): boolean {
	const { request, response } = x;
	const { headers } = request;
	if (response.status !== 200 || !(headers.has('if-none-match') || headers.has('if-modified-since'))) return false;
	const validators = { etag: head.etag, modified: head.modified };
	return evaluatePreconditions(headers, validators, x.now()) === 'not-modified';
}
