/** Limits concurrent health checks, so that a configuration with thousands of pools is not checked in one burst. */

/** Limits concurrent tasks; waiting tasks run in order of arrival. */
export class CheckGate {
	#freeSlotCount: number;
	readonly #waitingTasks: (() => void)[] = [];

	constructor(maxConcurrent: number) {
		this.#freeSlotCount = maxConcurrent;
	}

	/** Runs a task as soon as a slot is free. Settles like the task's promise. */
	async run<T>(task: () => Promise<T>): Promise<T> {
		if (this.#freeSlotCount > 0) this.#freeSlotCount--;
		else await new Promise<void>(resolve => this.#waitingTasks.push(resolve));
		try {
			return await task();
		} finally {
			const startNext = this.#waitingTasks.shift();
			if (startNext) startNext();
			else this.#freeSlotCount++;
		}
	}
}
