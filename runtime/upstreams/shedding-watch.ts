/** Detects when a pool begins and ceases to refuse requests because its upstreams are overloaded. */

/** Milliseconds without a refusal after which an overload has ended. */
const OVERLOAD_END_MS = 10_000;

export type SheddingChange =
	| { readonly change: 'begun' }
	| { readonly change: 'ended'; readonly refused: number; readonly durationMs: number };

/** Watches the number of requests that a pool has refused. */
export class SheddingWatch {
	#refusedCount: number;
	#lastRefusedAt = 0;
	#begunAt = 0;
	#refusedBefore = 0;
	#isShedding = false;

	/** @param refusedCount Number of requests that the pool has refused so far. */
	constructor(refusedCount: number) {
		this.#refusedCount = refusedCount;
	}

	/** True from the first refusal of an overload until no request has been refused for ten seconds. */
	get isShedding(): boolean {
		return this.#isShedding;
	}

	/**
	 * Takes the current number of refused requests. Returns what has changed since the last call, or undefined.
	 * @param now Milliseconds of a clock that does not go backward.
	 */
	update(refusedCount: number, now: number): SheddingChange | undefined {
		const earlierCount = this.#refusedCount;
		if (refusedCount !== earlierCount) {
			this.#refusedCount = refusedCount;
			this.#lastRefusedAt = now;
			if (this.#isShedding) return undefined;
			this.#isShedding = true;
			this.#begunAt = now;
			this.#refusedBefore = earlierCount;
			return { change: 'begun' };
		}
		if (!this.#isShedding || now - this.#lastRefusedAt < OVERLOAD_END_MS) return undefined;
		this.#isShedding = false;
		// The count is a 32-bit integer that wraps.
		const refused = (refusedCount - this.#refusedBefore) >>> 0;
		return { change: 'ended', refused, durationMs: this.#lastRefusedAt - this.#begunAt };
	}
}
