/** What is logged when requests make an upstream unavailable for a while, or available again. */
import type { LogEntry } from '../logs/log-entry.ts';

/** Why an upstream gets no requests for a while, or gets them again. */
export type AvailabilityChange =
	| {
			readonly upstream: string;
			/** `failing`: it has failed `max_fails` times. `still_failing`: as before, and it has not answered since then. */
			readonly change: 'failing' | 'still_failing';
			/** The outcome of the request after which it changed. */
			readonly cause: string;
			/** Milliseconds until it is tried again. */
			readonly pauseMs: number;
			/** How often this has happened since the last report. */
			readonly times: number;
	  }
	| {
			readonly upstream: string;
			/** It has answered for the first time since it was reported as failing. */
			readonly change: 'recovered';
			/** Milliseconds since that report. */
			readonly failedForMs: number;
	  }
	| { readonly upstream: string; readonly change: 'opened'; readonly cause: string; readonly pauseMs: number }
	| { readonly upstream: string; readonly change: 'closed' };

const MESSAGES: { readonly [change in AvailabilityChange['change']]: string } = {
	failing: 'an upstream has failed too often and is not used for a while',
	still_failing: 'an upstream still fails each time it is tried again',
	recovered: 'an upstream that had failed too often answers again',
	opened: 'the circuit of an upstream has opened, so it is not used for a while',
	closed: 'the circuit of an upstream has closed, so it is used again',
};

/** Returns the log entry about a change. */
export function availabilityEntry(change: AvailabilityChange): LogEntry {
	return {
		level: change.change === 'closed' || change.change === 'recovered' ? 'info' : 'warn',
		logger: 'http.reverse_proxy',
		message: MESSAGES[change.change],
		fields: changeFields(change),
	};
}

function changeFields(change: AvailabilityChange): { readonly [name: string]: unknown } {
	const { upstream } = change;
	switch (change.change) {
		case 'failing':
		case 'still_failing': {
			const { cause, pauseMs, times } = change;
			return { upstream, cause, pause_ms: pauseMs, ...(times > 1 && { times }) };
		}
		case 'recovered':
			return { upstream, failed_for_ms: change.failedForMs };
		case 'opened':
			return { upstream, cause: change.cause, pause_ms: change.pauseMs };
		default:
			return { upstream };
	}
}
