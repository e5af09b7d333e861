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

/** Configured lifetimes of responses without an explicit one; times in milliseconds. */
export interface FreshnessRules {
	/** By status or class (`404`, `5xx`). The key '' is for responses that may be stored without explicit permission. */
	readonly ttl: ReadonlyMap<string, number>;
	/** Heuristic lifetime, as a fraction of the time since the last modification; 0 disables the heuristic. */
	readonly heuristic: number;
	readonly staleWhileRevalidate: number;
	readonly staleIfError: number;
}

/** Maximum heuristic lifetime: a day. */
const MAX_GUESS = 86_400_000;

/** Statuses that are cacheable by default (RFC 9110 §15.1), except partial ones. */
const CACHEABLE_BY_DEFAULT: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]);

/** Statuses covered by a configured `ttl` without a status: successes and permanent redirects. */
const PLAIN: ReadonlySet<number> = new Set([200, 203, 300, 301, 308]);

/** Reports whether a response without an explicit lifetime may be stored (RFC 9111 §3). */
export function isCacheableByDefault(status: number, directives: CacheControlDirectives): boolean {
	return CACHEABLE_BY_DEFAULT.has(status) || (directives.has('public') && status < 500);
}

/** Returns the directives for a shared cache: a valid `CDN-Cache-Control` replaces all others (RFC 9213 §2.2). */
export function responseDirectives(headers: HeaderList): {
	readonly directives: CacheControlDirectives;
	readonly targeted: boolean;
} {
	const targeted = headers.combined('cdn-cache-control');
	const directives = targeted === undefined ? undefined : parseTargetedCacheControl(targeted);
	if (directives !== undefined) return { directives, targeted: true };
	return { directives: parseCacheControl(headers.combined('cache-control')), targeted: false };
}

/** A freshness lifetime, and whether it was explicit. */
export interface FreshnessLifetime {
	/** Freshness lifetime in milliseconds; 0 if the response must be revalidated each time. */
	readonly lifetime: number;
	readonly source: 'explicit' | 'configured' | 'guessed' | 'none';
}

/** Returns the freshness lifetime of a response (RFC 9111 §4.2.1). `now` is when it arrived. */
export function freshnessLifetime(
	status: number,
	headers: HeaderList,
	{ directives, targeted }: ReturnType<typeof responseDirectives>,
	rules: FreshnessRules,
	now: number,
): FreshnessLifetime {
	const explicit = directiveTimeMs(directives, 's-maxage') ?? directiveTimeMs(directives, 'max-age');
	if (explicit !== undefined) return { lifetime: explicit, source: 'explicit' };
	const expires = targeted ? undefined : headers.combined('expires');
	if (expires !== undefined) {
		const end = parseHttpDate(expires.trim(), now);
		// An invalid date counts as past (RFC 9111 §5.3).
		return {
			lifetime: end === undefined ? 0 : Math.max(0, end * 1000 - responseDateOf(headers, now)),
			source: 'explicit',
		};
	}
	const named = rules.ttl.get(String(status)) ?? rules.ttl.get(`${Math.floor(status / 100)}xx`);
	const configured = named ?? (PLAIN.has(status) ? rules.ttl.get('') : undefined);
	if (configured !== undefined) return { lifetime: configured, source: 'configured' };
	if (rules.heuristic > 0 && isCacheableByDefault(status, directives)) {
		const modified = lastModifiedOf(headers, now);
		if (modified !== undefined) {
			const since = responseDateOf(headers, now) - modified * 1000;
			if (since > 0) return { lifetime: Math.min(MAX_GUESS, since * rules.heuristic), source: 'guessed' };
		}
	}
	return { lifetime: 0, source: 'none' };
}

/** Returns how long a stale response may be served, as the response says, or otherwise as configured. */
export function staleTimes(
	directives: CacheControlDirectives,
	rules: FreshnessRules,
): { readonly whileRevalidate: number; readonly ifError: number } {
	return {
		whileRevalidate: directiveTimeMs(directives, 'stale-while-revalidate') ?? rules.staleWhileRevalidate,
		ifError: directiveTimeMs(directives, 'stale-if-error') ?? rules.staleIfError,
	};
}

/** Returns `Date` in milliseconds, or the time of arrival if it is not valid. */
export function responseDateOf(headers: HeaderList, now: number): number {
	const text = headers.get('date');
	const seconds = text === undefined ? undefined : parseHttpDate(text.trim(), now);
	return seconds === undefined ? now : seconds * 1000;
}

