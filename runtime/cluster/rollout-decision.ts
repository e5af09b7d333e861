/**
 * Decides how a published configuration spreads over the machines of a cluster. Everything here is a pure function of the rollout's
 * state, the reports of the machines and the time, so that a simulation can run the same decisions as the servers.
 *
 * A rollout admits machines in waves. The machines of a wave load the publication, and the next wave begins after they have served
 * it for a while without a failure. If one machine refuses the publication, or if more machines fail than {@link TOLERATED_LOSS}
 * allows, every machine returns to the publication that it served before.
 *
 * Two functions decide. `nextRollout` runs on one machine at a time, the coordinator, which reads the reports of all machines.
 * `decideMachineStep` runs on every machine, and needs only the rollout's state and what the machine knows about itself.
 */
import { createHash } from 'node:crypto';

/** Milliseconds between two reports of a machine. With each report, it also reads the state of the rollout. */
export const REPORT_INTERVAL_MS = 1000;
/** Milliseconds without a report after which a machine is considered lost. */
export const LOST_AFTER_MS = 10_000;
/** Milliseconds for which a machine remains the coordinator without renewing its lease. */
export const COORDINATOR_LEASE_MS = 5000;
/**
 * Milliseconds without an answer of Redis after which a machine stops serving a publication that is still on trial, because the
 * rollout may have been stopped without the machine's knowledge.
 */
export const MAX_TRIAL_WITHOUT_CONTACT_MS = 30_000;
/**
 * Milliseconds for which a machine may be unready, for example while a thread is replaced, before this is treated as a failure.
 */
export const MAX_UNREADY_MS = 3000;
/** Milliseconds after which a machine that could not load a publication tries again, unless the publication is on trial. */
export const RETRY_FAILED_LOAD_MS = 10_000;
/** Minimum number of responses from which an error rate is computed. */
export const MIN_RATED_RESPONSES = 20;
/**
 * Number of standard deviations by which errors must exceed the rate that the rollout's terms allow before they are treated as a
 * failure. Among many machines, some have more errors than usual in their first responses merely by chance.
 */
const MIN_DEVIATIONS = 3;
/**
 * Share of a wave's machines that may fail without stopping the rollout. Machines that cannot load the publication always stop
 * it. In a large fleet, some machines always fail for other reasons. A wave of fewer than 20 machines tolerates no failure.
 */
const TOLERATED_LOSS = 0.05;

/** The text that introduces the reason of a failure of the kind `machine`. */
export const MACHINE_CAUSE = 'the cause lies with the machine';

/** The number of a publication, counted from 1. 0 stands for the configuration in each machine's own file. */
export type PublicationNumber = number;

/**
 * A reference to a publication. If Redis loses its data, a number can be given twice; the random identity tells such publications
 * apart. It is undefined for number 0, and for publications of earlier releases.
 */
export interface PublicationReference {
	readonly number: PublicationNumber;
	readonly identity?: string | undefined;
}

/** The terms of a rollout. They do not change while it runs. */
export interface RolloutTerms {
	/** For each wave, the share of all machines that it and the waves before it admit, in ascending order. The last share is 1. */
	readonly shares: readonly number[];
	/** Milliseconds for which all machines of a wave must serve without a failure before the next wave begins. */
	readonly observationMs: number;
	/** Milliseconds within which the machines of a wave must have loaded the publication. */
	readonly loadLimitMs: number;
	/** The rollout stops if the share of responses with a status of 500 or more rises by more than this, 0 to 1. */
	readonly maxErrorRateRise: number;
}

/** All phases; see {@link RolloutPhase}. */
export const ROLLOUT_PHASES = ['running', 'paused', 'completed', 'stopped', 'aborted'] as const;

/**
 * `completed`: all machines serve the publication, including those that start later. `stopped` (because of a failure) and `aborted`
 * (by an operator): all machines return to the previous publication.
 */
export type RolloutPhase = (typeof ROLLOUT_PHASES)[number];

