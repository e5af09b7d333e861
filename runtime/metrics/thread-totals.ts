/** Sums the worker threads' counters: the rows and pages of living threads, plus the final values of dead ones. */

import { counterRow, createCounterRow, GAUGE_SLOTS, ROW_LENGTH, threadVitalsIn } from './counter-row.ts';
import { SERIES_FAMILIES, type SeriesFamily, slotsPerSeries } from './families.ts';
import type { SeriesAnnouncement } from './series-announcement.ts';
import type { ThreadVitals } from './thread-vitals.ts';

export interface SeriesLabels {
	readonly [name: string]: string;
}

/** A series of one family, in all threads that have it. Each thread stores the numbers of the series in one place. */
interface TotalSeries {
	readonly labels: SeriesLabels;
	/** Where each thread stores the numbers. There are few threads, so an array is the fastest structure. */
	readonly places: { readonly thread: ThreadPages; readonly page: Float64Array; readonly slot: number }[];
	/** Sums of the final values of dead threads. */
	readonly deadTotals: Float64Array;
}

interface ThreadPages {
	readonly row: Float64Array;
	readonly vitals: ThreadVitals;
	readonly pages: Float64Array[];
}

const FAMILIES_BY_NAME: ReadonlyMap<string, SeriesFamily> = new Map(
	SERIES_FAMILIES.map(family => [family.name, family]),
);

/** Sums the counters of threads. A sum may lack an increment that a thread makes while the counters are read. */
export class ThreadTotals {
	readonly #threadsByIndex = new Map<number, ThreadPages>();
	#wantsVitals = false;
	/** Sums of the final counter rows of dead threads. */
	readonly #deadRowTotals = new Float64Array(ROW_LENGTH);
	/** Series by family, then by labels as JSON. */
	readonly #seriesByFamily = new Map<string, Map<string, TotalSeries>>();

	/** Allocates the counter row of a thread that starts with this index. */
	addThread(index: number): SharedArrayBuffer {
		const buffer = createCounterRow();
		const vitals = threadVitalsIn(buffer);
		if (this.#wantsVitals) vitals.requestRecording();
		this.#threadsByIndex.set(index, { row: counterRow(buffer), vitals, pages: [] });
		return buffer;
	}

	/** Asks all threads, including those that start later, to record their {@link ThreadVitals}. */
	requestVitals(): void {
		this.#wantsVitals = true;
		for (const { vitals } of this.#threadsByIndex.values()) vitals.requestRecording();
	}

	/** Returns the vitals of the threads, by index. */
	threadVitals(): readonly (readonly [index: number, vitals: ThreadVitals])[] {
		return [...this.#threadsByIndex].map(([index, { vitals }]) => [index, vitals]);
	}

	addPage(index: number, buffer: SharedArrayBuffer): void {
		this.#threadsByIndex.get(index)?.pages.push(new Float64Array(buffer));
	}

	addSeries(index: number, { family, labels, page, slot }: SeriesAnnouncement): void {
		const thread = this.#threadsByIndex.get(index);
		const seriesFamily = FAMILIES_BY_NAME.get(family);
		const pageSlots = thread?.pages[page];
		if (!thread || !seriesFamily || !pageSlots) return;
		let seriesOfFamily = this.#seriesByFamily.get(family);
		if (!seriesOfFamily) {
			seriesOfFamily = new Map();
			this.#seriesByFamily.set(family, seriesOfFamily);
		}
		const key = JSON.stringify(labels);
		let series = seriesOfFamily.get(key);
		if (!series) {
			series = { labels, places: [], deadTotals: new Float64Array(slotsPerSeries(seriesFamily)) };
			seriesOfFamily.set(key, series);
		}
		series.places.push({ thread, page: pageSlots, slot });
	}

	/** Records that a thread has died. Its gauges disappear, and its counters are kept. */
	removeThread(index: number): void {
		const thread = this.#threadsByIndex.get(index);
		if (!thread) return;
		this.#threadsByIndex.delete(index);
		for (let slot = 0; slot < ROW_LENGTH; slot++) {
			if (!GAUGE_SLOTS.includes(slot)) this.#deadRowTotals[slot]! += thread.row[slot]!;
		}
		for (const [family, seriesOfFamily] of this.#seriesByFamily) {
			const isGauge = FAMILIES_BY_NAME.get(family)?.type === 'gauge';
			for (const [key, { places, deadTotals }] of seriesOfFamily) {
				for (let placeIndex = places.length - 1; placeIndex >= 0; placeIndex--) {
					const place = places[placeIndex]!;
					if (place.thread !== thread) continue;
					places.splice(placeIndex, 1);
					if (isGauge) continue;
					for (let i = 0; i < deadTotals.length; i++) deadTotals[i]! += place.page[place.slot + i]!;
				}
				if (isGauge && places.length === 0) seriesOfFamily.delete(key);
			}
		}
	}

	/** Returns the sum of a slot over all rows (see counter-row.ts). */
	slotTotal(slot: number): number {
		let sum = this.#deadRowTotals[slot]!;
		for (const thread of this.#threadsByIndex.values()) sum += thread.row[slot]!;
		return sum;
	}

	/**
	 * Calls `receive` with each series of a family, summed over threads. A series passes the same `labels` object every time. Its
	 * `values` are valid only during the call.
	 */
	forEachSeries(family: string, receive: (labels: SeriesLabels, values: Float64Array) => void): void {
		let sums: Float64Array | undefined;
		for (const { labels, places, deadTotals } of this.#seriesByFamily.get(family)?.values() ?? []) {
			sums ??= new Float64Array(deadTotals.length);
			sums.set(deadTotals);
			for (const { page, slot } of places) {
				for (let i = 0; i < sums.length; i++) sums[i]! += page[slot + i]!;
			}
			receive(labels, sums);
		}
	}
}
