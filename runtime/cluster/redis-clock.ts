/** Notices when the clock of Redis is changed, or when another server with another clock has become the master. */

/**
 * Changes of up to this many milliseconds are ignored. A clock that is adjusted gradually changes by less between two answers.
 */
const IGNORED_CHANGE_MS = 2000;

/** Compares the times in answers of Redis with this process's monotonic clock. */
export class RedisClock {
	/** The range in which the difference between the two clocks lies, according to the last answer. */
	#differences: { readonly lowest: number; readonly highest: number } | undefined;

	/**
	 * Records the time in an answer. Returns by how many milliseconds the clock of Redis was changed since the last answer; 0 if it
	 * was not changed.
	 * @param redisNow The time in the answer, in milliseconds.
	 * @param sentAt When the command was sent, in milliseconds by a monotonic clock; `receivedAt` is when the answer was received.
	 */
	observe(redisNow: number, sentAt: number, receivedAt: number): number {
		// Redis may have read its clock at any moment between the sending of the command and the receipt of the answer.
		const observed = { lowest: redisNow - receivedAt, highest: redisNow - sentAt };
		const known = this.#differences;
		this.#differences = observed;
		if (!known) return 0;
		const change =
			observed.lowest > known.highest ? observed.lowest - known.highest : Math.min(0, observed.highest - known.lowest);
		return Math.abs(change) > IGNORED_CHANGE_MS ? change : 0;
	}
}