/** The state of a rollout. Times are in milliseconds since 1970, by the clock of Redis. */
export interface Rollout {
	readonly publication: PublicationNumber;
	/** See {@link PublicationReference}. */
	readonly identity?: string | undefined;
	/** The publication that machines return to if the rollout is stopped or aborted. */
	readonly previous: PublicationNumber;
	readonly previousIdentity?: string | undefined;
	readonly terms: RolloutTerms;
	readonly phase: RolloutPhase;
	readonly startedAt: number;
	/** Index of the current wave in `terms.shares`; -1 before the first wave. */
	readonly wave: number;
	/** Machines whose {@link machineRank} is at most this may load the publication. -1 admits none, 1 admits all. */
	readonly admittedRank: number;
	readonly waveStartedAt: number;
	/** When all machines of the wave were first seen serving the publication; undefined before. */
	readonly observedSince?: number;
	/** When the rollout was completed, stopped or aborted. */
	readonly endedAt?: number;
	/** Why the rollout was stopped: a clause without a period. */
	readonly reason?: string;
	/** The machine whose failure stopped the rollout. */
	readonly failedMachine?: string;
}

/** A machine's failure to serve a publication, with the kind and the reason. */
export interface MachineFailure {
	readonly publication: PublicationNumber;
	/** See {@link PublicationReference}. */
	readonly identity?: string | undefined;
	/**
	 * `refused`: the machine could not load the publication. `machine`: the machine could not load it because of something on the
	 * machine itself, such as a port in use. `errors`: the error rate rose. `unready`: the machine was not ready. `ended`: the
	 * process ended unexpectedly while it served the publication.
	 */
	readonly kind: 'refused' | 'machine' | 'errors' | 'unready' | 'ended';
	/** A clause without a period. */
	readonly reason: string;
}

/** Numbers of responses since a machine began to serve its publication. */
export interface TrialTraffic {
	readonly responses: number;
	/** Number of responses with a status of 500 or more. */
	readonly serverErrors: number;
	/** The share of server errors before the machine loaded its publication, 0 to 1. */
	readonly errorRateBefore: number;
}

/** The publication that a machine serves, and whether it is final rather than on trial. */
export interface FinalPublication {
	readonly serves: PublicationNumber;
	/** Identity of the publication that the machine serves; see {@link PublicationReference}. */
	readonly identity?: string | undefined;
	/**
	 * When the publication that the machine serves was published, in milliseconds since 1970 by the clock of Redis. Undefined if the
	 * publication is on trial, and for number 0.
	 */
	readonly finalSince?: number | undefined;
}

/** What a machine reports about itself. */
export interface MachineReport {
	/** ID of the machine, which does not change when its process is replaced. */
	readonly machine: string;
	readonly serves: PublicationNumber;
	/** Identity of the publication that the machine serves; see {@link PublicationReference}. */
	readonly identity?: string | undefined;
	/** See {@link FinalPublication}. Earlier releases do not report it. */
	readonly finalSince?: number | undefined;
	/** Highest number of any publication that the machine knows, from Redis or its disk. Earlier releases do not report it. */
	readonly highestKnown?: PublicationNumber | undefined;
	readonly isReady: boolean;
	readonly traffic: TrialTraffic;
	readonly failure?: MachineFailure;
	/** When Redis received the report, in milliseconds since 1970 by the clock of Redis. */
	readonly reportedAt: number;
}

/** What a machine knows about itself. Times are by the machine's own clock. */
export interface MachineState {
	readonly machine: string;
	readonly serves: PublicationNumber;
	/** Identity of the publication that the machine serves; see {@link PublicationReference}. */
	readonly identity?: string | undefined;
	/** See {@link FinalPublication}. */
	readonly finalSince?: number | undefined;
	readonly traffic: TrialTraffic;
	/** Since when the machine has not been ready; undefined if it is ready. */
	readonly unreadySince: number | undefined;
	/** When Redis last answered. */
	readonly lastContactAt: number;
	/** The latest failure, and when it happened. */
	readonly failure: (MachineFailure & { readonly at: number }) | undefined;
}

/**
 * What a machine has to do next. `return`: the machine loads the earlier `publication`, and then reports `failure`, if there is
 * one. It stops reporting the failure if it later serves the failed publication.
 */
export type MachineStep =
	| { readonly step: 'none' }
	| { readonly step: 'load'; readonly publication: PublicationNumber }
	| {
			readonly step: 'return';
			readonly publication: PublicationNumber;
			readonly reason: string;
			readonly failure: MachineFailure | undefined;
	  };

