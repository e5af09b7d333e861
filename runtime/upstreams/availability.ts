/** What is logged when requests make an upstream unavailable for a while, or available again. */
import type { LogEntry } from '../logs/log-entry.ts';

/** Why an upstream gets no requests for a while, or gets them again. */
export interface AvailabilityChange {
	readonly upstream: string;
	/** `failing`: it has failed `max_fails` times; the others are changes of its circuit. */
	readonly change: 'failing' | 'opened' | 'closed';
	/** The outcome of the request after which it changed. */
	readonly cause: string;
	/** Milliseconds until it is tried again; 0 for a closed circuit. */
	readonly pauseMs: number;
}

const MESSAGES: { readonly [change in AvailabilityChange['change']]: string } = {
	failing: 'an upstream has failed too often and is not used for a while',
	opened: 'the circuit of an upstream has opened, so it is not used for a while',
	closed: 'the circuit of an upstream has closed, so it is used again',
};

/** Returns the log entry about a change. */
export function availabilityEntry({ upstream, change, cause, pauseMs }: AvailabilityChange): LogEntry {
	return {
		level: change === 'closed' ? 'info' : 'warn',
		logger: 'http.reverse_proxy',
		message: MESSAGES[change],
		fields: change === 'closed' ? { upstream } : { upstream, cause, pause_ms: pauseMs },
	};
}
