/** A queue that runs a bounded number of tasks at a time and takes turns between their owners (round robin). */
export class FairQueue {
	readonly #maxRunning: number;
	readonly #mostWaiting: number;
	#runningCount = 0;
	/** Waiting tasks by owner. The owners are in the order of their turns. */
	readonly #waiting = new Map<string, (() => Promise<void>)[]>();

	/**
	 * @param most Maximum tasks running at a time.
	 * @param mostWaiting Maximum waiting tasks per owner.
	 */
	constructor(most: number, mostWaiting: number) {
		this.#maxRunning = most;
		this.#mostWaiting = mostWaiting;
	}

	/** Runs a task, which must not reject, when its turn comes. Returns false if too many tasks of the owner are waiting. */
	add(owner: string, task: () => Promise<void>): boolean {
		if (this.#runningCount < this.#maxRunning) {
			this.#runningCount++;
			void this.#run(task);
			return true;
		}
		const own = this.#waiting.get(owner);
		if (own === undefined) this.#waiting.set(owner, [task]);
		else if (own.length >= this.#mostWaiting) return false;
		else own.push(task);
		return true;
	}

	async #run(task: () => Promise<void>): Promise<void> {
		let next: (() => Promise<void>) | undefined = task;
		while (next) {
			await next();
			next = this.#next();
		}
		this.#runningCount--;
	}

	#next(): (() => Promise<void>) | undefined {
		const turn = this.#waiting.entries().next().value;
		if (turn === undefined) return undefined;
		const [owner, tasks] = turn;
		const task = tasks.shift()!;
		// An owner with more tasks moves to the end, and waits there for the next turn.
		this.#waiting.delete(owner);
		if (tasks.length > 0) this.#waiting.set(owner, tasks);
		return task;
	}
}
