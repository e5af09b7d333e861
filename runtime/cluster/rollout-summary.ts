/** The rollout of a cluster as `svc rollout status` and `GET /rollout` show it. */
import { isLive, machineRank, type RolloutPhase, wantedPublication } from './rollout-decision.ts';
import type { FleetReport, ProcessIdentity, RolloutReading } from './shared-rollout.ts';

/** What to do if two servers have the same machine ID. */
export const SAME_ID_HINT =
	'A rollout counts them as one machine. Stop one of them, delete publications/machine-id in its state directory, and start it again. Servers on the same machine need a state directory each.';

/** The state of one machine in a rollout. */
export interface MachineSummary {
	readonly machine: string;
	readonly host: string;
	readonly pid: number;
	readonly version: string;
	/** Number of the publication that the machine serves; 0 for the configuration in its own file. */
	readonly serves: number;
	/** Number of the publication that the rollout wants the machine to serve. */
	readonly wanted: number;
	readonly ready: boolean;
	/** True if the machine no longer reports. */
	readonly lost: boolean;
	/** Number of responses since the machine began to serve the publication; `server_errors` are those with status 500 or more. */
	readonly responses: number;
	readonly server_errors: number;
	/** Another process that reports with the same machine ID, for example because the disk of a machine was copied. */
	readonly same_id_as?: ProcessIdentity;
	/** The machine's latest failure to serve a publication. */
	readonly failure?: { readonly publication: number; readonly kind: string; readonly reason: string };
}

/** A rollout with the states of all machines. Times are in seconds since the epoch. */
export interface RolloutSummary {
	readonly publication: number;
	readonly previous: number;
	readonly phase: RolloutPhase;
	/** Number of the current wave, from 1; 0 before the first one. */
	readonly wave: number;
	/** For each wave, the share of all machines that it and the waves before it admit. */
	readonly shares: readonly number[];
	readonly started_at: number;
	readonly observed_since?: number;
	readonly ended_at?: number;
	readonly reason?: string;
	readonly failed_machine?: string;
	/** The machines, in the order in which they are admitted. */
	readonly machines: readonly MachineSummary[];
}

/** Summarizes a reading of the rollout. Returns undefined if nothing was ever published. */
export function summarizeRollout({ rollout, reports, now }: RolloutReading): RolloutSummary | undefined {
	if (!rollout) return undefined;
	const { publication, previous, phase, terms, startedAt, observedSince, endedAt, reason, failedMachine } = rollout;
	const summarize = (report: FleetReport): MachineSummary => {
		const { machine, host, pid, version, serves, isReady, traffic, sameIdAs, failure } = report;
		const isLost = !isLive(report, now);
		return {
			machine,
			host,
			pid,
			version,
			serves,
			wanted: wantedPublication(rollout, report),
			ready: isReady,
			lost: isLost,
			responses: traffic.responses,
			server_errors: traffic.serverErrors,
			// Both processes write the same report, so if it is old, both have ended.
			...(sameIdAs && !isLost && { same_id_as: { host: sameIdAs.host, pid: sameIdAs.pid } }),
			...(failure && {
				failure: { publication: failure.publication, kind: failure.kind, reason: failure.reason },
			}),
		};
	};
	const orderedReports = [...reports].sort(
		(a, b) => machineRank(publication, a.machine) - machineRank(publication, b.machine),
	);
	return {
		publication,
		previous,
		phase,
		wave: rollout.wave + 1,
		shares: terms.shares,
		started_at: toSeconds(startedAt),
		...(observedSince !== undefined && { observed_since: toSeconds(observedSince) }),
		...(endedAt !== undefined && { ended_at: toSeconds(endedAt) }),
		...(reason !== undefined && { reason }),
		...(failedMachine !== undefined && { failed_machine: failedMachine }),
		machines: orderedReports.map(summarize),
	};
}

function toSeconds(milliseconds: number): number {
	return Math.round(milliseconds / 1000);
}
