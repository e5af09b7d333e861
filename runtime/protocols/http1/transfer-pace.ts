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
	 * Starts a transfer. `idleTimeout` is in milliseconds, `minRate` is the minimum in bytes per second (0 for none), and
	 * `endDeadline` is a time of `performance.now()`.
	 */
	start(idleTimeout: number, minRate: number, endDeadline: number): void {
		this.#idleTimeoutMs = idleTimeout;
		this.#minBytesPerSecond = minRate;
		this.#endDeadline = endDeadline;
		this.#waitedMs = 0;
		this.#waitStart = -1;
	}

	/** Changes the limits of the current transfer. */
	setLimits(idleTimeout: number, minRate: number): void {
		this.#idleTimeoutMs = idleTimeout;
		this.#minBytesPerSecond = minRate;
	}

	/** Changes the deadline for the whole transfer, a time of `performance.now()`. */
	setEndDeadline(endDeadline: number): void {
		this.#endDeadline = endDeadline;
	}

	/** Starts a wait. `transferredBytes` is the total so far. Returns the deadline of the wait. */
	startWait(now: number, transferredBytes: number): number {
		if (this.#waitStart >= 0) this.#waitedMs += now - this.#waitStart;
		this.#waitStart = now;
		const idleTimeout = this.#idleTimeoutMs;
		let deadline = idleTimeout === 0 ? Infinity : now + idleTimeout;
		if (this.#minBytesPerSecond > 0) {
			// The total wait is limited to the time that the bytes so far take at the minimum rate, plus `idleTimeout`.
			deadline = Math.min(
				deadline,
				now + (idleTimeout || RATE_GRACE_MS) + (transferredBytes / this.#minBytesPerSecond) * 1000 - this.#waitedMs,
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
