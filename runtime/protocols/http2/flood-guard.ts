/** Limits the frames of a connection that do no useful work, so that a client cannot flood the server with any mix of them. */
import { FLOOD_BUDGET, FLOOD_REFILL_PER_SECOND } from './limits.ts';

/**
 * Reasons for closing a connection because of the client's behavior. The set is fixed, because the reasons are labels
 * of counters.
 */
export const CUT_REASONS = [
	'rapid_reset',
	'made_you_reset',
	'continuation_flood',
	'settings_flood',
	'ping_flood',
	'priority_flood',
	'window_update_flood',
	'empty_frames',
	'unread_control',
	'protocol_error',
	'timeout',
] as const;

export type CutReason = (typeof CUT_REASONS)[number];

/**
 * The costs of frames that do no useful work. A reset costs as much as two or three completed exchanges earn, so that a client
 * that cancels less than a quarter of its requests is not taken for an attacker.
 */
export const FRAME_COST = {
	/** The client canceled a stream (CVE-2023-44487), whether or not its response had been sent. */
	rapid_reset: 8,
	/** The client made us reset a stream (CVE-2025-8671), or exceeded the stream limit. */
	made_you_reset: 8,
	settings_flood: 8,
	ping_flood: 2,
	priority_flood: 1,
	window_update_flood: 1,
	/** DATA frames that have no content and do not end the stream, and frames of unknown type. */
	empty_frames: 4,
	/** DATA or trailers on a stream that we have reset. */
	late_data: 1,
} as const;

/** Credit for each exchange whose response was sent completely. */
const CREDIT_PER_EXCHANGE = 3;
/** Credit for each DATA frame that we send, because the client must occasionally send two WINDOW_UPDATE frames for it. */
const CREDIT_PER_DATA_FRAME = 2;

/** The budget of one connection. It is full at first. Costs reduce it; useful work and time refill it. */
export class FloodGuard {
	#budgetLeft = FLOOD_BUDGET;
	#refilledAt: number;

	/** @param now The current time by `performance.now()`, as in the methods below. */
	constructor(now: number) {
		this.#refilledAt = now;
	}

	/** Deducts a cost. Returns true if the budget is exhausted. */
	charge(cost: number, now: number): boolean {
		this.#budgetLeft -= cost;
		if (this.#budgetLeft >= 0) return false;
		this.#budgetLeft = Math.min(
			FLOOD_BUDGET,
			this.#budgetLeft + ((now - this.#refilledAt) * FLOOD_REFILL_PER_SECOND) / 1000,
		);
		this.#refilledAt = now;
		return this.#budgetLeft < 0;
	}

	creditExchange(): void {
		this.#budgetLeft = Math.min(FLOOD_BUDGET, this.#budgetLeft + CREDIT_PER_EXCHANGE);
	}

	creditFrame(): void {
		this.#budgetLeft = Math.min(FLOOD_BUDGET, this.#budgetLeft + CREDIT_PER_DATA_FRAME);
	}
}
