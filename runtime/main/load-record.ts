/** The history of loads since the start, for metrics. */
import type { LoadOutcome } from './control.ts';

/** The result of the last load, and the time of the last successful one. */
export interface LastReload {
	readonly isSuccessful: boolean;
	/** Time of the last successful load, in seconds since 1970; 0 if there was none. */
	readonly lastSuccessAt: number;
}

/** The rollbacks since the start. */
export interface RollbackHistory {
	readonly succeeded: number;
	readonly failed: number;
	/** True if the last rollback failed, so that the load that it should have undone is still being served. */
	readonly isStuck: boolean;
}

export class LoadRecord {
	#lastReload: LastReload = { isSuccessful: true, lastSuccessAt: 0 };
	#rollbackSuccesses = 0;
	#rollbackFailures = 0;
	/** The generation that a failed rollback left in place. */
	#stuckGeneration: number | undefined;

	get lastReload(): LastReload {
		return this.#lastReload;
	}

	/** Records that the initial configuration is being served. */
	recordStart(): void {
		this.#lastReload = { isSuccessful: true, lastSuccessAt: Date.now() / 1000 };
	}

	recordLoad({ result }: LoadOutcome): void {
		const isSuccessful = result === 'applied';
		this.#lastReload = {
			isSuccessful,
			lastSuccessAt: isSuccessful ? Date.now() / 1000 : this.#lastReload.lastSuccessAt,
		};
	}

	/** Records a rollback. `generation` is the generation that is served afterwards. */
	recordRollback(succeeded: boolean, generation: number): void {
		if (succeeded) this.#rollbackSuccesses++;
		else this.#rollbackFailures++;
		this.#stuckGeneration = succeeded ? undefined : generation;
	}

	/** Returns the rollbacks so far. `generation` is the generation that is being served. */
	rollbacks(generation: number): RollbackHistory {
		return {
			succeeded: this.#rollbackSuccesses,
			failed: this.#rollbackFailures,
			isStuck: this.#stuckGeneration === generation,
		};
	}
}
