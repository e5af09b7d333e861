/** How long a transfer may wait for the client: without a byte, on average, and in all. */

/** Milliseconds before a rate counts where no idle time says it. */
const GRACE = 5000;

/** The clock of one direction of one exchange. It runs only while we wait for the client, not while the client waits for us. */
export class Pace {
	#idle = 0;
	#rate = 0;
	#end = Infinity;
	#waited = 0;
	#since = -1;

	/** A transfer begins. `idle` is milliseconds, `rate` bytes a second (0 is without bound), `end` a `performance.now()`. */
	begin(idle: number, rate: number, end: number): void {
		this.#idle = idle;
		this.#rate = rate;
		this.#end = end;
		this.#waited = 0;
		this.#since = -1;
	}

	/** Other bounds from now on. */
	bound(idle: number, rate: number): void {
		this.#idle = idle;
		this.#rate = rate;
	}

	/** We wait, and so many bytes have been moved: the time at which that is too long. */
	wait(now: number, moved: number): number {
		if (this.#since >= 0) this.#waited += now - this.#since;
		this.#since = now;
		const idle = this.#idle;
		let deadline = idle === 0 ? Infinity : now + idle;
		if (this.#rate > 0) {
			// As if what came had taken the time that the rate gives it, and `idle` on top.
			deadline = Math.min(deadline, now + (idle || GRACE) + (moved / this.#rate) * 1000 - this.#waited);
		}
		return Math.min(deadline, this.#end);
	}

	/** The client has done its part. */
	go(now: number): void {
		if (this.#since < 0) return;
		this.#waited += now - this.#since;
		this.#since = -1;
	}
}
