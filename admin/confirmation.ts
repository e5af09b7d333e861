/**
 * Loads that are taken back unless someone confirms them in time: whoever cuts off his own access, or breaks what he did
 * not test, gets the former configuration back.
 */
import type { LoadOutcome, RuntimeControl } from '../runtime/main/control.ts';

/** What a load asks for. */
export interface ConfirmationTerms {
	/** Milliseconds to confirm in. */
	readonly within: number;
	/** Share of answers with a status of 500 or more, 0 to 1, beyond which the load is taken back at once; undefined: none. */
	readonly maxErrorRate: number | undefined;
}

/** Milliseconds between looks at the error rate. */
const LOOK_INTERVAL = 250;

/** Answers before which a rate says nothing. */
const FEWEST_ANSWERS = 20;

/** Times that going back is tried when a thread dies meanwhile, as what was loaded may make them do; milliseconds between. */
const MOST_TRIES = 20;
const RETRY_DELAY = 500;

/** A load that has been applied and waits. */
interface Pending {
	readonly generation: number;
	/** Milliseconds since 1970. */
	readonly until: number;
	/** JSON of the document before, secrets included. */
	readonly before: string;
	readonly timers: { readonly end: NodeJS.Timeout; readonly look: NodeJS.Timeout | undefined };
}

/** A load that could not be taken back. */
type Stuck = Pick<Pending, 'generation' | 'before'>;

/** Told that a load was, or could not be, taken back: its generation, why it was to be, and what came of that. */
export type Reverted = (generation: number, cause: string, outcome: LoadOutcome) => void;

/** The one load that may be waiting. */
export class Confirmation {
	readonly #runtime: RuntimeControl;
	readonly #reverted: Reverted;
	#pending: Pending | undefined = undefined;
	/** It is still being served, and another attempt may be asked for. */
	#stuck: Stuck | undefined = undefined;

	constructor(runtime: RuntimeControl, reverted: Reverted) {
		this.#runtime = runtime;
		this.#reverted = reverted;
	}

	/** The load that waits, if one does. `until` in milliseconds since 1970. */
	get pending(): { readonly generation: number; readonly until: number } | undefined {
		const pending = this.#pending;
		const { generation } = this.#runtime;
		if (pending?.generation !== generation) this.#forget();
		if (this.#stuck?.generation !== generation) this.#stuck = undefined;
		return this.#pending && pending && { generation: pending.generation, until: pending.until };
	}

	/** Begins to wait for the confirmation of a load that has just been applied; `before` is what it replaced. */
	await(generation: number, before: string, { within, maxErrorRate }: ConfirmationTerms): void {
		this.#forget();
		this.#stuck = undefined;
		const start = this.#runtime.traffic;
		const look = (): void => {
			const { requests, serverErrors } = this.#runtime.traffic;
			const answers = requests - start.requests;
			if (answers < FEWEST_ANSWERS) return;
			const rate = (serverErrors - start.serverErrors) / answers;
			if (rate > maxErrorRate!) void this.revert(`${(rate * 100).toFixed(1)} % of ${answers} answers were errors`);
		};
		this.#pending = {
			generation,
			until: Date.now() + within,
			before,
			timers: {
				end: setTimeout(() => void this.revert('it was not confirmed in time'), within),
				look: maxErrorRate === undefined ? undefined : setInterval(look, LOOK_INTERVAL),
			},
		};
	}

	/** Keeps the load that waits; its generation, or undefined when none does. */
	confirm(): number | undefined {
		const generation = this.pending?.generation;
		this.#forget();
		return generation;
	}

	/**
	 * Goes back to what was served before the load that waits, or before one that could not be taken back; undefined when there
	 * is neither.
	 */
	async revert(cause: string): Promise<LoadOutcome | undefined> {
		const taken = this.#pending ?? this.#stuck;
		if (!taken) return undefined;
		this.#forget();
		this.#stuck = undefined;
		const { generation, before } = taken;
		// A file that was reloaded since is someone's newer will.
		if (this.#runtime.generation !== generation) return undefined;
		let outcome: LoadOutcome;
		for (let tries = 1; ; tries++) {
			outcome = await this.#load(before);
			if (outcome.result !== 'failed' || tries === MOST_TRIES || this.#runtime.generation !== generation) break;
			await new Promise(resolve => setTimeout(resolve, RETRY_DELAY));
		}
		const succeeded = outcome.result === 'applied';
		if (!succeeded && this.#runtime.generation === generation) this.#stuck = { generation, before };
		this.#runtime.countRollback(succeeded);
		this.#reverted(generation, cause, outcome);
		return outcome;
	}

	/** Never rejects: nobody waits for what a timer began. */
	async #load(text: string): Promise<LoadOutcome> {
		try {
			return await this.#runtime.load({ format: 'json', text, name: 'the former configuration' });
		} catch (error) {
			return { result: 'failed', message: error instanceof Error ? error.message : String(error) };
		}
	}

	/** No more timers. */
	close(): void {
		this.#forget();
	}

	#forget(): void {
		clearTimeout(this.#pending?.timers.end);
		clearInterval(this.#pending?.timers.look);
		this.#pending = undefined;
	}
}
