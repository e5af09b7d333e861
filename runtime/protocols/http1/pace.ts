/** Deadlines of a transfer: for a pause, for the average rate, and in total. */

/** Milliseconds before a minimum rate applies if there is no idle timeout. */
const GRACE = 5000;

/** The clock of one direction of an exchange. It runs only while we wait for the client, not while the client waits for us. */
export class Pace {
	#idle = 0;
	#rate = 0;
	#end = Infinity;
	#waited = 0;
	#since = -1;

	/** Starts a transfer. `idle` is in milliseconds, `rate` in bytes per second (0 for none), `end` a time of `performance.now()`. */
	begin(idle: number, rate: number, end: number): void {
		this.#idle = idle;
		this.#rate = rate;
		this.#end = end;
		this.#waited = 0;
		this.#since = -1;
	}

	/** Changes the limits. */
	bound(idle: number, rate: number): void {
		this.#idle = idle;
		this.#rate = rate;
	}

	/** Starts waiting after `moved` bytes in total; returns the deadline. */
	wait(now: number, moved: number): number {
		if (this.#since >= 0) this.#waited += now - this.#since;
		this.#since = now;
		const idle = this.#idle;
		let deadline = idle === 0 ? Infinity : now + idle;
		if (this.#rate > 0) {
			// As if the bytes so far had taken as long as the rate allows, plus `idle`.
			deadline = Math.min(deadline, now + (idle || GRACE) + (moved / this.#rate) * 1000 - this.#waited);
		}
		return Math.min(deadline, this.#end);
	}

	/** Ends waiting. */
	go(now: number): void {
		if (this.#since < 0) return;
		this.#waited += now - this.#since;
		this.#since = -1;
	}
}
