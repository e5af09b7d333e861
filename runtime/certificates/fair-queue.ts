/** A queue that runs a bounded number of tasks at a time and takes turns between their owners (round robin). */
export class FairQueue {
	readonly #most: number;
	readonly #mostWaiting: number;
	#running = 0;
	/** Waiting tasks by owner, in the order of turns. */
	readonly #waiting = new Map<string, (() => Promise<void>)[]>();

	/**
	 * @param most Maximum tasks running at a time.
	 * @param mostWaiting Maximum waiting tasks per owner.
	 */
	constructor(most: number, mostWaiting: number) {
		this.#most = most;
		this.#mostWaiting = mostWaiting;
	}

	/** Runs a task, which must not reject, when its turn comes. Returns false if too many tasks of the owner are waiting. */
	add(owner: string, task: () => Promise<void>): boolean {
		if (this.#running < this.#most) {
			this.#running++;
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
		this.#running--;
	}

	#next(): (() => Promise<void>) | undefined {
		const turn = this.#waiting.entries().next().value;
		if (turn === undefined) return undefined;
		const [owner, tasks] = turn;
		const task = tasks.shift()!;
		// Owners with more tasks wait for another turn at the end.
		this.#waiting.delete(owner);
		if (tasks.length > 0) this.#waiting.set(owner, tasks);
		return task;
	}
}
