/** Limits the frames of a connection that do no useful work, so that no combination of them can be used for a flood. */
import { FLOOD_BUDGET, FLOOD_REFILL_PER_SECOND } from './limits.ts';

/** Reasons for which a connection is closed. A fixed set, because they are the labels of counters. */
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
	/** DATA on a stream that we have reset. */
	late_data: 1,
} as const;

/** Credit for each exchange whose response was sent completely. */
const EARNED_BY_EXCHANGE = 3;
/** Credit for each DATA frame that we send, because the client must occasionally send two WINDOW_UPDATE frames for it. */
const EARNED_BY_FRAME = 2;

/** The budget of one connection. It is full at first. Costs reduce it; useful work and time refill it. */
export class FloodGuard {
	#left = FLOOD_BUDGET;
	#filledAt: number;

	/** Here and in the methods below, `now` is from `performance.now()`. */
	constructor(now: number) {
		this.#filledAt = now;
	}

	/** Deducts a cost. Returns true if the budget is exhausted. */
	spend(cost: number, now: number): boolean {
		this.#left -= cost;
		if (this.#left >= 0) return false;
		this.#left = Math.min(FLOOD_BUDGET, this.#left + ((now - this.#filledAt) * FLOOD_REFILL_PER_SECOND) / 1000);
		this.#filledAt = now;
		return this.#left < 0;
	}

	exchangeDone(): void {
		this.#left = Math.min(FLOOD_BUDGET, this.#left + EARNED_BY_EXCHANGE);
	}

	frameSent(): void {
		this.#left = Math.min(FLOOD_BUDGET, this.#left + EARNED_BY_FRAME);
	}
}
