/** Limits concurrent health checks, so that a configuration with thousands of pools is not checked in one burst. */

/** Limits concurrent tasks; waiting tasks run in order of arrival. */
export class CheckGate {
	#freeSlots: number;
	readonly #waitingTasks: (() => void)[] = [];

	constructor(maxConcurrent: number) {
		this.#freeSlots = maxConcurrent;
	}

	/** Runs a task as soon as a slot is free. Settles like the task's promise. */
	async run<T>(task: () => Promise<T>): Promise<T> {
		if (this.#freeSlots > 0) this.#freeSlots--;
		else await new Promise<void>(resolve => this.#waitingTasks.push(resolve));
		try {
			return await task();
		} finally {
			const startNext = this.#waitingTasks.shift();
			if (startNext) startNext();
			else this.#freeSlots++;
		}
	}
}
