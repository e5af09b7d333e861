/** What request threads tell and ask the main thread about the disk tier of a cache, and how it refuses. */

/** What is told. */
export type DiskEvent =
	/** A response was stored in an entry of the shared memory, or confirmed there. */
	| { readonly news: 'stored'; readonly key: string; readonly entry: number; readonly serial: number }
	/** What there is of a key does not hold any more. */
	| { readonly news: 'removed'; readonly key: string };

/** What is asked; the answer says that it is done. */
export type DiskErrand =
	/** Brings what there is of a key into memory. */
	| { readonly errand: 'recall'; readonly key: string }
	/** Takes away what there is of a URL. */
	| {
			readonly errand: 'invalidate';
			readonly host: string;
			readonly path: string;
			readonly query: string | undefined;
	  };

/** A purge is done in memory, but the disk could not be told: what was purged may come back after a restart. */
export class PurgeNotKept extends Error {
	constructor(cause: Error) {
		super(`It is purged from memory, but the disk of the cache could not be told: ${cause.message}`, { cause });
	}
}
