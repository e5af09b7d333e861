/**
 * State that keeps changing until the successor takes over. It is sent with the message that tells the successor to accept
 * connections, so that everything the predecessor has learned until then is passed on.
 */
import type { LimitTableState } from '../../rate-limits/limit-tables.ts';

/** What a runtime tells its successor at the last moment. */
export interface HandedState {
	/** See `PoolRegistry.states`. */
	readonly upstreams: readonly UpstreamState[];
	/** The counts of rate limits. */
	readonly limits?: readonly LimitTableState[];
}

/** The state of one upstream: the key of its address and settings, and its words in Base64; see `UPSTREAM_STATE`. */
export type UpstreamState = readonly [key: string, words: string];
