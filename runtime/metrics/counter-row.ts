/** The numbers that every thread always keeps: a Float64 row in shared memory, summed at scrape. */

/** Slots of a row. Gauges are those of a living thread only; counters outlive it. */
export const ROW = {
	/** Gauge: open connections. */
	connections: 0,
	/** Gauge: exchanges between the end of their head and the end of their response. */
	inFlight: 1,
	/** Counter: exchanges that have ended. */
	requests: 2,
	/** Counter: access entries dropped because writing did not keep up. */
	accessLogDropped: 3,
	/** Counter: messages refused before they became an exchange. */
	refusedRequests: 4,
	/** Counter: connections accepted. */
	accepted: 5,
	/** Counter: spans dropped because the main thread did not keep up. */
	spansDropped: 6,
} as const;

/** Slots that are gauges. */
export const ROW_GAUGES: readonly number[] = [ROW.connections, ROW.inFlight];

/** Length of a row in slots: two cache lines, so that threads do not write to one another's. */
export const ROW_SLOTS = 16;

/** Memory of one row. */
export function createCounterRow(): SharedArrayBuffer {
	return new SharedArrayBuffer(ROW_SLOTS * Float64Array.BYTES_PER_ELEMENT);
}
