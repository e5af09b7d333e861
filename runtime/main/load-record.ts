/** What became of loads since the start, as metrics show it. */
import type { LoadOutcome } from './control.ts';

/** How the last load went. */
export interface LastReload {
	readonly successful: boolean;
	/** When the last successful one was applied, in seconds since 1970; 0 for never. */
	readonly successAt: number;
}

/** Loads that were to be taken back. */
export interface Rollbacks {
	readonly succeeded: number;
	readonly failed: number;
	/** Whether the last one failed, and what it was to take back is still being served. */
	readonly stuck: boolean;
}

/** Records loads and rollbacks. */
export class LoadRecord {
	#lastReload: LastReload = { successful: true, successAt: 0 };
	#succeeded = 0;
	#failed = 0;
	/** The generation that a failed rollback has left in place. */
	#stuckAt: number | undefined;

	get lastReload(): LastReload {
		return this.#lastReload;
	}

	/** The configuration of the start is being served. */
	started(): void {
		this.#lastReload = { successful: true, successAt: Date.now() / 1000 };
	}

	/** Records a load. */
	loaded({ result }: LoadOutcome): void {
		const successful = result === 'applied';
		this.#lastReload = { successful, successAt: successful ? Date.now() / 1000 : this.#lastReload.successAt };
	}

	/** Records a rollback; `generation` is the one that is being served after it. */
	rolledBack(succeeded: boolean, generation: number): void {
		if (succeeded) this.#succeeded++;
		else this.#failed++;
		this.#stuckAt = succeeded ? undefined : generation;
	}

	/** Rollbacks so far; `generation` is the one that is being served. */
	rollbacks(generation: number): Rollbacks {
		return { succeeded: this.#succeeded, failed: this.#failed, stuck: this.#stuckAt === generation };
	}
}
