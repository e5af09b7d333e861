/** Computes a response's age and freshness lifetime, and how it may be used (RFC 9111 §4.2, RFC 5861). */
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedHead } from '../../../exchange/response-cache.ts';
import { parseHttpDate } from '../../representations/conditional.ts';
import {
	type CacheControlDirectives,
	directiveTimeMs,
	parseCacheControl,
	parseTargetedCacheControl,
} from './cache-control.ts';

/** Configured lifetimes of responses without an explicit lifetime; times in milliseconds. */
export interface FreshnessRules {
	/** Lifetimes by status or class (`404`, `5xx`). The key '' is for responses that may be stored without explicit permission. */
	readonly ttlMsByStatus: ReadonlyMap<string, number>;
	/** Heuristic lifetime, as a fraction of the time since the last modification; 0 disables the heuristic. */
	readonly heuristicFraction: number;
	readonly staleWhileRevalidateMs: number;
	readonly staleIfErrorMs: number;
}

/** Maximum heuristic lifetime: one day. */
const MAX_HEURISTIC_MS = 86_400_000;

/** Statuses that are cacheable by default (RFC 9110 §15.1), except those of partial responses. */
const DEFAULT_CACHEABLE_STATUSES: ReadonlySet<number> = new Set([
	200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501,
]);

/** Statuses covered by a configured `ttl` without a status: successes and permanent redirects. */
const STATUSES_OF_DEFAULT_TTL: ReadonlySet<number> = new Set([200, 203, 300, 301, 308]);

/** Reports whether a response without an explicit lifetime may be stored (RFC 9111 §3). */
export function isCacheableByDefault(status: number, directives: CacheControlDirectives): boolean {
	return DEFAULT_CACHEABLE_STATUSES.has(status) || (directives.has('public') && status < 500);
}

/**
 * Returns a response's cache directives for a shared cache. A valid `CDN-Cache-Control` replaces `Cache-Control` and `Expires` (RFC
 * 9213 §2.2).
 */
export function responseDirectives(headers: HeaderList): {
	readonly directives: CacheControlDirectives;
	readonly isTargeted: boolean;
} {
	const targetedField = headers.getCombined('cdn-cache-control');
	const directives = targetedField === undefined ? undefined : parseTargetedCacheControl(targetedField);
	if (directives !== undefined) return { directives, isTargeted: true };
	return { directives: parseCacheControl(headers.getCombined('cache-control')), isTargeted: false };
}

/** A freshness lifetime, and where it comes from. */
export interface FreshnessLifetime {
	/** Freshness lifetime in milliseconds; 0 if the response must be revalidated each time. */
	readonly lifetimeMs: number;
	readonly source: 'explicit' | 'configured' | 'guessed' | 'none';
}

/** Returns the freshness lifetime of a response (RFC 9111 §4.2.1). `now` is the time of arrival. */
export function freshnessLifetime(
	status: number,
	headers: HeaderList,
	{ directives, isTargeted }: ReturnType<typeof responseDirectives>,
	rules: FreshnessRules,
	now: number,
): FreshnessLifetime {
	const explicitMs = directiveTimeMs(directives, 's-maxage') ?? directiveTimeMs(directives, 'max-age');
	if (explicitMs !== undefined) return { lifetimeMs: explicitMs, source: 'explicit' };
	const expires = isTargeted ? undefined : headers.getCombined('expires');
	if (expires !== undefined) {
		const expirySeconds = parseHttpDate(expires.trim(), now);
		// An invalid date is treated as being in the past (RFC 9111 §5.3).
		return {
			lifetimeMs: expirySeconds === undefined ? 0 : Math.max(0, expirySeconds * 1000 - responseDateMs(headers, now)),
			source: 'explicit',
		};
	}
	const statusTtl = rules.ttlMsByStatus.get(String(status)) ?? rules.ttlMsByStatus.get(`${Math.floor(status / 100)}xx`);
	const configuredMs = statusTtl ?? (STATUSES_OF_DEFAULT_TTL.has(status) ? rules.ttlMsByStatus.get('') : undefined);
	if (configuredMs !== undefined) return { lifetimeMs: configuredMs, source: 'configured' };
	if (rules.heuristicFraction > 0 && isCacheableByDefault(status, directives)) {
		const modifiedSeconds = lastModifiedSeconds(headers, now);
		if (modifiedSeconds !== undefined) {
			const sinceModifiedMs = responseDateMs(headers, now) - modifiedSeconds * 1000;
			if (sinceModifiedMs > 0)
				return { lifetimeMs: Math.min(MAX_HEURISTIC_MS, sinceModifiedMs * rules.heuristicFraction), source: 'guessed' };
		}
	}
	return { lifetimeMs: 0, source: 'none' };
}

/** Returns the milliseconds for which a stale response may be served: those in its directives, otherwise the configured ones. */
export function staleTimes(
	directives: CacheControlDirectives,
	rules: FreshnessRules,
): { readonly whileRevalidateMs: number; readonly ifErrorMs: number } {
	return {
		whileRevalidateMs: directiveTimeMs(directives, 'stale-while-revalidate') ?? rules.staleWhileRevalidateMs,
		ifErrorMs: directiveTimeMs(directives, 'stale-if-error') ?? rules.staleIfErrorMs,
	};
}

