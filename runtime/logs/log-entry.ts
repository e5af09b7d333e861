/** Entries of the process log, as threads send them to the main thread. */

/**
 * The amount of text in transit to the main thread is limited in characters. Each entry of the process log counts as this many
 * characters, whatever its length.
 */
export const LOG_ENTRY_WEIGHT = 1024;

/** Severity of a log entry, in ascending order. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** An entry of the process log, as sent by threads. */
export interface LogEntry {
	readonly level: LogLevel;
	/** Name of the logger: `http`, `runtime`. */
	readonly logger: string;
	readonly message: string;
	readonly fields?: { readonly [name: string]: unknown } | undefined;
}
