/**
 * Computes the deadline of a transfer from an idle timeout, a minimum average rate, and a deadline for the whole
 * transfer.
 */

/** Milliseconds after which a minimum rate applies if there is no idle timeout. */
const RATE_GRACE_MS = 5000;

/**
 * Measures one direction of an exchange. Only the time during which we wait for the client counts, not the time during which it
 * waits for us.
 */
export class TransferPace {
	#idleTimeoutMs = 0;
	#minBytesPerSecond = 0;
	#endDeadline = Infinity;
	#waitedMs = 0;
	#waitStart = -1;

	/**
	 * Starts a transfer. `idleTimeoutMs` is in milliseconds, `minBytesPerSecond` is the minimum in bytes per second (0 for none),
	 * and `endDeadline` is a time of `performance.now()`.
	 */
	start(idleTimeoutMs: number, minBytesPerSecond: number, endDeadline: number): void {
		this.#idleTimeoutMs = idleTimeoutMs;
		this.#minBytesPerSecond = minBytesPerSecond;
		this.#endDeadline = endDeadline;
		this.#waitedMs = 0;
		this.#waitStart = -1;
	}

	/** Changes the limits of the current transfer. */
	setLimits(idleTimeoutMs: number, minBytesPerSecond: number): void {
		this.#idleTimeoutMs = idleTimeoutMs;
		this.#minBytesPerSecond = minBytesPerSecond;
	}

	/** Changes the deadline for the whole transfer, a time of `performance.now()`. */
	setEndDeadline(endDeadline: number): void {
		this.#endDeadline = endDeadline;
	}

	/** Starts a wait. `transferredBytes` is the total so far. Returns the deadline of the wait. */
	startWait(now: number, transferredBytes: number): number {
		if (this.#waitStart >= 0) this.#waitedMs += now - this.#waitStart;
		this.#waitStart = now;
		const idleTimeoutMs = this.#idleTimeoutMs;
		let deadline = idleTimeoutMs === 0 ? Infinity : now + idleTimeoutMs;
		if (this.#minBytesPerSecond > 0) {
			// The total wait may not exceed the time that the bytes so far would need at the minimum rate, plus `idleTimeoutMs`.
			deadline = Math.min(
				deadline,
				now + (idleTimeoutMs || RATE_GRACE_MS) + (transferredBytes / this.#minBytesPerSecond) * 1000 - this.#waitedMs,
			);
		}
		return Math.min(deadline, this.#endDeadline);
	}

	endWait(now: number): void {
		if (this.#waitStart < 0) return;
		this.#waitedMs += now - this.#waitStart;
		this.#waitStart = -1;
	}
}
