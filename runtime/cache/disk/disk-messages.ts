/**
 * Messages from worker threads to the main thread about a cache's storage on disk and in the cluster: events, and requests, which
 * get a reply.
 */

/** A change of stored responses that a thread reports. */
export type DiskEvent =
	/** A response was stored in an entry of the shared memory, or revalidated there. */
	| { readonly event: 'stored'; readonly key: string; readonly entry: number; readonly serial: number }
	/** The responses of a key are no longer valid in any tier. */
	| { readonly event: 'removed'; readonly key: string };

/** A request to the main thread. The reply confirms that it has been carried out. */
export type DiskRequest =
	/** Loads the responses of a key from disk into memory. */
	| { readonly request: 'recall'; readonly key: string }
	/** Removes the responses of a URL from all tiers. */
	| {
			readonly request: 'invalidate';
			readonly host: string;
			readonly path: string;
			readonly query: string | undefined;
	  };
