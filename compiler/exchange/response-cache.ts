/** The response cache as handlers see it. The runtime shares one store among all threads. */
import type { Body } from './body.ts';

/** The stored metadata of a response. It is plain data, passed between threads as JSON. Times are in milliseconds. */
export interface CachedHead {
	/** The complete primary key, which distinguishes keys with equal hashes. */
	readonly key: string;
	/** The URL that clients requested, for purging and invalidation: `host[:port]` in lower case, then path and query. */
	readonly host: string;
	readonly path: string;
	readonly query?: string | undefined;
	readonly status: number;
	/** Alternating names and values, without hop-by-hop fields. */
	readonly fields: readonly string[];
	/** Response fields that were already set when the handlers after the cache were called. */
	readonly before: readonly string[];
	/** Lower-case names of the fields in `before` that the handlers after the cache removed. */
	readonly removed: readonly string[];
	/** Alternating names (lower case) and values of the request fields that select this response. */
	readonly selecting: readonly string[];
	/** When the response arrived, in milliseconds since 1970. */
	readonly storedAt: number;
	/** The response's age when it arrived (RFC 9111 §4.2.3). */
	readonly initialAge: number;
	readonly lifetime: number;
	readonly staleWhileRevalidate: number;
	readonly staleIfError: number;
	/** If true, the response must never be served stale. */
	readonly mustRevalidate: boolean;
	/** If true, the response must be validated before each use. */
	readonly noCache: boolean;
	readonly etag?: string | undefined;
	/** Time of last modification, in seconds since 1970. */
	readonly modified?: number | undefined;
	readonly tags: readonly string[];
	/** True if the request had `Authorization` or `Cookie`, which background revalidation has to send again. */
	readonly credentials?: boolean;
}

/** A stored response. */
export interface CachedResponse {
	readonly head: CachedHead;
	/** Length of the body in bytes. */
	readonly length: number;
}

/** A response that is being stored. */
export interface CacheWriter {
	/** Appends to the body. Returns false if the response cannot be stored; it is then abandoned. */
	write(bytes: Uint8Array): boolean;
	/** Completes the body, so that all threads see the response. Returns false if it was purged in the meantime. */
	commit(): boolean;
	/** Abandons the response. Safe to call twice, and after `commit`. */
	abandon(): void;
}

/** A request's role in coalescing: either it fetches a missing response, or it waits for the request that does. */
export interface FetchTicket {
	/**
	 * Undefined for the leader, which fetches. Otherwise, resolves when the leader's fetch has ended or the maximum wait is over.
	 */
	readonly ended: Promise<void> | undefined;
	/** Ends this request's fetch. Safe to call twice; only the first call counts. */
	done(outcome: FetchOutcome): void;
}

/**
 * The result of a fetch, for the requests that wait for it. `stored`: the response is in the cache. `private`: the response
 * serves only this request, so waiting is pointless. `failed`: there is no response.
 */
export type FetchOutcome = 'stored' | 'private' | 'failed';

/** The events that the cache counts. */
export const CACHE_EVENTS = ['hit', 'miss', 'stale', 'bypass', 'revalidated', 'collapsed', 'store'] as const;

export type CacheEvent = (typeof CACHE_EVENTS)[number];

/** The response cache of the whole process. Operations do not block. */
export interface ResponseCache {
	/** Maximum number of bytes of a stored body. */
	readonly maxBodyBytes: number;
	/** Returns the responses stored under a key, in no particular order. */
	find(key: string): readonly CachedResponse[];
	/** Returns a promise if more responses may be on disk. After it resolves, `find` returns them. */
	loadFromDisk(key: string): Promise<void> | undefined;
	/** Returns the bytes from `start` up to, but not including, `end`; undefined if the response has been evicted. */
	body(response: CachedResponse, start: number, end: number): Body | undefined;
	/** Pins a response until the returned function is called; undefined if it has been evicted. */
	pin(response: CachedResponse): (() => void) | undefined;
	/** Returns the epoch of a URL, which changes whenever its stored responses may have been purged or invalidated. */
	urlEpoch(host: string, path: string, query: string | undefined): number;
	/**
	 * Starts storing a response; returns undefined if it is not accepted. `length` is the length of the body, if known;
	 * `maxBodyBytes` is its limit. `epoch` is the epoch of the URL when it was requested: responses requested before a purge are not
	 * accepted.
	 */
	store(head: CachedHead, length: number | undefined, maxBodyBytes: number, epoch: number): CacheWriter | undefined;
	/** Replaces the head of a response after validation. Returns the updated response. */
	refresh(response: CachedResponse, head: CachedHead): CachedResponse;
	remove(response: CachedResponse): void;
	/** Removes all responses for one URL, whatever their keys. Returns a promise if this must be recorded on disk. */
	invalidate(host: string, path: string, query: string | undefined): void | Promise<void>;
	/** Joins request coalescing for a key. A request that is not the leader waits at most `maxWaitMs` milliseconds. */
	joinFetch(key: string, maxWaitMs: number): FetchTicket;
	countEvent(event: CacheEvent): void;
}

/** Settings of a store. They are the key of its lease. */
export interface CacheSettings {
	/** Maximum number of bytes of memory, for bodies and metadata together. */
	readonly ceiling: number;
	/** Identifies a store that belongs to a single directive. */
	readonly own?: string;
	/** A folder on disk, and the maximum size of its files in bytes. */
	readonly disk?: { readonly folder: string; readonly size: number };
}
