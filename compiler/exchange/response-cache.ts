/** The response cache as handlers use it. The runtime shares one store among all threads. */
import type { Body } from './body.ts';

/** The stored metadata of a response. It is plain data, which threads exchange as JSON. Durations are in milliseconds. */
export interface CachedHead {
	/** The complete cache key. It distinguishes responses whose keys have equal hashes. */
	readonly key: string;
	/** Host of the URL that clients requested, for purging and invalidation: `host[:port]` in lower case. */
	readonly host: string;
	readonly path: string;
	readonly query?: string | undefined;
	readonly status: number;
	/** Response fields as alternating names and values, without hop-by-hop fields. */
	readonly fields: readonly string[];
	/** Response fields that were set before the cache called later handlers, as alternating names and values. */
	readonly before: readonly string[];
	/** Lower-case names of the fields in `before` that later handlers removed or replaced. */
	readonly removed: readonly string[];
	/** The request fields that select this response (those named by `Vary`), as alternating lower-case names and values. */
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

export interface CachedResponse {
	readonly head: CachedHead;
	/** Length of the body in bytes. */
	readonly length: number;
}

/** Stores a response while it arrives. */
export interface CacheWriter {
	/** Appends to the body. Returns false if the response cannot be stored; it is then abandoned. */
	write(bytes: Uint8Array): boolean;
	/** Completes the response, so that all threads can use it. Returns false if it was purged in the meantime. */
	commit(): boolean;
	/** Abandons the response. May be called twice, and after `commit`. */
	abandon(): void;
}

/** The role of a request in coalescing: it either fetches a missing response or waits for the request that does. */
export interface FetchTicket {
	/**
	 * Undefined for the leader, which fetches the response. For the others, resolves when the leader's fetch has ended or the
	 * maximum wait is over.
	 */
	readonly ended: Promise<void> | undefined;
	/** Ends the fetch of this request with an outcome. Later calls have no effect. */
	done(outcome: FetchOutcome): void;
	/**
	 * The ID of the lease that the cluster granted to this fetch, if any. A lease lets one machine fetch a response for all of
	 * them.
	 */
	readonly leaseId?: number | undefined;
}

/**
 * The outcome of a fetch, for the requests that wait for it. `stored`: the response is in the cache. `private`: the response cannot
 * be shared, so that waiting is pointless. `failed`: there is no response.
 */
export type FetchOutcome = 'stored' | 'private' | 'failed';

export interface RequestedUrl {
	/** `host[:port]` in lower case. */
	readonly host: string;
	readonly path: string;
	readonly query: string | undefined;
}

/**
 * What a request asks the cluster for after it has missed its own machine's cache. `load`: only stored responses. `lead`: stored
 * responses and the lease, which lets one machine fetch the response for all. `join`: the same as `lead`, but waits while another
 * machine has the lease. `reload`: only the lease.
 */
export type ClusterIntent = 'load' | 'join' | 'lead' | 'reload';

/**
 * What a request that has missed the cache of its machine does next.
 *
 * `loaded`: responses that other machines had stored were loaded into this cache; `versions` identifies them and the responses
 * already known. `lead`: this request fetches the response for all machines, with the lease `lease`. `busy`: another machine is
 * fetching the response. `private`: the response is not the same for all clients, so that waiting for another fetch is pointless.
 * `alone`: the cluster has no response, or is unavailable, and the request is not coalesced with those of other machines.
 */
export type ClusterAnswer =
	| { readonly outcome: 'loaded'; readonly versions: readonly string[] }
	| { readonly outcome: 'lead'; readonly leaseId: number }
	| { readonly outcome: 'busy' | 'private' | 'alone' };

/** The part of a cache that the machines of a cluster share. */
export interface ClusterTier {
	/**
	 * Tells a request what to do next. Never rejects. `knownVersions` identifies the responses in the cluster that the request
	 * cannot use.
	 */
	consult(
		key: string,
		url: RequestedUrl,
		intent: ClusterIntent,
		knownVersions: readonly string[],
	): Promise<ClusterAnswer>;
	/** Returns a ticket whose `done` also ends a lease. A response that is stored with it is stored in the cluster as well. */
	ticketWithLease(ticket: FetchTicket | undefined, leaseId: number): FetchTicket;
}

/** The events that the cache counts. */
export const CACHE_EVENTS = ['hit', 'miss', 'stale', 'bypass', 'revalidated', 'collapsed', 'store'] as const;

export type CacheEvent = (typeof CACHE_EVENTS)[number];

/** The response cache of the whole process. Operations do not block. */
export interface ResponseCache {
	/** Maximum bytes of the body of a stored response. */
	readonly maxBodyBytes: number;
	/** The part of the cache that the cluster shares; undefined if there is none. */
	readonly clusterTier?: ClusterTier | undefined;
	/** Returns the responses stored under a key, in no particular order. */
	find(key: string): readonly CachedResponse[];
	/** Returns a promise if more responses may be on disk. After it resolves, `find` returns them. */
	loadFromDisk(key: string): Promise<void> | undefined;
	/** Returns the bytes from `start` up to, but not including, `end`; undefined if the response has been evicted. */
	body(response: CachedResponse, start: number, end: number): Body | undefined;
	/** Pins a response in the cache until the returned function is called. Returns undefined if the response has been evicted. */
	pin(response: CachedResponse): (() => void) | undefined;
	/**
	 * Returns the epoch of a URL, a number that changes whenever stored responses for the URL may have been purged or invalidated.
	 */
	urlEpoch(host: string, path: string, query: string | undefined): number;
	/**
	 * Starts storing a response. Returns undefined if it is not accepted. `length` is the length of the body, if known, and
	 * `maxBodyBytes` its maximum. `epoch` is the epoch of the URL when the response was requested: a response that was requested
	 * before a purge is not accepted. `leaseId` is the `leaseId` of the ticket with which the response was fetched.
	 */
	store(
		head: CachedHead,
		length: number | undefined,
		maxBodyBytes: number,
		epoch: number,
		leaseId?: number,
	): CacheWriter | undefined;
	/** Replaces the head of a response after validation. Returns the updated response. */
	refresh(response: CachedResponse, head: CachedHead, leaseId?: number): CachedResponse;
	remove(response: CachedResponse): void;
	/**
	 * Removes all responses for a URL, whatever their keys. Returns a promise if the removal must be recorded on disk or in the
	 * cluster.
	 */
	invalidate(host: string, path: string, query: string | undefined): void | Promise<void>;
	/**
	 * Joins the requests for a key that are coalesced. A request that is not the leader waits for at most `maxWaitMs` milliseconds.
	 */
	joinFetch(key: string, maxWaitMs: number): FetchTicket;
	countEvent(event: CacheEvent): void;
}

/** Settings of a store, by which its lease is identified. */
export interface CacheSettings {
	/** Maximum number of bytes of memory, for bodies and metadata together. */
	readonly ceiling: number;
	/** Identifies a store that a single directive uses; undefined for the shared store. */
	readonly own?: string;
	/** A folder on disk, and the maximum size of its files in bytes. */
	readonly disk?: { readonly folder: string; readonly size: number };
	/** Present if the machines of the cluster share the responses. */
	readonly shared?: ClusterTierSettings;
}

/** How the machines of a cluster share responses. */
export interface ClusterTierSettings {
	/** Maximum bytes of a response, including its head. */
	readonly maxBytes: number;
	/** Maximum milliseconds for which Redis keeps a response. */
	readonly keepMs: number;
	/** Maximum milliseconds that a request waits while another machine fetches the response. */
	readonly waitMs: number;
}
