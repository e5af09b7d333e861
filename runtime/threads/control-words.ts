/** Int32 memory that the main thread shares with all worker threads: what each slot means. */

/** Slot of the number of the current generation, that is, of the configuration in use. */
export const CONTROL_GENERATION = 0;

/** Slot of the time at which a delayed stop begins, in seconds since 1970; 0 if no stop is pending. */
export const CONTROL_STOPS_AT = 1;

/** First of the slots, one per thread, that contain the number of log characters in transit to the main thread. */
export const CONTROL_LOG_IN_TRANSIT = 16;

/** Maximum number of log characters in transit. If there are more, a thread drops log text. */
export const MAX_LOG_IN_TRANSIT_CHARS: number = 8 * 1024 * 1024;

/** Maximum number of worker threads. */
export const MAX_THREADS = 256;

/** Number of slots in the shared memory. */
export const CONTROL_SLOTS = CONTROL_LOG_IN_TRANSIT + MAX_THREADS;
