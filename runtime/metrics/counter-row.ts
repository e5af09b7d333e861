/** The counters of one thread: a row of Float64 slots in shared memory. A scrape sums the rows of all threads. */
import { FILE_SLOT } from './file-counters.ts';
import { HTTP2_SESSIONS_SLOT } from './http2-counters.ts';
import { HTTP3_CONNECTIONS_SLOT, HTTP3_SLOTS_END } from './http3-counters.ts';
import { ThreadVitals } from './thread-vitals.ts';

/** The slots of a row. A gauge disappears when its thread dies; the values of counters are kept. */
export const ROW_SLOT = {
	/** Gauge: open connections. */
	connections: 0,
	/** Gauge: exchanges whose request head has been received and whose response has not ended. */
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
	/** Counter: requests that had to wait in the queue of an overloaded listener. */
	queuedRequests: 41,
	/** Counter: connections that could not be accepted for lack of file descriptors or memory. */
	acceptFailures: 42,
	/** Counter: response fields dropped because they are invalid in HTTP. */
	droppedFields: 43,
	/** Counter: idle connections closed to make room for new ones. */
	gaveWay: 44,
	// Slots 32 to 39, 48 to 55 and 64 to 111 are defined in refusals.ts, 112 to 127 in http2-counters.ts,
	// 56 to 63 in cache-counters.ts, 128 to 143 in file-counters.ts, and the rest in http3-counters.ts.
} as const;

export const GAUGE_SLOTS: readonly number[] = [
	...[ROW_SLOT.connections, ROW_SLOT.inFlight, ROW_SLOT.queued, HTTP2_SESSIONS_SLOT, HTTP3_CONNECTIONS_SLOT],
	...[FILE_SLOT.keptBytes, FILE_SLOT.heldOpen],
];

/** Total number of slots in a row. */
export const ROW_LENGTH: number = HTTP3_SLOTS_END;

/**
 * Padding in bytes before and after a row. A buffer is aligned to only 16 bytes, and processors fetch two cache lines at a time.
 * Without the padding, another thread's writes to nearby memory would invalidate the row's cache lines with every request.
 */
const PADDING_BYTES = 128;

/** Byte offset of the thread's {@link ThreadVitals}, which follow the row. */
const VITALS_OFFSET = PADDING_BYTES + ROW_LENGTH * Float64Array.BYTES_PER_ELEMENT + PADDING_BYTES;

/** Allocates memory for one row and the thread's vitals. */
export function createCounterRow(): SharedArrayBuffer {
	return new SharedArrayBuffer(VITALS_OFFSET + ThreadVitals.BYTES);
}

/** Returns the thread's vitals, which are in the same memory as its row. */
export function threadVitalsIn(memory: SharedArrayBuffer): ThreadVitals {
	return new ThreadVitals(memory, VITALS_OFFSET);
}

/** Returns a view of the row in this memory. */
export function counterRow(memory: SharedArrayBuffer): Float64Array {
	return new Float64Array(memory, PADDING_BYTES, ROW_LENGTH);
}
