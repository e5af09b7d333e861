/** What request threads tell and ask the main thread about the disk tier of a cache. */

/** What is told. */
export type DiskNews =
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
