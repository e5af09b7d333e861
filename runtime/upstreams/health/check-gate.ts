/** Lets only so many health checks run at once: a configuration of thousands of pools is not checked in one burst. */

/** A gate for tasks; those that must wait go in the order in which they came. */
export class CheckGate {
	#free: number;
	readonly #waiting: (() => void)[] = [];

	constructor(places: number) {
		this.#free = places;
	}

	/** Runs a task when there is a place. Rejects as the task does. */
	async run<T>(task: () => Promise<T>): Promise<T> {
		if (this.#free > 0) this.#free--;
		else await new Promise<void>(resolve => this.#waiting.push(resolve));
		try {
			return await task();
		} finally {
			const next = this.#waiting.shift();
			if (next) next();
			else this.#free++;
		}
	}
}
