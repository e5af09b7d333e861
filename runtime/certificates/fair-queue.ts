/** Runs a bounded number of tasks at a time. Whoever has many gets one turn among the others for each of theirs. */

/** A queue of tasks of several. */
export class FairQueue {
	readonly #most: number;
	readonly #mostWaiting: number;
	#running = 0;
	/** By whose they are, in the order of turns. */
	readonly #waiting = new Map<string, (() => Promise<void>)[]>();

	/** `most`: tasks that run at one time. `mostWaiting`: tasks of one that wait. */
	constructor(most: number, mostWaiting: number) {
		this.#most = most;
		this.#mostWaiting = mostWaiting;
	}

	/** Runs a task, which must not reject, when its turn comes; false when too many of the same wait. */
	add(whose: string, task: () => Promise<void>): boolean {
		if (this.#running < this.#most) {
			this.#running++;
			void this.#run(task);
			return true;
		}
		const own = this.#waiting.get(whose);
		if (own === undefined) this.#waiting.set(whose, [task]);
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
		const [whose, tasks] = turn;
		const task = tasks.shift()!;
		// Behind the others, if there is more.
		this.#waiting.delete(whose);
		if (tasks.length > 0) this.#waiting.set(whose, tasks);
		return task;
	}
}
