/**
 * Logs the outages of one resource, such as the connection to Redis: one entry when it is lost, and one when it is available
 * again. If this happens repeatedly, only the first few outages are logged like this. Later ones are summarized in one entry per
 * minute, which says how often the resource was lost.
 */
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';

/** Maximum number of outages within an interval that are logged immediately, and the length of the interval in milliseconds. */
const MAX_LOGGED_OUTAGES = 3;
const INTERVAL_MS = 60_000;

/** The messages of the two kinds of log entries. */
export interface OutageMessages {
	readonly lost: string;
	readonly regained: string;
}

export type OutageLogFunction = (
	level: 'info' | 'warn',
	message: string,
	fields: { readonly cause?: string | undefined; readonly losses?: number },
) => void;

/** Logs the outages of one resource. */
export class OutageLog {
	readonly #messages: OutageMessages;
	readonly #log: OutageLogFunction;
	readonly #clock: Clock;
	/** The state that the last log entry reported. */
	#loggedState: 'none' | 'available' | 'lost' = 'none';
	#isAvailable = false;
	#cause: string | undefined;
	/** Number of losses that no entry has mentioned. */
	#unloggedLosses = 0;
	/** Number of outages that were logged since the interval began. */
	#loggedOutages = 0;
	/** Stops the timer of the current interval, which began with the first logged outage; undefined if no interval is running. */
	#stopTimer: (() => void) | undefined;

	constructor(messages: OutageMessages, log: OutageLogFunction, clock: Clock = SYSTEM_CLOCK) {
		this.#messages = messages;
		this.#log = log;
		this.#clock = clock;
	}

	onAvailable(): void {
		this.#isAvailable = true;
		// The end of an outage that was not logged is not logged either, because the next outage may follow soon.
		if (this.#unloggedLosses === 0 && this.#loggedState !== 'available') this.#logAvailable();
	}

	/** Must be called when the resource is lost, and after each failed attempt to get it back. `cause` contains no credential. */
	onLost(cause: string): void {
		const isNew = this.#isAvailable;
		this.#cause = cause;
		this.#isAvailable = false;
		if (this.#loggedOutages >= MAX_LOGGED_OUTAGES) this.#unloggedLosses += isNew ? 1 : 0;
		else if (this.#loggedState !== 'lost') this.#logLost();
	}

	close(): void {
		this.#stopTimer?.();
		this.#stopTimer = undefined;
	}

	#logLost(): void {
		this.#loggedState = 'lost';
		this.#loggedOutages++;
		this.#log('warn', this.#messages.lost, { cause: this.#cause, ...this.#takeLosses() });
		this.#stopTimer ??= this.#clock.startTimer(() => this.#endInterval(), INTERVAL_MS, false);
	}

	#logAvailable(): void {
		this.#loggedState = 'available';
		this.#log('info', this.#messages.regained, this.#takeLosses());
	}

	/** Returns the number of losses that no entry has mentioned, as a field of a log entry, and resets it to 0. */
	#takeLosses(): { readonly losses?: number } {
		const losses = this.#unloggedLosses;
		this.#unloggedLosses = 0;
		return losses === 0 ? {} : { losses };
	}

	/** If outages in the interval were not logged, logs one entry about them and starts another interval. */
	#endInterval(): void {
		this.#stopTimer = undefined;
		if (this.#unloggedLosses === 0) {
			this.#loggedOutages = 0;
			return;
		}
		this.#stopTimer = this.#clock.startTimer(() => this.#endInterval(), INTERVAL_MS, false);
		if (this.#isAvailable) this.#logAvailable();
		else this.#logLost();
	}
}
