/** A queue that runs a bounded number of tasks at a time, first in, first out. */
export class WorkQueue {
	readonly #maxRunning: number;
	#runningCount = 0;
	readonly #waiting: (() => void)[] = [];

	/** @param maxRunning Maximum number of tasks running at a time. */
	constructor(maxRunning: number) {
		this.#maxRunning = maxRunning;
	}

	/** Number of running and waiting tasks. */
	get size(): number {
		return this.#runningCount + this.#waiting.length;
	}

	/** Runs a task when its turn comes. */
	async run<T>(task: () => Promise<T>): Promise<T> {
		if (this.#runningCount >= this.#maxRunning) await new Promise<void>(resolve => this.#waiting.push(resolve));
		else this.#runningCount++;
		try {
			return await task();
		} finally {
			// The slot is handed to the next task directly, so that no later task can overtake it.
			const startNext = this.#waiting.shift();
			if (startNext) startNext();
			else this.#runningCount--;
		}
	}
}

/** Runs a task for each item, with at most `maxRunning` tasks at a time. */
export async function forEachConcurrently<T>(
	items: Iterable<T>,
	maxRunning: number,
	task: (item: T) => Promise<void>,
): Promise<void> {
	const iterator = items[Symbol.iterator]();
	const worker = async (): Promise<void> => {
		for (let nextItem = iterator.next(); !nextItem.done; nextItem = iterator.next()) await task(nextItem.value);
	};
	await Promise.all(Array.from({ length: maxRunning }, worker));
}
