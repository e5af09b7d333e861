/** Limits concurrent health checks, so that a configuration with thousands of pools is not checked in one burst. */

/** Limits concurrent tasks; waiting tasks run in order of arrival. */
export class CheckGate {
	#free: number;
	readonly #waiting: (() => void)[] = [];

	constructor(places: number) {
		this.#free = places;
	}

	/** Runs a task as soon as a slot is free. Settles like the task's promise. */
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
