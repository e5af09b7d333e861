/** The limiter that `limit_concurrent` leases for a zone: counts running and waiting requests by key, in the whole process. */
import type { Exchange } from '../../../exchange/exchange.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		concurrency_limiter: { settings: ConcurrencyLimiterSettings; lease: ConcurrencyLimiter };
	}
}

/** Identifies the counts of a zone. Limits are not included, so that a reload can change them without losing counts. */
export interface ConcurrencyLimiterSettings {
	readonly zone: string;
	/** Maximum number of keys that are counted at a time. */
	readonly maxKeys: number;
}

export interface ConcurrencyLimit {
	/** Maximum number of requests of a key that run at a time. */
	readonly maxRequests: number;
	/** Maximum number of requests of a key that wait. */
	readonly maxQueued: number;
	/** Maximum milliseconds for which a request waits. */
	readonly timeoutMs: number;
}

/**
 * How a zone treated a request, for metrics. `queued` means that the request was admitted after waiting; `left`, that its client
 * disconnected while it waited.
 */
export type ConcurrencyOutcome = 'admitted' | 'queued' | 'refused' | 'timed_out' | 'left' | 'would_refuse';

/** A place: the permission for one request to run. Each key has `maxRequests` places. */
export interface ConcurrencyPlace {
	/** Frees the place. Calls after the first have no effect. */
	leave(): void;
}

/** Admits, queues or refuses the requests of one zone. */
export interface ConcurrencyLimiter {
	/** Takes a place for a request of this key. If none is free, waits in the queue; if that is full, returns `refused`. */
	enter(
		x: Exchange,
		key: string,
		limit: ConcurrencyLimit,
	): ConcurrencyPlace | 'refused' | Promise<ConcurrencyPlace | 'timed_out' | 'left'>;
	countOutcome(outcome: ConcurrencyOutcome): void;
}
