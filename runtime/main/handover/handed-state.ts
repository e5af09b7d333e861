/**
 * State that keeps changing until the successor takes over. It is therefore sent as late as possible: with the message that tells
 * the successor to accept connections.
 */
import type { RunningCounts } from '../../concurrency-limits/running-exchange.ts';
import type { LimitTableState } from '../../rate-limits/limit-tables.ts';

/** The state that a process sends to its successor at the last moment. */
export interface HandedState {
	/** The state of each upstream: circuits, failures and health; see `PoolRegistry.exportStates`. */
	readonly upstreams: readonly UpstreamState[];
	/** The counts of rate limits, one entry per zone. */
	readonly limits?: readonly LimitTableState[];
	/** How many requests the process runs for each key of each `limit_concurrent` table; see `RunningExchange`. */
	readonly running?: RunningCounts;
}

/**
 * The state of one upstream: the key made of its address and settings, and the values of its state in Base64; see
 * `UPSTREAM_STATE`.
 */
export type UpstreamState = readonly [key: string, words: string];