/** Returns `Last-Modified` in seconds. */
export function lastModifiedOf(headers: HeaderList, now: number): number | undefined {
	const text = headers.combined('last-modified');
	return text === undefined ? undefined : parseHttpDate(text.trim(), now);
}

/** Returns the age of a response on arrival, in milliseconds (RFC 9111 §4.2.3). `askedAt` is when the request was sent. */
export function initialAge(headers: HeaderList, askedAt: number, cameAt: number): number {
	const apparent = Math.max(0, cameAt - responseDateOf(headers, cameAt));
	// Of several values, the first one is used (RFC 9111 §5.1).
	const said = /^[ \t]*(\d{1,10})[ \t]*(?:,|$)/.exec(headers.get('age') ?? '');
	const value = said ? Number(said[1]) * 1000 : 0;
	return Math.max(apparent, value + Math.max(0, cameAt - askedAt));
}

/** Returns milliseconds since the origin generated or last validated the response. */
export function currentAge(head: CachedHead, now: number): number {
	return head.initialAge + Math.max(0, now - head.storedAt);
}

/** The request's restrictions on acceptable responses; times in milliseconds. */
export interface ClientWishes {
	readonly noCache: boolean;
	readonly noStore: boolean;
	readonly onlyIfCached: boolean;
	readonly maxAge: number | undefined;
	readonly minFresh: number;
	/** Milliseconds for which a response may have been stale; Infinity if unlimited. */
	readonly maxStale: number;
}

/** The restrictions of a request that has none. */
export const NO_CLIENT_WISHES: ClientWishes = {
	noCache: false,
	noStore: false,
	onlyIfCached: false,
	maxAge: undefined,
	minFresh: 0,
	maxStale: 0,
};

/** Parses `Cache-Control` of a request, or `Pragma` if absent (RFC 9111 §5.2.1, §5.4). */
export function parseClientWishes(headers: HeaderList): ClientWishes {
	const text = headers.combined('cache-control');
	if (text === undefined) {
		const pragma = headers.combined('pragma');
		if (pragma === undefined || !/(?:^|,)[ \t]*no-cache[ \t]*(?:,|$)/i.test(pragma)) return NO_CLIENT_WISHES;
		return { ...NO_CLIENT_WISHES, noCache: true };
	}
	const directives = parseCacheControl(text);
	const maxStale = directives.get('max-stale');
	return {
		noCache: directives.has('no-cache'),
		noStore: directives.has('no-store'),
		onlyIfCached: directives.has('only-if-cached'),
		maxAge: directiveTimeMs(directives, 'max-age'),
		minFresh: directiveTimeMs(directives, 'min-fresh') ?? 0,
		maxStale:
			maxStale === undefined
				? 0
				: maxStale === ''
					? Number.POSITIVE_INFINITY
					: directiveTimeMs(directives, 'max-stale')!,
	};
}

/** How a stored response may be used. `stale`: served while it is revalidated in the background. */
export type StoredResponseUse = 'fresh' | 'stale' | 'validate';

/** Reports whether a response must be validated by its origin for every request. */
export function requiresValidation(head: CachedHead): boolean {
	return head.noCache || head.lifetime + head.staleWhileRevalidate === 0;
}

/** Decides how a stored response may answer a request (RFC 9111 §4). */
export function decideUse(head: CachedHead, wishes: ClientWishes, now: number): StoredResponseUse {
	if (head.noCache || wishes.noCache) return 'validate';
	const age = currentAge(head, now);
	if (wishes.maxAge !== undefined && age > wishes.maxAge + (wishes.maxAge > 0 ? wishes.maxStale : 0)) return 'validate';
	const left = head.lifetime - age;
	if (left > 0) return left >= wishes.minFresh ? 'fresh' : 'validate';
	if (head.mustRevalidate) return 'validate';
	if (wishes.maxStale > 0 && -left <= wishes.maxStale) return 'fresh';
	if (wishes.minFresh > 0 || wishes.maxAge !== undefined) return 'validate';
	return -left <= head.staleWhileRevalidate && head.staleWhileRevalidate > 0 ? 'stale' : 'validate';
}

/** Reports whether a stale response may be served because its origin fails (RFC 9111 §4.2.4, RFC 5861 §4). */
export function isUsableOnError(head: CachedHead, now: number): boolean {
	if (head.mustRevalidate || head.noCache) return false;
	const stale = currentAge(head, now) - head.lifetime;
	return stale <= head.staleIfError;
}
