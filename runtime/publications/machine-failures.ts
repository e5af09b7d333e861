/** The failures of this machine to load or to serve publications, which it reports to the cluster. */
import type { Clock } from '../clock/clock.ts';
import {
	identityOf,
	isSamePublication,
	type MachineFailure,
	type PublicationNumber,
	type Rollout,
} from '../cluster/rollout-decision.ts';

/** Maximum characters of the reason of a failure. */
const MAX_REASON_CHARS = 500;

/** The latest failure of each publication that the machine may be told to serve. */
export class MachineFailures {
	/** Number of failures of each kind since the process started. */
	readonly counts: Record<MachineFailure['kind'], number> = { refused: 0, machine: 0, errors: 0, unready: 0, ended: 0 };
	readonly #clock: Clock;
	/** The latest failure of each publication, and when it happened, by {@link Clock.threadNow}. */
	readonly #latest = new Map<PublicationNumber, MachineFailure & { readonly at: number }>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** The latest failure of each publication, in the order in which they happened. */
	get all(): MachineFailure[] {
		return Array.from(this.#latest.values(), ({ at: _, ...failure }) => failure);
	}

	/** Returns the latest failure of a publication, and when it happened. */
	of(publication: PublicationNumber): (MachineFailure & { readonly at: number }) | undefined {
		return this.#latest.get(publication);
	}

	record(failure: MachineFailure): void {
		this.counts[failure.kind]++;
		const reason = failure.reason.slice(0, MAX_REASON_CHARS).replace(/\.$/, '');
		this.#latest.delete(failure.publication);
		this.#latest.set(failure.publication, { ...failure, reason, at: this.#clock.threadNow() });
	}

	/** Forgets the failure of a publication, because it has been loaded. */
	forget(publication: PublicationNumber): void {
		this.#latest.delete(publication);
	}

	/** Forgets the failures of publications to which the rollout no longer refers. */
	forgetAllBut(rollout: Rollout | undefined): void {
		for (const { publication: number, identity } of this.#latest.values()) {
			const isCurrent =
				rollout !== undefined &&
				(number === rollout.publication || number === rollout.previous) &&
				isSamePublication({ number, identity }, { number, identity: identityOf(rollout, number) });
			if (!isCurrent) this.#latest.delete(number);
		}
	}
}
