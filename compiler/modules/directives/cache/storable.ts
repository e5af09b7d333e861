/** Decides which responses a shared cache may store (RFC 9111 §3) and which it should not. */

import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { contentType } from '../../representations/content-type.ts';
import type { CacheControlDirectives } from './cache-control.ts';
import { type FreshnessLifetime, isCacheableByDefault } from './freshness.ts';
import { MAX_SELECTING_FIELDS } from './selection.ts';

/** Statuses whose caching rules this server implements, for `must-understand` (RFC 9111 §5.2.2.3). */
const UNDERSTOOD: ReadonlySet<number> = new Set([
	...[200, 203, 204, 300, 301, 302, 303, 307, 308],
	...[401, 403, 404, 405, 410, 414, 451, 500, 501, 502, 503, 504],
]);

/**
 * Statuses that are never stored: those of partial or interim responses, and those that concern one request's fields, body or
 * rate. If the origin rejects one client's request, the requests of other clients must not be rejected from the cache.
 * RFC 6585 forbids storing 428, 429, 431 and 511.
 */
const NEVER: ReadonlySet<number> = new Set([
	...[101, 206, 304, 416],
	...[400, 408, 411, 412, 413, 415, 417, 421, 422, 425, 426, 428, 429, 431, 511],
]);

/** Reports whether responses with a status are never stored. */
export function isNeverStored(status: number): boolean {
	return NEVER.has(status);
}

/** Why a response is not stored; undefined if it may be. */
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
	/** The request had `Authorization`: the response may be for one user only. The same applies to `cookies`. */
	readonly authorized: boolean;
	readonly cookies: boolean;
	/** The client asked not to store the response. */
	readonly noStore: boolean;
}

/** Returns why the response to a GET may not be stored; undefined if it may be. */
export function objectionToStoring(
	x: Exchange,
	status: number,
	headers: HeaderList,
	directives: CacheControlDirectives,
	{ source, lifetime }: FreshnessLifetime,
	asked: RequestProperties,
	validated: boolean,
): StorageObjection | undefined {
	const understood = directives.has('must-understand');
	if (NEVER.has(status) || status < 200 || (understood && !UNDERSTOOD.has(status))) return 'status';
	if (asked.noStore || (directives.has('no-store') && !understood)) return 'no-store';
	if (directives.get('private') === '') return 'private';
	if (headers.has('set-cookie')) return 'set-cookie';
	if (isForNobody(headers)) return 'vary';
	const isExplicit = source === 'explicit';
	const shared = directives.has('public') || directives.has('s-maxage');
	if (asked.authorized && !shared && !directives.has('must-revalidate')) return 'authorization';
	// A lifetime alone does not make a response public: applications send it to users with a session too.
	if (asked.cookies && !shared) return 'cookie';
	if (!isExplicit && isDeceptive(x, headers)) return 'deception';
	if (lifetime > 0) return undefined;
	// A response without a lifetime is worth storing only if validating it is cheaper than sending it again.
	const toValidate = isExplicit || (directives.has('no-cache') && isCacheableByDefault(status, directives));
	return toValidate && validated ? undefined : 'no-freshness';
}

/**
 * Reports whether `Vary` makes a response useless for other requests: `*` matches none (RFC 9110 §12.5.5), and in practice
 * neither does a list of dozens of fields.
 */
function isForNobody(headers: HeaderList): boolean {
	const names = headers.combined('vary')?.split(',') ?? [];
	return names.length > MAX_SELECTING_FIELDS || names.some(name => name.trim() === '*');
}

/**
 * Reports whether the path suggests a type other than the response's, like `/account/x.css` on a server that ignores whatever
 * follows `/account`. Such a response has no explicit lifetime, and may contain one user's data (web cache deception).
 */
function isDeceptive(x: Exchange, headers: HeaderList): boolean {
	const named = contentType(x.received.path);
	if (named === undefined) return false;
	const type = headers.get('content-type');
	if (type === undefined) return true;
	const essence = (text: string): string => text.split(';', 1)[0]!.trim().toLowerCase();
	const a = essence(named);
	const b = essence(type);
	return a !== b && !(isScript(a) && isScript(b)) && !(isXml(a) && isXml(b)) && !(isIcon(a) && isIcon(b));
}

/** Types with several common names. */
const isScript = (type: string): boolean => /^(?:application|text)\/(?:x-)?(?:java|ecma)script$/.test(type);
const isXml = (type: string): boolean => /[/+]xml$/.test(type);
const isIcon = (type: string): boolean => /^image\/(?:x-icon|vnd\.microsoft\.icon)$/.test(type);
