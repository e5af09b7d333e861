/** Metric families of {@link ThreadVitals}, with a label for the thread. */
import type { HistogramFamily, MetricLabels, MetricSample, PlainFamily } from './exposition.ts';
import { GC_BUCKET_BOUNDS_SECONDS, type ThreadVitals, VITAL_GAUGES } from './thread-vitals.ts';

/** A thread's vitals and its name, which is the value of a label: `main`, `compiler`, `worker-0`. */
export type NamedVitals = readonly [thread: string, vitals: ThreadVitals];

/** Returns the families about event-loop lag and the heap. `threads` is called at each scrape. */
export function vitalFamilies(threads: () => readonly NamedVitals[]): PlainFamily[] {
	const labels = new LabelCache();
	return VITAL_GAUGES.map(({ name, help, slot }) => {
		const samples = (): MetricSample[] => {
			const allSamples: MetricSample[] = [];
			for (const [thread, vitals] of threads()) {
				if (vitals.isPublished) allSamples.push({ labels: labels.intern({ thread }), value: vitals.gaugeValue(slot) });
			}
			return allSamples;
		};
		return { name, help, type: 'gauge', samples };
	});
}

/** Returns the family about garbage collection. `threads` is called at each scrape. */
export function garbageCollectionFamily(threads: () => readonly NamedVitals[]): HistogramFamily {
	const labels = new LabelCache();
	return {
		name: 'nodejs_gc_duration_seconds',
		help: 'Garbage collections of a thread by kind: major, minor, incremental or weakcb.',
		type: 'histogram',
		bounds: GC_BUCKET_BOUNDS_SECONDS,
		histograms: take => {
			for (const [thread, vitals] of threads()) {
				if (vitals.isPublished)
					vitals.forEachCollectionKind((kind, counts) => take(labels.intern({ thread, kind }), counts));
			}
		},
	};
}

/** Returns the same object for equal labels, because the exposition caches their text by object. */
class LabelCache {
	readonly #labelsByKey = new Map<string, MetricLabels>();

	intern(labels: MetricLabels): MetricLabels {
		const key = Object.values(labels).join();
		const cachedLabels = this.#labelsByKey.get(key);
		if (cachedLabels) return cachedLabels;
		this.#labelsByKey.set(key, labels);
		return labels;
	}
}
