/** The counters that every thread keeps: a Float64 row in shared memory, summed when scraped. */
import { FILE_ROW } from './file-counters.ts';
import { HTTP2_SESSIONS_SLOT } from './http2-counters.ts';
import { HTTP3_CONNECTIONS_SLOT, HTTP3_SLOTS_END } from './http3-counters.ts';
import { ThreadVitals } from './thread-vitals.ts';

/** Slots of a row. Gauges count only for living threads; counters outlive theirs. */
export const ROW = {
	/** Gauge: open connections. */
	connections: 0,
	/** Gauge: exchanges between the end of their head and the end of their response. */
	inFlight: 1,
	/** Counter: finished exchanges. */
	requests: 2,
	/** Counter: access log entries dropped because the main thread did not keep up. */
	accessLogDropped: 3,
	/** Counter: process log entries dropped because the main thread did not keep up. */
	processLogDropped: 4,
	/** Counter: connections accepted. */
	accepted: 5,
	/** Counter: spans dropped because the main thread did not keep up. */
	spansDropped: 6,
	/** Counter: exchanges that ended with a status of 500 or more. */
	serverErrors: 7,
	/** Gauge: requests waiting in the queue of an overloaded listener. */
	queued: 40,
	/** Counter: requests that had to wait there. */
	queuedRequests: 41,
	/** Counter: connections that could not be accepted for lack of file descriptors or memory. */
	acceptFailures: 42,
	/** Counter: response fields that were dropped because they cannot be sent. */
	droppedFields: 43,
	/** Counter: idle connections closed to make room for others. */
	gaveWay: 44,
	// Slots 32 to 39, 48 to 55 and 64 to 111 are defined in refusals.ts, 112 to 127 in http2-counters.ts,
	// 56 to 63 in cache-counters.ts, 128 to 143 in file-counters.ts, and the rest in http3-counters.ts.
} as const;

/** Slots that are gauges. */
export const ROW_GAUGES: readonly number[] = [
	...[ROW.connections, ROW.inFlight, ROW.queued, HTTP2_SESSIONS_SLOT, HTTP3_CONNECTIONS_SLOT],
	...[FILE_ROW.keptBytes, FILE_ROW.heldOpen],
];

/** Number of slots in a row. */
export const ROW_SLOTS: number = HTTP3_SLOTS_END;

/**
 * Padding in bytes before and after a row. Memory is aligned to sixteen bytes only, and processors fetch two cache lines at a
 * time: writes of another thread nearby would invalidate the row's cache lines with every request.
 */
const APART = 128;

/** Offset of the thread's vitals. */
const VITALS_OFFSET = APART + ROW_SLOTS * Float64Array.BYTES_PER_ELEMENT + APART;

/** Allocates memory for one row and the thread's vitals. */
export function createCounterRow(): SharedArrayBuffer {
	return new SharedArrayBuffer(VITALS_OFFSET + ThreadVitals.BYTES);
}

/** Returns the thread's vitals, which share the memory of its row. */
export function vitalsBeside(memory: SharedArrayBuffer): ThreadVitals {
	return new ThreadVitals(memory, VITALS_OFFSET);
}

/** Returns the row in its memory. */
export function counterRow(memory: SharedArrayBuffer): Float64Array {
	return new Float64Array(memory, APART, ROW_SLOTS);
}
