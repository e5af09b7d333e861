/** Notices that another server reports to the cluster with the ID of this machine, for example because its disk was copied. */
import type { Clock } from '../clock/clock.ts';
import { SAME_ID_HINT } from '../cluster/rollout-summary.ts';
import type { ProcessIdentity } from '../cluster/shared-rollout.ts';
import type { PublicationLog } from './publication-log.ts';

/** A warning is logged once this many reports with this machine's ID have come from another process. */
const MIN_OTHER_REPORTS = 3;
/** Another process with this machine's ID is assumed to have ended after this many milliseconds without a report. */
const FORGET_OTHER_PROCESS_MS = 30_000;

/** Counts the reports of another process with the same ID. */
export class SameMachineId {
	readonly #machine: string;
	readonly #log: PublicationLog;
	readonly #clock: Clock;
	/** The other process, how often it was noticed, and when last, by {@link Clock.threadNow}. */
	#other: { readonly process: ProcessIdentity; readonly count: number; readonly at: number } | undefined;

	constructor(machine: string, log: PublicationLog, clock: Clock) {
		this.#machine = machine;
		this.#log = log;
		this.#clock = clock;
	}

	/** The other process, once it has been noticed often enough. */
	get otherProcess(): ProcessIdentity | undefined {
		return this.#other && this.#other.count >= MIN_OTHER_REPORTS ? this.#other.process : undefined;
	}

	/**
	 * Notes that the answer to a report names another process with the same ID; undefined if it names none. It is not enough to see it
	 * once, because during a handover the last report of the previous process can arrive after the first one of the next.
	 */
	notice(other: ProcessIdentity | undefined): void {
		const now = this.#clock.threadNow();
		if (this.#other && now - this.#other.at > FORGET_OTHER_PROCESS_MS) this.#other = undefined;
		if (!other) return;
		const count = (this.#other?.count ?? 0) + 1;
		this.#other = { process: other, count, at: now };
		if (count !== MIN_OTHER_REPORTS) return;
		this.#log.write('warn', 'another server has the same machine ID', {
			machine: this.#machine,
			host: other.host,
			pid: other.pid,
			hint: SAME_ID_HINT,
		});
	}
}
