/**
 * Event-loop lag, garbage collection and heap of one thread, in shared memory. The thread publishes them every second, so
 * that a scrape reads them without asking the thread, which may be busy or stuck.
 */
import { constants, type Histogram, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { observeWaits } from '../sockets/socket-poller.ts';
import { TurnDelays } from './turn-delays.ts';

const PUBLISH_INTERVAL_MS = 1000;

/** Upper bounds of the buckets for garbage collection pauses in seconds, without `+Inf`. prom-client uses the same bounds. */
export const GC_BUCKET_BOUNDS_SECONDS: readonly number[] = [0.001, 0.01, 0.1, 1, 2, 5];

const GC_KINDS = ['major', 'minor', 'incremental', 'weakcb'] as const;

/**
 * The values that are published as single numbers, with prom-client's metric names. `slot` is relative to the slot of the first
 * value.
 */
export const VITAL_GAUGES: readonly { readonly name: string; readonly help: string; readonly slot: number }[] = [
	['nodejs_eventloop_lag_seconds', 'Seconds by which the last timer of a thread was late.'],
	['nodejs_eventloop_lag_min_seconds', 'Shortest delay of the event loop since the previous scrape.'],
	['nodejs_eventloop_lag_max_seconds', 'Longest delay of the event loop since the previous scrape.'],
	['nodejs_eventloop_lag_mean_seconds', 'Mean delay of the event loop since the previous scrape.'],
	[
		'nodejs_eventloop_lag_stddev_seconds',
		'Standard deviation of the delays of the event loop since the previous scrape.',
	],
	['nodejs_eventloop_lag_p50_seconds', '50th percentile of the delays of the event loop since the previous scrape.'],
	['nodejs_eventloop_lag_p90_seconds', '90th percentile of the delays of the event loop since the previous scrape.'],
	['nodejs_eventloop_lag_p99_seconds', '99th percentile of the delays of the event loop since the previous scrape.'],
	['nodejs_heap_size_total_bytes', "Size of a thread's heap in bytes."],
	['nodejs_heap_size_used_bytes', "Used bytes of a thread's heap."],
	['nodejs_external_memory_bytes', "Bytes outside the heap that a thread's objects hold."],
].map(([name, help], slot) => ({ name: name!, help: help!, slot }));

/** Header slots, through which the scraper and the thread communicate. */
const [WANTED_SLOT, SCRAPES_SLOT, PUBLISHED_SLOT] = [0, 1, 2];
const FIRST_GAUGE_SLOT = 3;
const FIRST_GC_SLOT = FIRST_GAUGE_SLOT + VITAL_GAUGES.length;
/** Number of slots for each kind of garbage collection: its buckets, `+Inf`, and the sum. */
const GC_KIND_SLOTS = GC_BUCKET_BOUNDS_SECONDS.length + 2;
const SLOT_COUNT = FIRST_GC_SLOT + GC_KINDS.length * GC_KIND_SLOTS;

/** The vitals of one thread. Both the thread and the scraper use this class. */
export class ThreadVitals {
	/** Bytes of memory that {@link ThreadVitals} needs. */
	static readonly BYTES = SLOT_COUNT * Float64Array.BYTES_PER_ELEMENT;
	readonly #slots: Float64Array;
	#isRecording = false;

	constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(ThreadVitals.BYTES), offset = 0) {
		this.#slots = new Float64Array(memory, offset, SLOT_COUNT);
	}

	// Methods that the scraper calls.

	/** Asks the thread to start recording. The thread notices when it handles its next message. */
	requestRecording(): void {
		this.#slots[WANTED_SLOT] = 1;
	}

	/** True once the thread has published values for the first time. */
	get isPublished(): boolean {
		return this.#slots[PUBLISHED_SLOT] === 1;
	}

	/** Returns the value of one of {@link VITAL_GAUGES}. */
	gaugeValue(slot: number): number {
		return this.#slots[FIRST_GAUGE_SLOT + slot]!;
	}

	/** Calls `receive` for each kind of garbage collection with its bucket counts (not cumulative, `+Inf` last), then the sum. */
	forEachCollectionKind(receive: (kind: string, counts: Float64Array) => void): void {
		for (const [index, kind] of GC_KINDS.entries()) {
			const firstSlot = FIRST_GC_SLOT + index * GC_KIND_SLOTS;
			receive(kind, this.#slots.subarray(firstSlot, firstSlot + GC_KIND_SLOTS));
		}
	}

	/** Starts a new measuring period: after its next publication, the thread discards the event-loop delays recorded so far. */
	startPeriod(): void {
		this.#slots[SCRAPES_SLOT]!++;
	}

	// Methods that the measured thread calls.

	/** Starts recording if the scraper has asked for it. Must be called after each message from the main thread. */
	recordIfWanted(): void {
		if (this.#isRecording || this.#slots[WANTED_SLOT] !== 1) return;
		this.#isRecording = true;
		const turnDelays = new TurnDelays();
		observeWaits(turnDelays);
		turnDelays.start();
		const delays = turnDelays.histogram;
		const observer = new PerformanceObserver(list => {
			for (const entry of list.getEntries()) {
				const { kind } = (entry as unknown as { readonly detail: { readonly kind?: number } }).detail;
				this.#recordCollection(entry.duration / 1000, kind);
			}
		});
		observer.observe({ entryTypes: ['gc'] });
		let nextTickAt = performance.now() + PUBLISH_INTERVAL_MS;
		let lastScrapeCount = this.#slots[SCRAPES_SLOT]!;
		this.#publish(delays, 0);
		const onTick = (): void => {
			const now = performance.now();
			this.#publish(delays, Math.max(0, now - nextTickAt) / 1000);
			nextTickAt = now + PUBLISH_INTERVAL_MS;
			const scrapeCount = this.#slots[SCRAPES_SLOT]!;
			if (scrapeCount !== lastScrapeCount) delays.reset();
			lastScrapeCount = scrapeCount;
		};
		setInterval(onTick, PUBLISH_INTERVAL_MS).unref();
	}

	#recordCollection(seconds: number, kind: number | undefined): void {
		const kindName = gcKind(kind);
		if (kindName === undefined) return;
		const firstSlot = FIRST_GC_SLOT + GC_KINDS.indexOf(kindName) * GC_KIND_SLOTS;
		const bucket = GC_BUCKET_BOUNDS_SECONDS.findIndex(bound => seconds <= bound);
		this.#slots[firstSlot + (bucket < 0 ? GC_BUCKET_BOUNDS_SECONDS.length : bucket)]!++;
		this.#slots[firstSlot + GC_BUCKET_BOUNDS_SECONDS.length + 1]! += seconds;
	}

	#publish(delays: Histogram, lagSeconds: number): void {
		const { total_heap_size, used_heap_size, external_memory } = getHeapStatistics();
		// Without samples, the histogram reports a huge minimum and a mean of NaN.
		const isEmpty = delays.count === 0;
		const delayValues = isEmpty
			? [0, 0, 0, 0, 0, 0, 0]
			: [
					...[delays.min, delays.max, delays.mean, delays.stddev],
					...[delays.percentile(50), delays.percentile(90), delays.percentile(99)],
				];
		const gaugeValues = [lagSeconds, ...delayValues.map(nanoseconds => nanoseconds / 1e9)];
		this.#slots.set([...gaugeValues, total_heap_size, used_heap_size, external_memory], FIRST_GAUGE_SLOT);
		this.#slots[PUBLISHED_SLOT] = 1;
	}
}

/** Returns the kind of garbage collection for a numeric constant of Node; undefined if it is unknown. */
function gcKind(number: number | undefined): (typeof GC_KINDS)[number] | undefined {
	switch (number) {
		case constants.NODE_PERFORMANCE_GC_MAJOR:
			return 'major';
		case constants.NODE_PERFORMANCE_GC_MINOR:
			return 'minor';
		case constants.NODE_PERFORMANCE_GC_INCREMENTAL:
			return 'incremental';
		case constants.NODE_PERFORMANCE_GC_WEAKCB:
			return 'weakcb';
		default:
			return undefined;
	}
}
