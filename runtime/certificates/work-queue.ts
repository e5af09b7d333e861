/** Runs a bounded number of tasks at a time, in the order in which they came. */

/** A queue of tasks. */
export class WorkQueue {
	readonly #most: number;
	#running = 0;
	readonly #waiting: (() => void)[] = [];

	/** `most`: tasks that run at one time. */
	constructor(most: number) {
		this.#most = most;
	}

	/** Tasks that run or wait. */
	get size(): number {
		return this.#running + this.#waiting.length;
	}

	/** Runs a task when its turn comes. */
	async run<T>(task: () => Promise<T>): Promise<T> {
		if (this.#running >= this.#most) await new Promise<void>(resolve => this.#waiting.push(resolve));
		else this.#running++;
		try {
			return await task();
		} finally {
			// The place goes to the next without being free in between, so that nobody overtakes.
			const next = this.#waiting.shift();
			if (next) next();
			else this.#running--;
		}
	}
}

/** Does something for each of many, so many at a time. */
export async function forEachOf<T>(items: Iterable<T>, most: number, task: (item: T) => Promise<void>): Promise<void> {
	const iterator = items[Symbol.iterator]();
	const worker = async (): Promise<void> => {
		for (let next = iterator.next(); !next.done; next = iterator.next()) await task(next.value);
	};
	await Promise.all(Array.from({ length: most }, worker));
}
