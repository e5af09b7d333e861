/** The store of a response cache as seen by handlers; the runtime shares one among all threads. */
import type { Body } from './body.ts';

/** The stored metadata of a response: plain data that is passed between threads as JSON. Times in milliseconds. */
export interface CachedHead {
	/** The whole primary key, which distinguishes keys with equal hashes. */
	readonly key: string;
	/** The URL as requested by clients, for purging and invalidation: `host[:port]` in lower case, then path and query. */
	readonly host: string;
	readonly path: string;
	readonly query?: string | undefined;
	readonly status: number;
	/** Alternating names and values, without hop-by-hop fields. */
	readonly fields: readonly string[];
	/**
	 * Fields that the response had before the handlers after the cache ran, and the names (lower case) of those that they
	 * removed.
	 */
	readonly before: readonly string[];
	readonly removed: readonly string[];
	/** Alternating names (lower case) and values of the request fields that select this response. */
	readonly selecting: readonly string[];
	/** When the response arrived, in milliseconds since 1970, and its age then (RFC 9111 §4.2.3). */
	readonly storedAt: number;
	readonly initialAge: number;
	readonly lifetime: number;
	readonly staleWhileRevalidate: number;
	readonly staleIfError: number;
	/** Must never be served stale. */
	readonly mustRevalidate: boolean;
	/** Must be validated before each use. */
	readonly noCache: boolean;
	readonly etag?: string | undefined;
	/** Seconds since 1970. */
	readonly modified?: number | undefined;
	readonly tags: readonly string[];
	/** True for a response to a request with `Authorization` or `Cookie`, which background revalidation sends again. */
	readonly credentials?: boolean;
}

/** A stored response. */
export interface CachedResponse {
	readonly head: CachedHead;
	/** Bytes of the body. */
	readonly length: number;
}

/** A response being stored. */
export interface CacheWriter {
	/** Returns false if it cannot be stored, which abandons it. */
	write(bytes: Uint8Array): boolean;
	/** Completes the body: all threads see the response from now on. Returns false if it was purged in the meantime. */
	commit(): boolean;
	/** Abandons the response. Safe to call after `commit` and twice. */
	abandon(): void;
}

/** A place in the coalescing of requests for a response that is not in the cache. */
export interface FetchTicket {
	/** Undefined for the leader, which fetches. Otherwise resolves when the leader's fetch has ended or the time is over. */
	readonly ended: Promise<void> | undefined;
	/** Ends this request's fetch. Safe to call twice: the first call counts. */
	done(outcome: FetchOutcome): void;
}

/**
 * The result of a fetch for waiting requests: a stored response; a response for this request only, so that waiting is
 * pointless; or a failure.
 */
export type FetchOutcome = 'stored' | 'private' | 'failed';

/** Counted events. */
export const CACHE_EVENTS = ['hit', 'miss', 'stale', 'bypass', 'revalidated', 'collapsed', 'store'] as const;

export type CacheEvent = (typeof CACHE_EVENTS)[number];

/** The response cache of the whole process; operations do not block. */
export interface ResponseCache {
	/** Maximum bytes of a stored body. */
	readonly largest: number;
	/** Returns the responses stored under a key, in no particular order. */
	find(key: string): readonly CachedResponse[];
	/** If there may be more on disk, returns a promise that resolves once `find` returns it. */
	recall(key: string): Promise<void> | undefined;
	/** Returns the bytes from `start` up to, but not including, `end`; undefined if the response has been evicted. */
	body(response: CachedResponse, start: number, end: number): Body | undefined;
	/** Pins a response until the returned function is called; undefined if it has been evicted. */
	hold(response: CachedResponse): (() => void) | undefined;
	/** Returns the epoch of a URL, which changes whenever its stored responses may have been purged or invalidated. */
	moment(host: string, path: string, query: string | undefined): number;
	/**
	 * Starts storing a response; undefined if it is not accepted. `length` is the body's length, if known; `most` is its limit.
	 * `since` is the epoch of its URL when it was requested: responses older than a purge are not accepted.
	 */
	store(head: CachedHead, length: number | undefined, most: number, since: number): CacheWriter | undefined;
	/** Replaces the head of a response after validation. Returns the updated response. */
	refresh(response: CachedResponse, head: CachedHead): CachedResponse;
	remove(response: CachedResponse): void;
	/** Removes all responses of one URL, whatever their keys; returns a promise if that must be recorded on disk. */
	invalidate(host: string, path: string, query: string | undefined): void | Promise<void>;
	/** Joins the coalescing of fetches for a key; waits at most `patience` milliseconds. */
	turn(key: string, patience: number): FetchTicket;
	count(event: CacheEvent): void;
}

/** Settings of a store, which are the key of its lease. */
export interface CacheSettings {
	/** Bytes of memory, for bodies and metadata together. */
	readonly ceiling: number;
	/** Identifies the store of a single directive. */
	readonly own?: string;
	/** A folder on disk, and the maximum bytes of its files. */
	readonly disk?: { readonly folder: string; readonly size: number };
}
