/** How a thread announces a series of its metrics to the main thread. */

/** A series of numbers in a page of a thread. */
export interface SeriesAnnouncement {
	readonly family: string;
	readonly labels: { readonly [name: string]: string };
	/** Index of the page among the pages that this thread has announced. */
	readonly page: number;
	/** Index of the first Float64 slot in the page. */
	readonly slot: number;
}
