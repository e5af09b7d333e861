/** How a thread tells the main thread about a new series of its metrics. */

/** The labels of a new series, and where the thread stores its numbers; see series-pages.ts. */
export interface SeriesAnnouncement {
	readonly family: string;
	readonly labels: { readonly [name: string]: string };
	/** Index of the page among the pages that this thread has announced. */
	readonly page: number;
	/** Index of the first Float64 slot in the page. */
	readonly slot: number;
}
