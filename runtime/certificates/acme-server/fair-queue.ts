/** A queue that runs a bounded number of tasks at a time and takes turns between their owners (round robin). */
export class FairQueue {
	readonly #maxRunning: number;
	readonly #maxWaiting: number;
	#runningCount = 0;
	/** Waiting tasks by owner. The owner whose turn is next comes first. */
	readonly #waitingByOwner = new Map<string, (() => Promise<void>)[]>();

	/**
	 * @param maxRunning Maximum number of tasks running at a time.
	 * @param maxWaiting Maximum number of waiting tasks per owner.
	 */
	constructor(maxRunning: number, maxWaiting: number) {
		this.#maxRunning = maxRunning;
		this.#maxWaiting = maxWaiting;
	}

	/** Runs a task, which must not reject, when its turn comes. Returns false if too many tasks of the owner are waiting. */
	add(owner: string, task: () => Promise<void>): boolean {
		if (this.#runningCount < this.#maxRunning) {
			this.#runningCount++;
			void this.#runTasks(task);
			return true;
		}
		const ownerTasks = this.#waitingByOwner.get(owner);
		if (ownerTasks === undefined) this.#waitingByOwner.set(owner, [task]);
		else if (ownerTasks.length >= this.#maxWaiting) return false;
		else ownerTasks.push(task);
		return true;
	}

	async #runTasks(task: () => Promise<void>): Promise<void> {
		let currentTask: (() => Promise<void>) | undefined = task;
		while (currentTask) {
			await currentTask();
			currentTask = this.#takeNext();
		}
		this.#runningCount--;
	}

	#takeNext(): (() => Promise<void>) | undefined {
		const firstEntry = this.#waitingByOwner.entries().next().value;
		if (firstEntry === undefined) return undefined;
		const [owner, tasks] = firstEntry;
		const task = tasks.shift()!;
		// An owner that has more waiting tasks moves to the end of the map, where it waits for its next turn.
		this.#waitingByOwner.delete(owner);
		if (tasks.length > 0) this.#waitingByOwner.set(owner, tasks);
		return task;
	}
}
