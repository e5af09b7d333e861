/**
 * Rolls loads back unless they are confirmed in time. Operators who lock themselves out or break something get the previous
 * configuration back.
 */
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';
import type { HandoverResult } from '../runtime/main/handover/successor-process.ts';

/** The terms of a load that must be confirmed. */
export interface ConfirmationTerms {
	/** Milliseconds until the rollback. */
	readonly within: number;
	/** Share of responses with a status of 500 or more, 0 to 1, above which the load is rolled back at once. */
	readonly maxErrorRate: number | undefined;
}

/** Milliseconds between checks of the error rate. */
const LOOK_INTERVAL = 250;

/** Minimum number of responses for judging the error rate. */
const FEWEST_ANSWERS = 20;

/** A rollback is retried if a thread dies meanwhile, which the loaded configuration may cause. The delay is in milliseconds. */
const MAX_TRIES = 20;
const RETRY_DELAY = 500;

/** The outcome of a rollback. After a handover, another process serves the previous configuration. */
export type RollbackOutcome =
	| LoadOutcome
	| ({ readonly result: 'handed_over' } & Omit<Extract<HandoverResult, { result: 'done' }>, 'result'>);

/** What has been applied, and how it is undone. */
export interface Revertible {
	readonly generation: number;
	/** True to save the configuration for `run --resume` once it is confirmed. */
	readonly saves: boolean;
	/** Restores the previous configuration. Never rejects. */
	readonly rollBack: () => Promise<RollbackOutcome>;
	/** Called once the configuration has been confirmed, or replaced on purpose. */
	readonly onKept?: () => void;
}

/** An applied load that awaits its confirmation. */
interface Pending {
	readonly load: Revertible;
	/** Deadline, in milliseconds since 1970. */
	readonly until: number;
	readonly timers: { readonly end: NodeJS.Timeout; readonly look: NodeJS.Timeout | undefined };
}

/** Called after a rollback, successful or not, with the load's generation, the cause, and the outcome. */
export type OnReverted = (generation: number, cause: string, outcome: RollbackOutcome) => void;

/** Manages the pending load, of which there is at most one. */
export class Confirmation {
	readonly #runtime: RuntimeControl;
	readonly #reverted: OnReverted;
	#pending: Pending | undefined = undefined;
	/** Set while a load whose rollback failed is still being served. Another rollback may be requested. */
	#stuck: Revertible | undefined = undefined;
	/** The generation that is being rolled back. */
	#reverting: number | undefined = undefined;

	constructor(runtime: RuntimeControl, reverted: OnReverted) {
		this.#runtime = runtime;
		this.#reverted = reverted;
	}

	/** The pending load, if any. `until` is in milliseconds since 1970. */
	get pending(): { readonly generation: number; readonly until: number } | undefined {
		this.#forgetReplaced();
		const pending = this.#pending;
		return pending && { generation: pending.load.generation, until: pending.until };
	}

	/** The generation that is being rolled back at the moment, if any. */
	get reverting(): number | undefined {
		return this.#reverting;
	}

	/** Starts to wait for the confirmation of a load that has just replaced the document `before`. */
	awaitLoad(generation: number, before: string, terms: ConfirmationTerms): void {
		this.await({ generation, saves: true, rollBack: () => this.#load(before) }, terms);
	}

	/** Starts to wait for a confirmation. Returns the deadline, in milliseconds since 1970. */
	await(load: Revertible, { within, maxErrorRate }: ConfirmationTerms): number {
		this.#forget();
		this.#stuck = undefined;
		const start = this.#runtime.traffic;
		const look = (): void => {
			const { requests, serverErrors } = this.#runtime.traffic;
			this.#forgetReplaced();
			const answers = requests - start.requests;
			if (answers < FEWEST_ANSWERS) return;
			const rate = (serverErrors - start.serverErrors) / answers;
			if (rate > maxErrorRate!) void this.revert(`${(rate * 100).toFixed(1)} % of ${answers} responses were errors`);
		};
		const until = Date.now() + within;
		this.#pending = {
			load,
			until,
			timers: {
				end: setTimeout(() => void this.revert('not confirmed in time'), within),
				look: maxErrorRate === undefined ? undefined : setInterval(look, LOOK_INTERVAL),
			},
		};
		return until;
	}

	/** Keeps the pending load, and returns it; undefined if none is pending. */
	confirm(): Revertible | undefined {
		this.#forgetReplaced();
		const load = this.#pending?.load;
		this.#forget();
		load?.onKept?.();
		return load;
	}

	/**
	 * Rolls back the pending load, or one whose earlier rollback failed. Resolves to undefined if there is neither.
	 */
	async revert(cause: string): Promise<RollbackOutcome | undefined> {
		this.#forgetReplaced();
		const taken = this.#pending?.load ?? this.#stuck;
		if (!taken) return undefined;
		this.#forget();
		this.#stuck = undefined;
		const { generation } = taken;
		this.#reverting = generation;
		let outcome: RollbackOutcome;
		for (let tries = 1; ; tries++) {
			outcome = await taken.rollBack();
			if (outcome.result !== 'failed' || tries === MAX_TRIES || this.#runtime.generation !== generation) break;
			await new Promise(resolve => setTimeout(resolve, RETRY_DELAY));
		}
		this.#reverting = undefined;
		const succeeded = outcome.result === 'applied' || outcome.result === 'handed_over';
		if (!succeeded && this.#runtime.generation === generation) this.#stuck = taken;
		this.#runtime.countRollback(succeeded);
		this.#reverted(generation, cause, outcome);
		return outcome;
	}

	/** Never rejects, because nobody awaits a rollback started by a timer. */
	async #load(text: string): Promise<LoadOutcome> {
		try {
			return await this.#runtime.load({ format: 'json', text, name: 'the previous configuration' });
		} catch (error) {
			return { result: 'failed', message: error instanceof Error ? error.message : String(error) };
		}
	}

	/** Stops the timers. */
	close(): void {
		this.#forget();
	}

	/** Forgets a load that another one has replaced, which was intended and must not be undone. */
	#forgetReplaced(): void {
		const { generation } = this.#runtime;
		const replaced = this.#pending?.load;
		if (replaced !== undefined && replaced.generation !== generation) {
			this.#forget();
			replaced.onKept?.();
		}
		const stuck = this.#stuck;
		if (stuck !== undefined && stuck.generation !== generation) {
			this.#stuck = undefined;
			stuck.onKept?.();
		}
	}

	#forget(): void {
		clearTimeout(this.#pending?.timers.end);
		clearInterval(this.#pending?.timers.look);
		this.#pending = undefined;
	}
}
