/** How old a response is, how long it is fresh, and what may be done with it afterwards (RFC 9111 §4.2, RFC 5861). */
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { CachedHead } from '../../../exchange/response-cache.ts';
import { parseHttpDate } from '../file-server/conditional.ts';
import { type Directives, parseDirectives, parseTargetedDirectives, timeOf } from './cache-control.ts';

/** What the configuration says of responses that say nothing themselves; times in milliseconds. */
export interface FreshnessRules {
	/** By status or class (`404`, `5xx`); '' is for those that may be kept without being told. */
	readonly ttl: ReadonlyMap<string, number>;
	/** Share of the time since the last modification; 0: nothing is guessed. */
	readonly heuristic: number;
	readonly staleWhileRevalidate: number;
	readonly staleIfError: number;
}

/** Longest time that is guessed: a day. */
const LONGEST_GUESS = 86_400_000;

/** Statuses whose responses may be kept without being told (RFC 9110 §15.1), partial ones left out. */
const KEPT_UNTOLD: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]);

/** Those for which the `ttl` of the configuration that names no status is: successes and lasting redirects. */
const PLAIN: ReadonlySet<number> = new Set([200, 203, 300, 301, 308]);

/** Whether a response may be kept that names no time for which it is fresh (RFC 9111 §3). */
export function isKeptUntold(status: number, directives: Directives): boolean {
	return KEPT_UNTOLD.has(status) || (directives.has('public') && status < 500);
}

/** The directives that count for a shared cache: `CDN-Cache-Control`, where it is valid, in place of all else (RFC 9213 §2.2). */
export function responseDirectives(headers: HeaderList): {
	readonly directives: Directives;
	readonly targeted: boolean;
} {
	const targeted = headers.combined('cdn-cache-control');
	const directives = targeted === undefined ? undefined : parseTargetedDirectives(targeted);
	if (directives !== undefined) return { directives, targeted: true };
	return { directives: parseDirectives(headers.combined('cache-control')), targeted: false };
}

/** How long a response is fresh, and whether it said so itself. */
export interface Lifetime {
	/** Milliseconds; 0 when it is to be validated each time. */
	readonly lifetime: number;
	readonly source: 'explicit' | 'configured' | 'guessed' | 'none';
}

/** The freshness lifetime of a response (RFC 9111 §4.2.1). `now` is when it came. */
export function freshnessLifetime(
	status: number,
	headers: HeaderList,
	{ directives, targeted }: ReturnType<typeof responseDirectives>,
	rules: FreshnessRules,
	now: number,
): Lifetime {
	const told = timeOf(directives, 's-maxage') ?? timeOf(directives, 'max-age');
	if (told !== undefined) return { lifetime: told, source: 'explicit' };
	const expires = targeted ? undefined : headers.combined('expires');
	if (expires !== undefined) {
		const end = parseHttpDate(expires.trim(), now);
		// What is no date lies in the past (RFC 9111 §5.3).
		return { lifetime: end === undefined ? 0 : Math.max(0, end * 1000 - dateOf(headers, now)), source: 'explicit' };
	}
	const named = rules.ttl.get(String(status)) ?? rules.ttl.get(`${Math.floor(status / 100)}xx`);
	const configured = named ?? (PLAIN.has(status) ? rules.ttl.get('') : undefined);
	if (configured !== undefined) return { lifetime: configured, source: 'configured' };
	if (rules.heuristic > 0 && isKeptUntold(status, directives)) {
		const modified = modifiedOf(headers, now);
		if (modified !== undefined) {
			const since = dateOf(headers, now) - modified * 1000;
			if (since > 0) return { lifetime: Math.min(LONGEST_GUESS, since * rules.heuristic), source: 'guessed' };
		}
	}
	return { lifetime: 0, source: 'none' };
}

/** Times for which a stale response may be served: what it says, else what the configuration says. */
export function staleTimes(
	directives: Directives,
	rules: FreshnessRules,
): { readonly whileRevalidate: number; readonly ifError: number } {
	return {
		whileRevalidate: timeOf(directives, 'stale-while-revalidate') ?? rules.staleWhileRevalidate,
		ifError: timeOf(directives, 'stale-if-error') ?? rules.staleIfError,
	};
}