/** Returns the response's `Date` in milliseconds since 1970, or `now` if the field is absent or invalid. */
export function responseDateMs(headers: HeaderList, now: number): number {
	const text = headers.get('date');
	const seconds = text === undefined ? undefined : parseHttpDate(text.trim(), now);
	return seconds === undefined ? now : seconds * 1000;
}

/** Returns `Last-Modified` in seconds since 1970; undefined if it is absent or invalid. */
export function lastModifiedSeconds(headers: HeaderList, now: number): number | undefined {
	const text = headers.getCombined('last-modified');
	return text === undefined ? undefined : parseHttpDate(text.trim(), now);
}

/** Returns the age of a response on arrival, in milliseconds (RFC 9111 §4.2.3). `requestedAt` is when the request was sent. */
export function initialAgeMs(headers: HeaderList, requestedAt: number, receivedAt: number): number {
	const apparentAgeMs = Math.max(0, receivedAt - responseDateMs(headers, receivedAt));
	// Of several values, the first one is used (RFC 9111 §5.1).
	const ageMatch = /^[ \t]*(\d{1,10})[ \t]*(?:,|$)/.exec(headers.get('age') ?? '');
	const ageFieldMs = ageMatch ? Number(ageMatch[1]) * 1000 : 0;
	return Math.max(apparentAgeMs, ageFieldMs + Math.max(0, receivedAt - requestedAt));
}

/** Returns milliseconds since the origin generated or last validated the response. */
export function currentAgeMs(head: CachedHead, now: number): number {
	return head.initialAge + Math.max(0, now - head.storedAt);
}

/** The directives by which a request restricts the responses it accepts; times in milliseconds. */
export interface RequestDirectives {
	readonly noCache: boolean;
	readonly noStore: boolean;
	readonly onlyIfCached: boolean;
	readonly maxAgeMs: number | undefined;
	readonly minFreshMs: number;
	/** Milliseconds for which a response may have been stale; Infinity if unlimited. */
	readonly maxStaleMs: number;
}

/** The directives of a request without restrictions. */
export const NO_REQUEST_DIRECTIVES: RequestDirectives = {
	noCache: false,
	noStore: false,
	onlyIfCached: false,
	maxAgeMs: undefined,
	minFreshMs: 0,
	maxStaleMs: 0,
};

/** Parses a request's `Cache-Control`, or its `Pragma` if `Cache-Control` is absent (RFC 9111 §5.2.1, §5.4). */
export function parseRequestDirectives(headers: HeaderList): RequestDirectives {
	const text = headers.getCombined('cache-control');
	if (text === undefined) {
		const pragma = headers.getCombined('pragma');
		if (pragma === undefined || !/(?:^|,)[ \t]*no-cache[ \t]*(?:,|$)/i.test(pragma)) return NO_REQUEST_DIRECTIVES;
		return { ...NO_REQUEST_DIRECTIVES, noCache: true };
	}
	const directives = parseCacheControl(text);
	const maxStale = directives.get('max-stale');
	return {
		noCache: directives.has('no-cache'),
		noStore: directives.has('no-store'),
		onlyIfCached: directives.has('only-if-cached'),
		maxAgeMs: directiveTimeMs(directives, 'max-age'),
		minFreshMs: directiveTimeMs(directives, 'min-fresh') ?? 0,
		maxStaleMs:
			maxStale === undefined
				? 0
				: maxStale === ''
					? Number.POSITIVE_INFINITY
					: directiveTimeMs(directives, 'max-stale')!,
	};
}

/** How a stored response may be used. `stale` means that it is served and revalidated in the background. */
export type StoredResponseUse = 'fresh' | 'stale' | 'validate';

/** Reports whether a response must be validated by its origin for every request. */
export function requiresValidation(head: CachedHead): boolean {
	return head.noCache || head.lifetime + head.staleWhileRevalidate === 0;
}

/** Decides how a stored response may answer a request (RFC 9111 §4). */
export function decideUse(head: CachedHead, requestDirectives: RequestDirectives, now: number): StoredResponseUse {
	if (head.noCache || requestDirectives.noCache) return 'validate';
	const ageMs = currentAgeMs(head, now);
	if (
		requestDirectives.maxAgeMs !== undefined &&
		ageMs > requestDirectives.maxAgeMs + (requestDirectives.maxAgeMs > 0 ? requestDirectives.maxStaleMs : 0)
	)
		return 'validate';
	const remainingMs = head.lifetime - ageMs;
	if (remainingMs > 0) return remainingMs >= requestDirectives.minFreshMs ? 'fresh' : 'validate';
	if (head.mustRevalidate) return 'validate';
	if (requestDirectives.maxStaleMs > 0 && -remainingMs <= requestDirectives.maxStaleMs) return 'fresh';
	if (requestDirectives.minFreshMs > 0 || requestDirectives.maxAgeMs !== undefined) return 'validate';
	return -remainingMs <= head.staleWhileRevalidate && head.staleWhileRevalidate > 0 ? 'stale' : 'validate';
}

/** Reports whether a stale response may be served because its origin fails (RFC 9111 §4.2.4, RFC 5861 §4). */
export function isUsableOnError(head: CachedHead, now: number): boolean {
	if (head.mustRevalidate || head.noCache) return false;
	const staleMs = currentAgeMs(head, now) - head.lifetime;
	return staleMs <= head.staleIfError;
}
