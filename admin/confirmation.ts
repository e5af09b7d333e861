/**
 * Rolls loads back unless they are confirmed in time. Operators who lock themselves out or break something get the previous
 * configuration back.
 */
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';

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

/** An applied load that awaits its confirmation. */
interface Pending {
	readonly generation: number;
	/** Deadline, in milliseconds since 1970. */
	readonly until: number;
	/** JSON of the previous document, secrets included. */
	readonly before: string;
	readonly timers: { readonly end: NodeJS.Timeout; readonly look: NodeJS.Timeout | undefined };
}

/** A load whose rollback failed. */
type Stuck = Pick<Pending, 'generation' | 'before'>;

/** Called after a rollback, successful or not, with the load's generation, the cause, and the outcome. */
export type OnReverted = (generation: number, cause: string, outcome: LoadOutcome) => void;

/** Manages the pending load, of which there is at most one. */
export class Confirmation {
	readonly #runtime: RuntimeControl;
	readonly #reverted: OnReverted;
	#pending: Pending | undefined = undefined;
	/** Set while a load whose rollback failed is still being served. Another rollback may be requested. */
	#stuck: Stuck | undefined = undefined;

	constructor(runtime: RuntimeControl, reverted: OnReverted) {
		this.#runtime = runtime;
		this.#reverted = reverted;
	}

	/** The pending load, if any. `until` is in milliseconds since 1970. */
	get pending(): { readonly generation: number; readonly until: number } | undefined {
		const pending = this.#pending;
		const { generation } = this.#runtime;
		if (pending?.generation !== generation) this.#forget();
		if (this.#stuck?.generation !== generation) this.#stuck = undefined;
		return this.#pending && pending && { generation: pending.generation, until: pending.until };
	}

	/** Starts to wait for the confirmation of a load that has just been applied; `before` is the document it replaced. */
	await(generation: number, before: string, { within, maxErrorRate }: ConfirmationTerms): void {
		this.#forget();
		this.#stuck = undefined;
		const start = this.#runtime.traffic;
		const look = (): void => {
			const { requests, serverErrors } = this.#runtime.traffic;
			const answers = requests - start.requests;
			if (answers < FEWEST_ANSWERS) return;
			const rate = (serverErrors - start.serverErrors) / answers;
			if (rate > maxErrorRate!) void this.revert(`${(rate * 100).toFixed(1)} % of ${answers} responses were errors`);
		};
		this.#pending = {
			generation,
			until: Date.now() + within,
			before,
			timers: {
				end: setTimeout(() => void this.revert('not confirmed in time'), within),
				look: maxErrorRate === undefined ? undefined : setInterval(look, LOOK_INTERVAL),
			},
		};
	}

	/** Keeps the pending load. Returns its generation, or undefined if none is pending. */
	confirm(): number | undefined {
		const generation = this.pending?.generation;
		this.#forget();
		return generation;
	}

	/**
	 * Rolls back the pending load, or one whose earlier rollback failed. Resolves to undefined if there is neither.
	 */
	async revert(cause: string): Promise<LoadOutcome | undefined> {
		const taken = this.#pending ?? this.#stuck;
		if (!taken) return undefined;
		this.#forget();
		this.#stuck = undefined;
		const { generation, before } = taken;
		// A configuration that was loaded since then is intended, and must not be undone.
		if (this.#runtime.generation !== generation) return undefined;
		let outcome: LoadOutcome;
		for (let tries = 1; ; tries++) {
			outcome = await this.#load(before);
			if (outcome.result !== 'failed' || tries === MAX_TRIES || this.#runtime.generation !== generation) break;
			await new Promise(resolve => setTimeout(resolve, RETRY_DELAY));
		}
		const succeeded = outcome.result === 'applied';
		if (!succeeded && this.#runtime.generation === generation) this.#stuck = { generation, before };
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

	#forget(): void {
		clearTimeout(this.#pending?.timers.end);
		clearInterval(this.#pending?.timers.look);
		this.#pending = undefined;
	}
}
