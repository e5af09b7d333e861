/** Stores a new response, if allowed, while it is sent to the client. */
import { bodyLength, isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { FetchTicket } from '../../../exchange/response-cache.ts';
import { evaluatePreconditions, omitContentFields } from '../../representations/conditional.ts';
import type { CacheRules } from './cache-handler.ts';
import { type ClientWishes, freshnessLifetime, requiresValidation, responseDirectives } from './freshness.ts';
import { selectingNames, selectingValues } from './selection.ts';
import { objectionToStoring } from './storable.ts';
import { type FetchTimes, storedHead } from './stored-head.ts';
import { drainBody, StoringBody } from './storing-body.ts';

/** Reports whether a new response may be stored. */
export function isStorable(rules: CacheRules, x: Exchange, times: FetchTimes, wishes: ClientWishes): boolean {
	const { request, response } = x;
	const { status, headers } = response;
	const parsed = responseDirectives(headers);
	const lifetime = freshnessLifetime(status, headers, parsed, rules, times.cameAt);
	const asked = {
		authorized: request.headers.has('authorization'),
		cookies: request.headers.has('cookie'),
		noStore: wishes.noStore,
	};
	const comparable = headers.has('etag') || headers.has('last-modified');
	return objectionToStoring(x, status, headers, parsed.directives, lifetime, asked, comparable) === undefined;
}

/**
 * Starts to store the response, if allowed, and returns undefined; `turn` is completed when the body has ended. Otherwise returns
 * the result of the fetch, for the requests that wait for it.
 */
export function storeResponse(
	rules: CacheRules,
	x: Exchange,
	key: string,
	before: HeaderList,
	times: FetchTimes,
	wishes: ClientWishes,
	turn: FetchTicket | undefined,
): 'private' | 'failed' | undefined {
	const { cache } = rules;
	const { request, response } = x;
	const { status, headers, body } = response;
	// A failure, or a response whose client has left, does not show whether the next response may be stored.
	const unkept = x.isGone || status >= 500 ? 'failed' : 'private';
	if (!isStorable(rules, x, times, wishes)) return unkept;
	const length = bodyLength(body);
	if (length !== undefined && length > rules.largest) return unkept;
	// A body shorter than its declared length is incomplete.
	const declared = headers.get('content-length');
	if (!isStream(body) && declared !== undefined && declared !== String(length)) return unkept;
	const selecting = selectingValues(selectingNames(headers, rules.selecting), request.headers, headers);
	const head = storedHead(x, key, before, selecting, times, rules);
	// The URL was purged or invalidated after this response was requested; the next response will be up to date.
	if (cache.urlEpoch(head.host, head.path, head.query) !== times.since) return 'failed';
	const writer = cache.store(head, length, rules.largest, times.since);
	const outcome = requiresValidation(head) ? 'private' : 'stored';
	if (writer === undefined) return unkept;
	if (isStream(body)) {
		const storing = new StoringBody({
			...{ body, declared, writer, awaited: turn !== undefined, ahead: rules.ahead },
			ended: stored => {
				if (stored) cache.countEvent('store');
				turn?.done(stored ? outcome : 'failed');
			},
		});
		response.body = storing;
		if (has(x, head)) {
			void drainBody(storing);
			answerNotModified(x);
		}
		return undefined;
	}
	const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
	if (bytes !== null && bytes.byteLength > 0 && !writer.write(bytes)) return unkept;
	const stored = writer.commit();
	if (stored) cache.countEvent('store');
	turn?.done(stored ? outcome : 'failed');
	if (has(x, head)) answerNotModified(x);
	return undefined;
}

function answerNotModified({ response }: Exchange): void {
	response.status = 304;
	response.body = null;
	omitContentFields(response.headers);
}

/**
 * Reports whether the client already has this response, and can be answered with 304. The origin could not tell, because the
 * client's conditions were removed from the request so that the response could be stored.
 */
function has(x: Exchange, head: { etag?: string | undefined; modified?: number | undefined }): boolean {
	const { request, response } = x;
	const { headers } = request;
	if (response.status !== 200 || !(headers.has('if-none-match') || headers.has('if-modified-since'))) return false;
	const validators = { etag: head.etag, modified: head.modified };
	return evaluatePreconditions(headers, validators, x.now()) === 'not-modified';
}
