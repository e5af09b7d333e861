/** What a connection may spend on frames that do no work, so that no mixture of them becomes a flood. */
import { CALM_BUDGET, CALM_REFILL } from './limits.ts';

/** Why a connection was cut off. Few, for counters. */
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

/** What a frame costs. A reset costs what two or three finished exchanges earn: who cancels less than every fourth is no attacker. */
export const COST = {
	/** The client took back a stream (CVE-2023-44487), whether or not its response was out. */
	rapid_reset: 8,
	/** The client made us reset a stream (CVE-2025-8671), or asked for more of them than it may. */
	made_you_reset: 8,
	settings_flood: 8,
	ping_flood: 2,
	priority_flood: 1,
	window_update_flood: 1,
	/** DATA without data or end, and frames of unknown type. */
	empty_frames: 4,
	/** DATA of a stream that we have reset. */
	late_data: 1,
} as const;

/** What an exchange whose response was written whole gives back. */
const EARNED_BY_EXCHANGE = 3;
/** What each DATA frame sent gives back: its receiver has to raise two windows now and then. */
const EARNED_BY_FRAME = 2;

/** The budget of one connection: it starts full, costs drain it, work and time fill it. */
export class FloodGuard {
	#left = CALM_BUDGET;
	#filledAt: number;

	/** `now` is `performance.now()`, here as everywhere. */
	constructor(now: number) {
		this.#filledAt = now;
	}

	/** Takes a cost; true when there was nothing left to pay it. */
	spend(cost: number, now: number): boolean {
		this.#left -= cost;
		if (this.#left >= 0) return false;
		this.#left = Math.min(CALM_BUDGET, this.#left + ((now - this.#filledAt) * CALM_REFILL) / 1000);
		this.#filledAt = now;
		return this.#left < 0;
	}

	exchangeDone(): void {
		this.#left = Math.min(CALM_BUDGET, this.#left + EARNED_BY_EXCHANGE);
	}

	frameSent(): void {
		this.#left = Math.min(CALM_BUDGET, this.#left + EARNED_BY_FRAME);
	}
}
