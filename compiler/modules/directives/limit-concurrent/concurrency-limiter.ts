/** The lease of `limit_concurrent`: the requests of a zone that run or wait, counted by key for the whole process. */
import type { Exchange } from '../../../exchange/exchange.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		concurrency_limiter: { settings: ConcurrencyLimiterSettings; lease: ConcurrencyLimiter };
	}
}

/** What identifies the counts. Limits are not part of it, so that a reload can change them without losing counts. */
export interface ConcurrencyLimiterSettings {
	readonly zone: string;
	/** Maximum number of keys at a time. */
	readonly maxKeys: number;
}

export interface ConcurrencyLimit {
	/** Maximum number of requests that run at a time. */
	readonly requests: number;
	/** Maximum number of requests that wait. */
	readonly queue: number;
	/** Maximum milliseconds for which a request waits. */
	readonly timeout: number;
}

/** How a zone treated a request, for metrics. `queued` ones have waited and were then admitted; `left` ones gave up waiting. */
export type ConcurrencyOutcome = 'admitted' | 'queued' | 'refused' | 'timed_out' | 'left' | 'would_refuse';

/** The place of a running request. */
export interface ConcurrencyPlace {
	/** Makes the place free. Calls after the first have no effect. */
	leave(): void;
}

/** The counts of a zone. */
export interface ConcurrencyLimiter {
	/** Takes a place. Returns `refused` if there is none, neither to run nor to wait. */
	enter(
		x: Exchange,
		key: string,
		limit: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<ConcurrencyPlace | 'timed_out' | 'left'>;
	count(outcome: ConcurrencyOutcome): void;
}