/**
 * Returns the rank by which machines are admitted, lowest first, as a number from 0 to less than 1. The order is different for
 * each publication, so that the first machines are not always the same.
 */
export function machineRank(publication: PublicationNumber, machine: string): number {
	return createHash('sha256').update(`${publication} ${machine}`).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Returns a rollout that has admitted no machine yet. */
export function createRollout(
	publication: PublicationNumber,
	previous: PublicationNumber,
	terms: RolloutTerms,
	now: number,
	identities: Pick<Rollout, 'identity' | 'previousIdentity'> = {},
): Rollout {
	return {
		publication,
		previous,
		...identities,
		terms,
		phase: 'running',
		startedAt: now,
		wave: -1,
		admittedRank: -1,
		waveStartedAt: now,
	};
}

/** Reports whether two references may name the same publication. If either has no identity, only the numbers are compared. */
export function isSamePublication(one: PublicationReference, other: PublicationReference): boolean {
	const { identity } = one;
	return (
		one.number === other.number &&
		(identity === undefined || other.identity === undefined || identity === other.identity)
	);
}

/** Returns the identity of the rollout's publication or previous publication, by number; undefined for any other number. */
export function identityOf(rollout: Rollout, number: PublicationNumber): string | undefined {
	if (number === rollout.publication) return rollout.identity;
	return number === rollout.previous ? rollout.previousIdentity : undefined;
}

/** Reports whether a machine serves the publication that a rollout spreads. */
export function servesPublication(
	{ serves, identity }: Pick<MachineReport, 'serves' | 'identity'>,
	{ publication, identity: rolloutIdentity }: Rollout,
): boolean {
	return isSamePublication({ number: serves, identity }, { number: publication, identity: rolloutIdentity });
}

/**
 * Reports whether a machine serves a publication that the rollout does not know, because Redis has lost its data since it was
 * published. The rollout's previous publication is older than the one that the machine serves, so the machine changes only to the
 * rollout's new publication.
 */
export function servesFromBeforeDataLoss(
	machine: Pick<MachineReport, 'serves' | 'identity'>,
	rollout: Rollout,
): boolean {
	const { serves } = machine;
	return serves > rollout.publication || (serves === rollout.publication && !servesPublication(machine, rollout));
}

/**
 * Reports whether a rollout is older than the final publication that a machine serves. In that case, Redis was restored from an
 * old copy, or somebody without the cluster's key has put back what Redis contained before. The machine must not follow the
 * rollout, because it would return to an old publication. A rollout of the final publication itself is older if it has not ended.
 */
export function isOlderThanServed(rollout: Rollout, machine: FinalPublication): boolean {
	const { serves, finalSince } = machine;
	if (finalSince === undefined) return false;
	if (servesPublication(machine, rollout)) return isOnTrial(rollout);
	return serves >= rollout.publication && rollout.startedAt < finalSince;
}

/**
 * Returns the number of the next publication, and the publication that machines return to if its rollout fails. If Redis has lost
 * its data or contains an old rollout, they return to the publication that most machines serve, because the publication of a
 * single machine may still have been on trial.
 */
export function planPublication(
	rollout: Rollout | undefined,
	reports: readonly MachineReport[],
): { readonly number: PublicationNumber; readonly previous: PublicationReference } {
	const known = reports.map(({ serves, highestKnown }) => Math.max(serves, highestKnown ?? 0));
	const number = Math.max(rollout?.publication ?? 0, ...known) + 1;
	if (rollout && !reports.some(report => isOlderThanServed(rollout, report))) {
		const previousNumber = publicationAtStart(rollout);
		return { number, previous: { number: previousNumber, identity: identityOf(rollout, previousNumber) } };
	}
	const served = new Map<string, { readonly reference: PublicationReference; count: number }>();
	for (const { serves, identity } of reports) {
		const key = `${serves} ${identity}`;
		const entry = served.get(key) ?? { reference: { number: serves, identity }, count: 0 };
		entry.count++;
		served.set(key, entry);
	}
	const [mostServed] = [...served.values()].sort(
		(a, b) => b.count - a.count || b.reference.number - a.reference.number,
	);
	return { number, previous: mostServed?.reference ?? { number: 0 } };
}

/** Reports whether a rollout has not ended, so that its publication may still be withdrawn. */
export function isOnTrial({ phase }: Rollout): boolean {
	return phase === 'running' || phase === 'paused';
}

/** Returns the publication that a machine has to serve according to a rollout. */
export function publicationFor(rollout: Rollout, machine: string): PublicationNumber {
	if (rollout.phase === 'completed') return rollout.publication;
	if (!isOnTrial(rollout)) return rollout.previous;
	return machineRank(rollout.publication, machine) <= rollout.admittedRank ? rollout.publication : rollout.previous;
}

/**
 * Like {@link publicationFor}, but a machine keeps the publication that it serves if the rollout is older. A machine whose
 * publication Redis has lost changes only to the rollout's new publication.
 */
export function wantedPublication(
	rollout: Rollout,
	machine: FinalPublication & Pick<MachineReport, 'machine'>,
): PublicationNumber {
	if (isOlderThanServed(rollout, machine)) return machine.serves;
	const wanted = publicationFor(rollout, machine.machine);
	return wanted !== rollout.publication && servesFromBeforeDataLoss(machine, rollout) ? machine.serves : wanted;
}

/** Returns the publication that a machine serves if it starts now. A publication on trial must not be the first that it loads. */
export function publicationAtStart(rollout: Rollout): PublicationNumber {
	return rollout.phase === 'completed' ? rollout.publication : rollout.previous;
}

/**
 * Reports whether a report is recent. A report whose time is far in the future is old: the clock of Redis has since been set
 * back, or a server with another clock has become the master.
 */
export function isLive({ reportedAt }: Pick<MachineReport, 'reportedAt'>, now: number): boolean {
	return Math.abs(now - reportedAt) <= LOST_AFTER_MS;
}

/** Shifts the times of a rollout by the number of milliseconds by which the clock of Redis was changed. */
export function shiftRollout(rollout: Rollout, milliseconds: number): Rollout {
	const { startedAt, waveStartedAt, observedSince } = rollout;
	return {
		...rollout,
		startedAt: startedAt + milliseconds,
		waveStartedAt: waveStartedAt + milliseconds,
		...(observedSince !== undefined && { observedSince: observedSince + milliseconds }),
	};
}

/** Returns the next state of a rollout; the same object if nothing changes. `now` is the time of Redis. */
export function nextRollout(rollout: Rollout, reports: readonly MachineReport[], now: number): Rollout {
	if (!isOnTrial(rollout)) return rollout;
	const liveReports = reports.filter(report => isLive(report, now));
	if (rollout.wave < 0) return rollout.phase === 'running' ? startNextWave(rollout, liveReports, now) : rollout;
	const isAdmitted = ({ machine }: MachineReport): boolean =>
		machineRank(rollout.publication, machine) <= rollout.admittedRank;
	const admittedReports = liveReports.filter(isAdmitted);
	const lostReports = reports.filter(
		report =>
			now - report.reportedAt > LOST_AFTER_MS && report.reportedAt >= rollout.waveStartedAt && isAdmitted(report),
	);
	const failure = findFailure(rollout, admittedReports, lostReports, now);
	if (failure) return { ...rollout, phase: 'stopped', endedAt: now, ...failure };
	const observedUntil = (rollout.observedSince ?? now) + rollout.terms.observationMs;
	// A report sent before the end of the observation does not cover all of it.
	const isConfirmed = (report: MachineReport): boolean =>
		servesPublication(report, rollout) &&
		report.isReady &&
		(rollout.observedSince === undefined || report.reportedAt >= observedUntil);
	const confirmedCount = admittedReports.filter(isConfirmed).length;
	const waveSize = admittedReports.length + lostReports.length;
	// A machine that is stopped removes its report. If all machines of the wave have been stopped, the wave begins again with
	// others.
	const isDeserted = waveSize === 0 && liveReports.length > 0 && now - rollout.waveStartedAt > LOST_AFTER_MS;
	if (isDeserted && rollout.phase === 'running')
		return startNextWave({ ...rollout, wave: rollout.wave - 1 }, liveReports, now);
	// If no machine serves the publication, nothing was observed.
	if (confirmedCount === 0 || waveSize - confirmedCount > toleratedLoss(waveSize)) return rollout;
	if (rollout.observedSince === undefined) return { ...rollout, observedSince: now };
	if (rollout.phase === 'paused') return rollout;
	if (admittedReports.length < liveReports.length) return startNextWave(rollout, liveReports, now);
	return { ...rollout, phase: 'completed', admittedRank: 1, endedAt: now };
}

/** Returns what a machine has to do next. `now` is the time by the machine's own clock. */
export function decideMachineStep(rollout: Rollout, state: MachineState, now: number): MachineStep {
	const { previous } = rollout;
	if (isOnTrial(rollout) && servesPublication(state, rollout) && !isOlderThanServed(rollout, state)) {
		const failure = findOwnFailure(rollout, state, now);
		if (failure) return { step: 'return', publication: previous, reason: failure.reason, failure };
		if (now - state.lastContactAt > MAX_TRIAL_WITHOUT_CONTACT_MS) {
			const reason = 'Redis has not answered while the publication was on trial';
			return { step: 'return', publication: previous, reason, failure: undefined };
		}
	}
	// Without Redis, a machine cannot know whether the publication that it was told to load is still on trial.
	if (now - state.lastContactAt > LOST_AFTER_MS) return { step: 'none' };
	const wanted = publicationFor(rollout, state.machine);
	const served = { number: state.serves, identity: state.identity };
	if (isSamePublication(served, { number: wanted, identity: identityOf(rollout, wanted) })) return { step: 'none' };
	if (wantedPublication(rollout, state) !== wanted) return { step: 'none' };
	if (state.failure?.publication === wanted) {
		// Only a publication on trial must not be tried again, because its failure has to stop the rollout.
		const mayRetry = !isOnTrial(rollout) || wanted !== rollout.publication;
		if (!mayRetry || now - state.failure.at < RETRY_FAILED_LOAD_MS) return { step: 'none' };
	}
	return { step: 'load', publication: wanted };
}

/** Pauses a rollout: no further wave begins. A failure still stops it. Returns undefined if it is not running. */
export function pauseRollout(rollout: Rollout): Rollout | undefined {
	return rollout.phase === 'running' ? { ...rollout, phase: 'paused' } : undefined;
}

/** Resumes a paused rollout. Returns undefined if it is not paused. */
export function resumeRollout(rollout: Rollout): Rollout | undefined {
	return rollout.phase === 'paused' ? { ...rollout, phase: 'running' } : undefined;
}

/** Aborts a rollout: all machines return to the previous publication. Returns undefined if it has ended. */
export function abortRollout(rollout: Rollout, now: number): Rollout | undefined {
	return isOnTrial(rollout) ? { ...rollout, phase: 'aborted', endedAt: now } : undefined;
}

/** Begins the next wave that admits further machines. Returns the same rollout if no machine has reported. */
function startNextWave(rollout: Rollout, liveReports: readonly MachineReport[], now: number): Rollout {
	const { publication, terms } = rollout;
	if (liveReports.length === 0) return rollout;
	const ranks = liveReports.map(({ machine }) => machineRank(publication, machine)).sort((a, b) => a - b);
	const admittedCount = ranks.filter(rank => rank <= rollout.admittedRank).length;
	for (let wave = rollout.wave + 1; ; wave++) {
		const share = terms.shares[wave] ?? 1;
		// The small number makes up for rounding errors, so that 10 % of 30 machines are not 4.
		const count = Math.max(1, Math.ceil(share * ranks.length - 1e-9));
		if (count <= admittedCount && share < 1) continue;
		const admittedRank = share >= 1 ? 1 : ranks[count - 1]!;
		const { observedSince: _, ...state } = rollout;
		return { ...state, wave, admittedRank, waveStartedAt: now };
	}
}

/**
 * Returns why a rollout must be stopped, and a machine that caused it, unless the cause is the error rate of all machines
 * together. Returns undefined if the rollout may continue.
 */
function findFailure(
	rollout: Rollout,
	admittedReports: readonly MachineReport[],
	lostReports: readonly MachineReport[],
	now: number,
): Pick<Rollout, 'reason' | 'failedMachine'> | undefined {
	const failedMachines: { readonly machine: string; readonly reason: string }[] = lostReports.map(({ machine }) => ({
		machine,
		reason: 'the machine no longer reports',
	}));
	for (const report of admittedReports) {
		const failure = failureOf(report, rollout);
		// A failure to load on one machine stops the rollout, because its cause, such as a port in use, may exist on others as well.
		if (failure?.kind === 'refused' || failure?.kind === 'machine')
			return { reason: failureReason(failure), failedMachine: report.machine };
		if (failure) failedMachines.push({ machine: report.machine, reason: failure.reason });
	}
	const toleratedCount = toleratedLoss(admittedReports.length + lostReports.length);
	if (failedMachines.length > toleratedCount) {
		const { machine, reason } = failedMachines.at(-1)!;
		return { reason, failedMachine: machine };
	}
	const errorsReason = describeErrorRateRise(
		sumTraffic(admittedReports.filter(report => servesPublication(report, rollout))),
		rollout.terms,
		' of all admitted machines',
	);
	if (errorsReason !== undefined) return { reason: errorsReason };
	const lateReports = admittedReports.filter(
		report => !servesPublication(report, rollout) && failureOf(report, rollout) === undefined,
	);
	// Once the observation has begun, only machines that started later can be late, which does not stop the rollout.
	const isOverdue = rollout.observedSince === undefined && now - rollout.waveStartedAt > rollout.terms.loadLimitMs;
	if (isOverdue && lateReports.length > toleratedCount) {
		const seconds = Math.round(rollout.terms.loadLimitMs / 1000);
		return { reason: `the machine has not loaded it within ${seconds} s`, failedMachine: lateReports[0]!.machine };
	}
	return undefined;
}

/** Returns how many of a wave's machines may fail without stopping the rollout. */
function toleratedLoss(machineCount: number): number {
	return Math.floor(machineCount * TOLERATED_LOSS);
}

/** Returns the reason of a failure, with a prefix if the cause lies with the machine. */
export function failureReason({ kind, reason }: Pick<MachineFailure, 'kind' | 'reason'>): string {
	return kind === 'machine' ? `${MACHINE_CAUSE}: ${reason}` : reason;
}

function failureOf({ failure }: MachineReport, rollout: Rollout): MachineFailure | undefined {
	if (!failure) return undefined;
	return servesPublication({ serves: failure.publication, identity: failure.identity }, rollout) ? failure : undefined;
}

function findOwnFailure(rollout: Rollout, state: MachineState, now: number): MachineFailure | undefined {
	const { publication, identity, terms } = rollout;
	const { traffic, unreadySince } = state;
	const errorsReason = describeErrorRateRise(traffic, terms);
	if (errorsReason !== undefined) return { publication, identity, kind: 'errors', reason: errorsReason };
	if (unreadySince !== undefined && now - unreadySince > MAX_UNREADY_MS) {
		return { publication, identity, kind: 'unready', reason: 'the machine was not ready for requests' };
	}
	return undefined;
}

function sumTraffic(reports: readonly MachineReport[]): TrialTraffic {
	let responseCount = 0;
	let serverErrorCount = 0;
	let errorsBefore = 0;
	for (const { traffic } of reports) {
		responseCount += traffic.responses;
		serverErrorCount += traffic.serverErrors;
		errorsBefore += traffic.responses * traffic.errorRateBefore;
	}
	return {
		responses: responseCount,
		serverErrors: serverErrorCount,
		errorRateBefore: responseCount === 0 ? 0 : errorsBefore / responseCount,
	};
}

/** Describes an error rate that has risen by more than the terms and chance allow; undefined if it has not. `ofWhom` follows "responses". */
function describeErrorRateRise(
	{ responses, serverErrors, errorRateBefore }: TrialTraffic,
	{ maxErrorRateRise }: RolloutTerms,
	ofWhom = '',
): string | undefined {
	if (responses < MIN_RATED_RESPONSES) return undefined;
	const errorRate = serverErrors / responses;
	const allowedRate = Math.min(1, errorRateBefore + maxErrorRateRise);
	const deviation = Math.sqrt((allowedRate * (1 - allowedRate)) / responses);
	if (errorRate <= allowedRate + MIN_DEVIATIONS * deviation) return undefined;
	const percentText = (rate: number): string => `${(rate * 100).toFixed(1)} %`;
	const before = errorRateBefore > 0 ? `, ${percentText(errorRateBefore)} before,` : '';
	return `${percentText(errorRate)}${before} of ${responses} responses${ofWhom} were errors`;
}
