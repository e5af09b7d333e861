/**
 * Rolls loads back unless they are confirmed in time, so that operators who lock themselves out or break something get the previous
 * configuration back.
 */
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import type { HandoverResult } from '../runtime/main/handover/successor-process.ts';

/** The terms of a load that must be confirmed. */
export interface ConfirmationTerms {
	/** Milliseconds after the load until it is rolled back. */
	readonly within: number;
	/** Share of responses with a status of 500 or more, 0 to 1, above which the load is rolled back at once. */
	readonly maxErrorRate: number | undefined;
}

/** Milliseconds between checks of the error rate. */
const ERROR_CHECK_INTERVAL_MS = 250;

/** Minimum number of responses from which an error rate is computed. */
const MIN_RATED_RESPONSES = 20;

/**
 * Maximum number of attempts at a rollback, and the delay between them in milliseconds. A rollback is retried if a thread dies
 * meanwhile, which the loaded configuration may cause.
 */
const MAX_ROLLBACK_TRIES = 20;
const ROLLBACK_RETRY_DELAY_MS = 500;

/** The outcome of a rollback. After a rollback by handover, another process serves the previous configuration. */
export type RollbackOutcome =
	| LoadOutcome
	| ({ readonly result: 'handed_over' } & Omit<Extract<HandoverResult, { result: 'done' }>, 'result'>);

/** An applied load, and the way to undo it. */
export interface RevertibleLoad {
	readonly generation: number;
	/** True to save the configuration for `run --resume` once it is confirmed. */
	readonly shouldSave: boolean;
	/** Restores the previous configuration. Never rejects. */
	readonly rollBack: () => Promise<RollbackOutcome>;
	/** Called once the load can no longer be undone: it was confirmed, or another load has replaced it on purpose. */
	readonly onKept?: () => void;
}

/** An applied load that awaits its confirmation. */
interface PendingLoad {
	readonly load: RevertibleLoad;
	/** Deadline of the confirmation, in milliseconds since 1970. */
	readonly deadlineMs: number;
	readonly timers: { readonly deadline: NodeJS.Timeout; readonly errorCheck: NodeJS.Timeout | undefined };
}

/** Called after a rollback, successful or not, with the load's generation, the cause, and the outcome. */
export type RollbackListener = (generation: number, cause: string, outcome: RollbackOutcome) => void;

/** Manages the pending load, of which there is at most one. */
export class Confirmation {
	readonly #runtime: RuntimeControl;
	readonly #onRollback: RollbackListener;
	/**
	 * True if the configuration comes from the cluster. The pending load is then always a handover: this process has replaced
	 * another one and must be confirmed. Publications that it loads in the meantime do not end the wait.
	 */
	readonly #isConfiguredByCluster: boolean;
	#pendingLoad: PendingLoad | undefined = undefined;
	/** The load whose rollback failed, while it is still being served. Another rollback may be requested. */
	#failedRollback: RevertibleLoad | undefined = undefined;
	#revertingGeneration: number | undefined = undefined;

	constructor(runtime: RuntimeControl, onRollback: RollbackListener, isConfiguredByCluster = false) {
		this.#runtime = runtime;
		this.#onRollback = onRollback;
		this.#isConfiguredByCluster = isConfiguredByCluster;
	}

