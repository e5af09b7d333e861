/**
 * One thread's labeled series, in pages of shared memory. The thread allocates the pages and announces each one, and each new
 * series, to the main thread.
 */
import type { SeriesAnnouncement } from './series-announcement.ts';

/** Number of Float64 slots per page. */
const SLOTS_PER_PAGE = 4096;

/** Where a series is stored: `page[slot]` is its first number. */
export interface SeriesPlace {
	readonly page: Float64Array;
	readonly slot: number;
}

/** Allocates series. Only this thread writes their numbers; the main thread reads them. */
export class SeriesPages {
	readonly #announcePage: (buffer: SharedArrayBuffer) => void;
	readonly #announceSeries: (series: SeriesAnnouncement) => void;
	#currentPage: Float64Array | undefined;
	#pageCount = 0;
	#nextSlot = 0;

	constructor(announcePage: (buffer: SharedArrayBuffer) => void, announceSeries: (series: SeriesAnnouncement) => void) {
		this.#announcePage = announcePage;
		this.#announceSeries = announceSeries;
	}

	/** Allocates a series of `slotCount` numbers, all 0. */
	allocate(family: string, labels: { readonly [name: string]: string }, slotCount: number): SeriesPlace {
		if (!this.#currentPage || this.#nextSlot + slotCount > SLOTS_PER_PAGE) {
			const buffer = new SharedArrayBuffer(SLOTS_PER_PAGE * Float64Array.BYTES_PER_ELEMENT);
			this.#currentPage = new Float64Array(buffer);
			this.#pageCount++;
			this.#nextSlot = 0;
			this.#announcePage(buffer);
		}
		const place = { page: this.#currentPage, slot: this.#nextSlot };
		this.#nextSlot += slotCount;
		this.#announceSeries({ family, labels, page: this.#pageCount - 1, slot: place.slot });
		return place;
	}
}
