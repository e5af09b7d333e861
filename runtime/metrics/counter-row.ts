/** The numbers that every thread always keeps: a Float64 row in shared memory, summed at scrape. */
import { FILE_ROW, FILE_SLOTS_END } from './file-counters.ts';
import { HTTP2_SESSIONS_SLOT } from './http2-counters.ts';
import { ThreadVitals } from './thread-vitals.ts';

/** Slots of a row. Gauges are those of a living thread only; counters outlive it. */
export const ROW = {
	/** Gauge: open connections. */
	connections: 0,
	/** Gauge: exchanges between the end of their head and the end of their response. */
	inFlight: 1,
	/** Counter: exchanges that have ended. */
	requests: 2,
	/** Counter: access entries dropped because the main thread did not keep up. */
	accessLogDropped: 3,
	/** Counter: entries of the process log dropped because the main thread did not keep up. */
	processLogDropped: 4,
	/** Counter: connections accepted. */
	accepted: 5,
	/** Counter: spans dropped because the main thread did not keep up. */
	spansDropped: 6,
	/** Counter: exchanges that ended with a status of 500 or more. */
	serverErrors: 7,
	/** Gauge: requests that wait in the queue of an overloaded listener. */
	queued: 40,
	/** Counter: requests that have had to wait there. */
	queuedRequests: 41,
	/** Counter: connections that could not be accepted for want of file descriptors or memory. */
	acceptFailures: 42,
	/** Counter: fields of responses that were left out because they cannot be sent. */
	droppedFields: 43,
	/** Counter: idle connections that were closed to make room for others. */
	gaveWay: 44,
	// 32 to 39, 48 to 55 and 64 to 111 are those of refusals.ts, 112 to 127 those of http2-counters.ts,
	// 56 to 63 those of cache-counters.ts, 128 to 143 those of file-counters.ts.
} as const;

/** Slots that are gauges. */
export const ROW_GAUGES: readonly number[] = [
	...[ROW.connections, ROW.inFlight, ROW.queued, HTTP2_SESSIONS_SLOT],
	...[FILE_ROW.keptBytes, FILE_ROW.heldOpen],
];

/** Length of a row in slots. */
export const ROW_SLOTS = FILE_SLOTS_END;

/**
 * Bytes before and behind a row: memory comes at any sixteen bytes, and what another thread writes within the two cache
 * lines that processors fetch together would take the row away with every request.
 */
const APART = 128;

/** Where the thread's vitals begin. */
const VITALS_OFFSET = APART + ROW_SLOTS * Float64Array.BYTES_PER_ELEMENT + APART;

/** Memory of one row, and of the thread's vitals. */
export function createCounterRow(): SharedArrayBuffer {
	return new SharedArrayBuffer(VITALS_OFFSET + ThreadVitals.BYTES);
}

/** Returns the thread's vitals, which share the memory of its row. */
export function vitalsBeside(memory: SharedArrayBuffer): ThreadVitals {
	return new ThreadVitals(memory, VITALS_OFFSET);
}

/** The row in its memory. */
export function counterRow(memory: SharedArrayBuffer): Float64Array {
	return new Float64Array(memory, APART, ROW_SLOTS);
}
