/** Deadlines of a transfer: for a pause, for a minimum average rate, and for the whole transfer. */

/** Milliseconds after which a minimum rate applies if there is no idle timeout. */
const GRACE = 5000;

/** Measures one direction of an exchange. Only time during which we wait for the client counts, not time it waits for us. */
export class TransferPace {
	#idle = 0;
	#rate = 0;
	#end = Infinity;
	#waited = 0;
	#since = -1;

	/**
	 * Starts a transfer. `idle` is in milliseconds, `rate` is the minimum in bytes per second (0 for none), and `end` is a time of
	 * `performance.now()`.
	 */
	begin(idle: number, rate: number, end: number): void {
		this.#idle = idle;
		this.#rate = rate;
		this.#end = end;
		this.#waited = 0;
		this.#since = -1;
	}

	/** Changes the limits of the current transfer. */
	bound(idle: number, rate: number): void {
		this.#idle = idle;
		this.#rate = rate;
	}

	/** Starts a wait when `moved` bytes have been transferred in total. Returns its deadline. */
	wait(now: number, moved: number): number {
		if (this.#since >= 0) this.#waited += now - this.#since;
		this.#since = now;
		const idle = this.#idle;
		let deadline = idle === 0 ? Infinity : now + idle;
		if (this.#rate > 0) {
			// The total wait may last as long as the bytes so far take at the minimum rate, plus `idle`.
			deadline = Math.min(deadline, now + (idle || GRACE) + (moved / this.#rate) * 1000 - this.#waited);
		}
		return Math.min(deadline, this.#end);
	}

	/** Ends a wait. */
	go(now: number): void {
		if (this.#since < 0) return;
		this.#waited += now - this.#since;
		this.#since = -1;
	}
}
