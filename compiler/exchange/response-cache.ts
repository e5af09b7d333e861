/** The store of a response cache as handlers see it: the compiler declares it, the runtime shares one among all threads. */
import type { Body } from './body.ts';

/** What is kept of a response beside its body: plain data, which travels between threads as JSON. Times in milliseconds. */
export interface CachedHead {
	/** The whole primary key; two keys with one hash are told apart by it. */
	readonly key: string;
	/** The URL as clients ask for it, which purging and invalidation go by: `host[:port]` in lower case, then path and query. */
	readonly host: string;
	readonly path: string;
	readonly query?: string | undefined;
	readonly status: number;
	/** Names and values, one after the other, without those that belong to a connection. */
	readonly fields: readonly string[];
	/** Fields that the response had before the handlers behind the cache ran, and of those what they took away (lower case). */
	readonly before: readonly string[];
	readonly removed: readonly string[];
	/** Names (lower case) and values, one after the other, of the request fields that select this response. */
	readonly selecting: readonly string[];
	/** When the response had come, milliseconds since 1970, and how old it was then (RFC 9111 §4.2.3). */
	readonly storedAt: number;
	readonly initialAge: number;
	readonly lifetime: number;
	readonly staleWhileRevalidate: number;
	readonly staleIfError: number;
	/** Never served stale. */
	readonly mustRevalidate: boolean;
	/** Never served without asking. */
	readonly noCache: boolean;
	readonly etag?: string | undefined;
	/** Seconds since 1970. */
	readonly modified?: number | undefined;
	readonly tags: readonly string[];
	/** It was the answer to a request with `Authorization` or `Cookie`, which it is asked for with again behind clients' backs. */
	readonly credentials?: boolean;
}

/** A stored response. */
export interface CachedResponse {
	readonly head: CachedHead;
	/** Bytes of the body. */
	readonly length: number;
}

/** A response on its way into the store. */
export interface CacheWriter {
	/** False when it cannot be kept: it is given up then. */
	write(bytes: Uint8Array): boolean;
	/** The body is whole: every thread sees the response from now on. False when it was purged while it came. */
	commit(): boolean;
	/** Gives it up. Safe after either. */
	abandon(): void;
}

/** Whose turn it is to ask for what is not in the cache. */
export interface FetchTicket {
	/** Undefined: it is this request's. Otherwise it resolves once the one under way has ended, or the time is over. */
	readonly ended: Promise<void> | undefined;
	/** This request's fetch has ended. Safe to call twice: the first counts. */
	done(outcome: FetchOutcome): void;
}

/** What a fetch was for those who waited: a stored response; one that answers nobody else unasked, so that waiting is of no use; nothing. */
export type FetchOutcome = 'stored' | 'private' | 'failed';

/** What is counted. */
export const CACHE_EVENTS = ['hit', 'miss', 'stale', 'bypass', 'revalidated', 'collapsed', 'store'] as const;

/** One of {@link CACHE_EVENTS}. */
export type CacheEvent = (typeof CACHE_EVENTS)[number];

/** Responses of the whole process; nothing waits. */
export interface ResponseCache {
	/** Bytes of the longest body that is taken. */
	readonly largest: number;
	/** What is stored under a key, in no order. */
	find(key: string): readonly CachedResponse[];
	/** Where more may be on disk: resolves once that can be found. */
	recall(key: string): Promise<void> | undefined;
	/** The bytes from `start` up to but not including `end`; undefined when the response is gone by now. */
	body(response: CachedResponse, start: number, end: number): Body | undefined;
	/** Keeps a response where it is until the returned function is called; undefined when it is gone. */
	hold(response: CachedResponse): (() => void) | undefined;
	/** Number that changes whenever what is stored of a URL may have been purged or invalidated. */
	moment(host: string, path: string, query: string | undefined): number;
	/**
	 * Begins to store; undefined when it is not taken. `length` is that of the body where it is known, `most` a bound of it.
	 * `since` is the moment of its URL at which it was asked for: what is older than a purge is not taken.
	 */
	store(head: CachedHead, length: number | undefined, most: number, since: number): CacheWriter | undefined;
	/** Gives a stored response another head: it has been validated. The response as it is now. */
	refresh(response: CachedResponse, head: CachedHead): CachedResponse;
	remove(response: CachedResponse): void;
	/** Removes what is stored of one URL, whatever its key; a promise where that is written down. */
	invalidate(host: string, path: string, query: string | undefined): void | Promise<void>;
	/** Asks for the turn to fetch what a key stands for; waits `patience` milliseconds at most. */
	turn(key: string, patience: number): FetchTicket;
	count(event: CacheEvent): void;
}

/** Settings of a store: its key. */
export interface CacheSettings {
	/** Bytes of memory, bodies and what is kept about them together. */
	readonly ceiling: number;
	/** Where the store is a directive's own: what tells it from others. */
	readonly own?: string;
	/** A folder behind the memory, and the bytes of its files at most. */
	readonly disk?: { readonly folder: string; readonly size: number };
}
