/** Messages from worker threads to the main thread about the tier of a cache that the machines of a cluster share. */
import type { ClusterIntent, FetchOutcome, RequestedUrl } from '../../compiler/exchange/response-cache.ts';

/** What a thread asks the main thread after a request has missed the cache of this machine. See `ClusterTier.consult`. */
export interface ClusterConsultation {
	readonly key: string;
	readonly url: RequestedUrl;
	readonly intent: ClusterIntent;
	readonly knownVersions: readonly string[];
	/** Index of the thread that sends the request. */
	readonly thread: number;
}

/** The result of a fetch for which a thread had a lease. */
export interface FetchResult {
	readonly leaseId: number;
	readonly outcome: FetchOutcome;
	/** The entry of the shared memory with the response; undefined if it was not stored. */
	readonly stored: { readonly entry: number; readonly serial: number } | undefined;
}
