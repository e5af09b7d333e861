/**
 * Decides which responses are stored. RFC 9111 §3 says which ones a shared cache may store; for safety, this cache does not store
 * all of them.
 */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { contentType } from '../../representations/content-type.ts';
import type { CacheControlDirectives } from './cache-control.ts';
import { type FreshnessLifetime, isCacheableByDefault } from './freshness.ts';
import { MAX_SELECTING_FIELDS } from './selection.ts';

/** Statuses whose caching rules this server implements, for `must-understand` (RFC 9111 §5.2.2.3). */
const UNDERSTOOD_STATUSES: ReadonlySet<number> = new Set([
	...[200, 203, 204, 300, 301, 302, 303, 307, 308],
	...[401, 403, 404, 405, 410, 414, 451, 500, 501, 502, 503, 504],
]);

/**
 * Statuses that are never stored: those of partial or interim responses, and those that concern one request's fields, body or
 * rate. If the origin rejects one client's request, the requests of other clients must not be rejected from the cache.
 * RFC 6585 forbids storing 428, 429, 431 and 511.
 */
const NEVER_STORED_STATUSES: ReadonlySet<number> = new Set([
	...[101, 206, 304, 416],
	...[400, 408, 411, 412, 413, 415, 417, 421, 422, 425, 426, 428, 429, 431, 511],
]);

/** Reports whether responses with a status are never stored. */
export function isNeverStored(status: number): boolean {
	return NEVER_STORED_STATUSES.has(status);
}

/** The reason why a response is not stored. */
export type StorageObjection =
	| 'no-store'
	| 'private'
	| 'status'
	| 'set-cookie'
	| 'vary'
	| 'authorization'
	| 'cookie'
	| 'deception'
	| 'no-freshness';

/** Properties of the request that decide whether its response may be stored. */
export interface RequestProperties {
	/** True if the request had `Authorization`. Responses to requests with `Authorization` or `Cookie` may be for one user only. */
	readonly hasAuthorization: boolean;
	readonly hasCookies: boolean;
	/** True if the request's `Cache-Control` forbids storing the response. */
	readonly forbidsStoring: boolean;
}

/** Returns why the response to a GET may not be stored; undefined if it may be stored. */
export function findStorageObjection(
	x: Exchange,
	status: number,
	headers: HeaderList,
	directives: CacheControlDirectives,
	{ source, lifetimeMs: lifetime }: FreshnessLifetime,
	requestProperties: RequestProperties,
	hasValidator: boolean,
): StorageObjection | undefined {
	const mustUnderstand = directives.has('must-understand');
	if (NEVER_STORED_STATUSES.has(status) || status < 200 || (mustUnderstand && !UNDERSTOOD_STATUSES.has(status)))
		return 'status';
	if (requestProperties.forbidsStoring || (directives.has('no-store') && !mustUnderstand)) return 'no-store';
	if (directives.get('private') === '') return 'private';
	if (headers.has('set-cookie')) return 'set-cookie';
	if (matchesNoRequest(headers)) return 'vary';
	const isExplicit = source === 'explicit';
	const isShareable = directives.has('public') || directives.has('s-maxage');
	if (requestProperties.hasAuthorization && !isShareable && !directives.has('must-revalidate')) return 'authorization';
	// A lifetime is not enough to make a response public: applications also send one with pages for users with a session.
	if (requestProperties.hasCookies && !isShareable) return 'cookie';
	if (!isExplicit && isDeceptive(x, headers)) return 'deception';
	if (lifetime > 0) return undefined;
	// A response without a lifetime is worth storing only if validating it is cheaper than sending it again.
	const isWorthValidating = isExplicit || (directives.has('no-cache') && isCacheableByDefault(status, directives));
	return isWorthValidating && hasValidator ? undefined : 'no-freshness';
}

/**
 * Reports whether `Vary` makes a response useless for other requests: `*` matches no request (RFC 9110 §12.5.5), and in practice, a
 * list of dozens of fields does not match any other request either.
 */
function matchesNoRequest(headers: HeaderList): boolean {
	const names = headers.getCombined('vary')?.split(',') ?? [];
	return names.length > MAX_SELECTING_FIELDS || names.some(name => name.trim() === '*');
}

/**
 * Reports whether the path suggests a type other than the response's, like `/account/x.css` on a server that ignores whatever
 * follows `/account`. Such a response has no explicit lifetime, and may contain one user's data (web cache deception).
 */
function isDeceptive(x: Exchange, headers: HeaderList): boolean {
	const pathType = contentType(x.received.path);
	if (pathType === undefined) return false;
	const responseType = headers.get('content-type');
	if (responseType === undefined) return true;
	const essenceOf = (text: string): string => text.split(';', 1)[0]!.trim().toLowerCase();
	const pathEssence = essenceOf(pathType);
	const responseEssence = essenceOf(responseType);
	return (
		pathEssence !== responseEssence &&
		!(isScript(pathEssence) && isScript(responseEssence)) &&
		!(isXml(pathEssence) && isXml(responseEssence)) &&
		!(isIcon(pathEssence) && isIcon(responseEssence))
	);
}

/** Reports whether a media type is JavaScript, which has several names. `isXml` and `isIcon` check for XML and for icons. */
const isScript = (type: string): boolean => /^(?:application|text)\/(?:x-)?(?:java|ecma)script$/.test(type);
const isXml = (type: string): boolean => /[/+]xml$/.test(type);
const isIcon = (type: string): boolean => /^image\/(?:x-icon|vnd\.microsoft\.icon)$/.test(type);
