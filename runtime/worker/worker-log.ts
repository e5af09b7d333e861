/**
 * What a worker thread logs: process log entries, access log lines and spans, on their way to the main thread. Whatever would fill the
 * main thread's memory is dropped and counted.
 */
import type { AccessPort, BatchPort } from '../logs/access-batch.ts';
import { LOG_ENTRY_WEIGHT, type LogEntry } from '../logs/log-entry.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { CONTROL_LOG_IN_TRANSIT, MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import type { MessageFromWorker } from './worker-messages.ts';

/** Milliseconds between two reports of dropped access log entries. */
const DROP_REPORT_INTERVAL_MS = 1000;

/** The logs of one thread. */
export class WorkerLog {
	/** The destination of spans. */
	readonly spanPort: BatchPort;
	readonly #controlWords: Int32Array;
	/** Index of the number of this thread's characters in transit. */
	readonly #transitSlot: number;
	readonly #counters: Float64Array;
	readonly #sendMessage: (message: MessageFromWorker) => void;
	/** Number of dropped access log entries that have not been reported to the main thread yet, by log writer. */
	readonly #droppedEntries = new Map<string, number>();
	#nextDropReportAt = 0;

	/**
	 * @param index Index of the thread's row in shared memory.
	 * @param controlWords The values that all threads share; see control-words.ts.
	 * @param counters The thread's row of counters; see counter-row.ts.
	 */
	constructor(
		index: number,
		controlWords: Int32Array,
		counters: Float64Array,
		sendMessage: (message: MessageFromWorker) => void,
	) {
		this.#controlWords = controlWords;
		this.#transitSlot = CONTROL_LOG_IN_TRANSIT + index;
		this.#counters = counters;
		this.#sendMessage = sendMessage;
		this.spanPort = {
			postText: (text, spans) => sendMessage({ type: 'spans', text, spans }),
			reportDropped: spans => {
				counters[ROW_SLOT.spansDropped]! += spans;
			},
			charsInTransit: controlWords,
			charsInTransitSlot: this.#transitSlot,
		};
	}

	/** Sends an entry of the process log. */
	log(entry: LogEntry): void {
		// A flood of errors must not fill the main thread's memory.
		if (Atomics.load(this.#controlWords, this.#transitSlot) > MAX_LOG_IN_TRANSIT_CHARS) {
			this.#counters[ROW_SLOT.processLogDropped]!++;
			return;
		}
		Atomics.add(this.#controlWords, this.#transitSlot, LOG_ENTRY_WEIGHT);
		this.#sendMessage({ type: 'log', entry });
	}

	/** Returns the destination of the access log lines of one writer. `sink` is the writer's key. */
	accessPort(sink: string): AccessPort {
		return {
			postText: (text, entries) => this.#sendMessage({ type: 'access', sink, text, entries }),
			postSegment: (memory, length, entries) =>
				this.#sendMessage({ type: 'access_segment', sink, lines: { memory, length }, entries }),
			reportDropped: entries => this.#countDroppedEntries(sink, entries),
			charsInTransit: this.#controlWords,
			charsInTransitSlot: this.#transitSlot,
		};
	}

	/**
	 * Counts dropped entries, and reports them in batches, because a log that is too slow drops thousands of entries per second.
	 */
	#countDroppedEntries(sink: string, entryCount: number): void {
		this.#counters[ROW_SLOT.accessLogDropped]! += entryCount;
		this.#droppedEntries.set(sink, (this.#droppedEntries.get(sink) ?? 0) + entryCount);
		const now = performance.now();
		if (now < this.#nextDropReportAt) return;
		this.#nextDropReportAt = now + DROP_REPORT_INTERVAL_MS;
		for (const [writerKey, count] of this.#droppedEntries)
			this.#sendMessage({ type: 'access_dropped', sink: writerKey, entries: count });
		this.#droppedEntries.clear();
	}
}