/** `Date` in milliseconds; when it came for a response without a valid one. */
export function dateOf(headers: HeaderList, now: number): number {
	const text = headers.get('date');
	const seconds = text === undefined ? undefined : parseHttpDate(text.trim(), now);
	return seconds === undefined ? now : seconds * 1000;
}

/** `Last-Modified` in seconds. */
export function modifiedOf(headers: HeaderList, now: number): number | undefined {
	const text = headers.combined('last-modified');
	return text === undefined ? undefined : parseHttpDate(text.trim(), now);
}

/** How old a response was when it came, in milliseconds (RFC 9111 §4.2.3). `askedAt` is when the request was sent. */
export function initialAge(headers: HeaderList, askedAt: number, cameAt: number): number {
	const apparent = Math.max(0, cameAt - dateOf(headers, cameAt));
	// Of several the first counts (RFC 9111 §5.1).
	const said = /^[ \t]*(\d{1,10})[ \t]*(?:,|$)/.exec(headers.get('age') ?? '');
	const value = said ? Number(said[1]) * 1000 : 0;
	return Math.max(apparent, value + Math.max(0, cameAt - askedAt));
}

/** Milliseconds since the origin made or last confirmed it. */
export function currentAge(head: CachedHead, now: number): number {
	return head.initialAge + Math.max(0, now - head.storedAt);
}

/** What a client says of the responses that it takes; times in milliseconds. */
export interface ClientWishes {
	readonly noCache: boolean;
	readonly noStore: boolean;
	readonly onlyIfCached: boolean;
	readonly maxAge: number | undefined;
	readonly minFresh: number;
	/** Infinity without a bound. */
	readonly maxStale: number;
}

/** Nothing is asked for. */
export const NO_WISHES: ClientWishes = {
	noCache: false,
	noStore: false,
	onlyIfCached: false,
	maxAge: undefined,
	minFresh: 0,
	maxStale: 0,
};

/** Reads `Cache-Control` of a request, or `Pragma` in its absence (RFC 9111 §5.2.1, §5.4). */
export function clientWishes(headers: HeaderList): ClientWishes {
	const text = headers.combined('cache-control');
	if (text === undefined) {
		const pragma = headers.combined('pragma');
		if (pragma === undefined || !/(?:^|,)[ \t]*no-cache[ \t]*(?:,|$)/i.test(pragma)) return NO_WISHES;
		return { ...NO_WISHES, noCache: true };
	}
	const directives = parseDirectives(text);
	const maxStale = directives.get('max-stale');
	return {
		noCache: directives.has('no-cache'),
		noStore: directives.has('no-store'),
		onlyIfCached: directives.has('only-if-cached'),
		maxAge: timeOf(directives, 'max-age'),
		minFresh: timeOf(directives, 'min-fresh') ?? 0,
		maxStale:
			maxStale === undefined ? 0 : maxStale === '' ? Number.POSITIVE_INFINITY : timeOf(directives, 'max-stale')!,
	};
}

/** What may be done with a stored response. `stale`: it is served while it is validated behind the client's back. */
export type Use = 'fresh' | 'stale' | 'validate';

/** Whether a response can answer nobody before its origin has confirmed it for the very request. */
export function isValidatedAlways(head: CachedHead): boolean {
	return head.noCache || head.lifetime + head.staleWhileRevalidate === 0;
}

/** Whether a stored response answers a request (RFC 9111 §4). */
export function useOf(head: CachedHead, wishes: ClientWishes, now: number): Use {
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

/** Whether a stale response may be served because its origin fails (RFC 9111 §4.2.4, RFC 5861 §4). */
export function usableOnError(head: CachedHead, now: number): boolean {
	if (head.mustRevalidate || head.noCache) return false;
	const stale = currentAge(head, now) - head.lifetime;
	return stale <= head.staleIfError;
}