	/** The pending load, if any. `until` is in milliseconds since 1970. */
	get pending(): { readonly generation: number; readonly until: number } | undefined {
		this.#forgetReplacedLoads();
		const pendingLoad = this.#pendingLoad;
		return pendingLoad && { generation: this.#generationOf(pendingLoad.load), until: pendingLoad.deadlineMs };
	}

	/** The generation that is being rolled back at the moment, if any. */
	get revertingGeneration(): number | undefined {
		return this.#revertingGeneration;
	}

	/** Starts to wait for the confirmation of a load that has just replaced `previousDocument`. */
	awaitLoad(generation: number, previousDocument: string, terms: ConfirmationTerms): void {
		this.awaitConfirmation(
			{ generation, shouldSave: true, rollBack: () => this.#loadPrevious(previousDocument) },
			terms,
		);
	}

	/** Starts to wait for a confirmation on the given terms. Returns the deadline, in milliseconds since 1970. */
	awaitConfirmation(load: RevertibleLoad, { within: withinMs, maxErrorRate }: ConfirmationTerms): number {
		this.#clearPending();
		this.#failedRollback = undefined;
		const initialTraffic = this.#runtime.traffic;
		const checkErrorRate = (): void => {
			const { requests, serverErrors } = this.#runtime.traffic;
			this.#forgetReplacedLoads();
			const responses = requests - initialTraffic.requests;
			if (responses < MIN_RATED_RESPONSES) return;
			const errorRate = (serverErrors - initialTraffic.serverErrors) / responses;
			if (errorRate > maxErrorRate!)
				void this.revert(`${(errorRate * 100).toFixed(1)} % of ${responses} responses were errors`);
		};
		const deadlineMs = Date.now() + withinMs;
		this.#pendingLoad = {
			load,
			deadlineMs,
			timers: {
				deadline: setTimeout(() => void this.revert('not confirmed in time'), withinMs),
				errorCheck: maxErrorRate === undefined ? undefined : setInterval(checkErrorRate, ERROR_CHECK_INTERVAL_MS),
			},
		};
		return deadlineMs;
	}

	/** Confirms the pending load. Returns it with the generation that is served now; undefined if none is pending. */
	confirm(): RevertibleLoad | undefined {
		this.#forgetReplacedLoads();
		const load = this.#pendingLoad?.load;
		this.#clearPending();
		load?.onKept?.();
		return load && { ...load, generation: this.#generationOf(load) };
	}

	/** Rolls back the pending load, or a load whose earlier rollback failed. Resolves to undefined if there is no such load. */
	async revert(cause: string): Promise<RollbackOutcome | undefined> {
		this.#forgetReplacedLoads();
		const load = this.#pendingLoad?.load ?? this.#failedRollback;
		if (!load) return undefined;
		this.#clearPending();
		this.#failedRollback = undefined;
		const generation = this.#generationOf(load);
		this.#revertingGeneration = generation;
		let outcome: RollbackOutcome;
		for (let attempt = 1; ; attempt++) {
			outcome = await load.rollBack();
			if (outcome.result !== 'failed' || attempt === MAX_ROLLBACK_TRIES || this.#isReplaced(load)) break;
			await new Promise(resolve => setTimeout(resolve, ROLLBACK_RETRY_DELAY_MS));
		}
		this.#revertingGeneration = undefined;
		const hasSucceeded = outcome.result === 'applied' || outcome.result === 'handed_over';
		if (!hasSucceeded && !this.#isReplaced(load)) this.#failedRollback = load;
		this.#runtime.countRollback(hasSucceeded);
		this.#onRollback(generation, cause, outcome);
		return outcome;
	}

	/** Loads the previous configuration, `documentText`. Never rejects, because nobody awaits a rollback started by a timer. */
	async #loadPrevious(documentText: string): Promise<LoadOutcome> {
		try {
			return await this.#runtime.load({ format: 'json', text: documentText, name: 'the previous configuration' });
		} catch (error) {
			return { result: 'failed', message: error instanceof Error ? error.message : String(error) };
		}
	}

	/** Stops the timers of the pending load. */
	close(): void {
		this.#clearPending();
	}

	/** Forgets a load that another load has intentionally replaced, because it must no longer be undone. */
	#forgetReplacedLoads(): void {
		const pendingLoad = this.#pendingLoad?.load;
		if (pendingLoad !== undefined && this.#isReplaced(pendingLoad)) {
			this.#clearPending();
			pendingLoad.onKept?.();
		}
		const failedRollback = this.#failedRollback;
		if (failedRollback !== undefined && this.#isReplaced(failedRollback)) {
			this.#failedRollback = undefined;
			failedRollback.onKept?.();
		}
	}

	/** Reports whether another load has intentionally replaced a load. */
	#isReplaced(load: RevertibleLoad): boolean {
		return this.#generationOf(load) !== this.#runtime.generation;
	}

	/**
	 * Returns the generation that a rollback of the load replaces: the one that the load made or, if the configuration comes from
	 * the cluster, the one that is served now.
	 */
	#generationOf(load: RevertibleLoad): number {
		return this.#isConfiguredByCluster ? this.#runtime.generation : load.generation;
	}

	#clearPending(): void {
		clearTimeout(this.#pendingLoad?.timers.deadline);
		clearInterval(this.#pendingLoad?.timers.errorCheck);
		this.#pendingLoad = undefined;
	}
}
