/** What all data-plane threads have counted: live rows and pages, and what is left of threads that have died. */
import type { SeriesAnnouncement } from '../threads/messages.ts';
import { createCounterRow, ROW_GAUGES, ROW_SLOTS } from './counter-row.ts';
import { SERIES_FAMILIES, type SeriesFamily, seriesSlots } from './families.ts';

/** A labelled series summed over threads. */
export interface SummedSeries {
	readonly labels: { readonly [name: string]: string };
	readonly values: number[];
}

interface ThreadPages {
	readonly row: Float64Array;
	readonly pages: Float64Array[];
	readonly series: SeriesAnnouncement[];
}

const FAMILIES: ReadonlyMap<string, SeriesFamily> = new Map(SERIES_FAMILIES.map(family => [family.name, family]));

/** Collects the counters of threads. Reading races with counting by at most one increment. */
export class ThreadTotals {
	readonly #threads = new Map<number, ThreadPages>();
	readonly #deadRow = new Float64Array(ROW_SLOTS);
	readonly #deadSeries = new Map<string, Map<string, SummedSeries>>();

	/** The row for a thread that starts at this index. */
	begin(index: number): SharedArrayBuffer {
		const buffer = createCounterRow();
		this.#threads.set(index, { row: new Float64Array(buffer), pages: [], series: [] });
		return buffer;
	}

	addPage(index: number, buffer: SharedArrayBuffer): void {
		this.#threads.get(index)?.pages.push(new Float64Array(buffer));
	}

	addSeries(index: number, series: SeriesAnnouncement): void {
		this.#threads.get(index)?.series.push(series);
	}

	/** The thread has died: its gauges are gone, its counters stay. */
	end(index: number): void {
		const thread = this.#threads.get(index);
		if (!thread) return;
		this.#threads.delete(index);
		for (let slot = 0; slot < ROW_SLOTS; slot++) {
			if (!ROW_GAUGES.includes(slot)) this.#deadRow[slot]! += thread.row[slot]!;
		}
		for (const { family } of thread.series) {
			if (FAMILIES.get(family)?.type === 'gauge' || this.#deadSeries.has(family)) continue;
			this.#deadSeries.set(family, new Map());
		}
		for (const [family, into] of this.#deadSeries) addSeries(thread, family, into);
	}

	/** Sum of a slot of the rows (see ROW). */
	total(slot: number): number {
		let sum = this.#deadRow[slot]!;
		for (const thread of this.#threads.values()) sum += thread.row[slot]!;
		return sum;
	}

	/** The series of a family, summed over threads. */
	series(family: string): SummedSeries[] {
		const sums = new Map<string, SummedSeries>();
		for (const [key, { labels, values }] of this.#deadSeries.get(family) ?? []) {
			sums.set(key, { labels, values: values.slice() });
		}
		for (const thread of this.#threads.values()) addSeries(thread, family, sums);
		return [...sums.values()];
	}
}

function addSeries(thread: ThreadPages, family: string, into: Map<string, SummedSeries>): void {
	const definition = FAMILIES.get(family);
	if (!definition) return;
	const slots = seriesSlots(definition);
	for (const series of thread.series) {
		const page = thread.pages[series.page];
		if (series.family !== family || !page) continue;
		const key = JSON.stringify(series.labels);
		let sum = into.get(key);
		if (!sum) {
			sum = { labels: series.labels, values: new Array<number>(slots).fill(0) };
			into.set(key, sum);
		}
		for (let i = 0; i < slots; i++) sum.values[i]! += page[series.slot + i]!;
	}
}
