/**
 * Follows the publications of a cluster on one machine: reports to Redis what the machine serves, loads what the rollout tells it
 * to, and returns to the previous publication if the new one fails here. The decisions are made in `rollout-decision.ts`.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';
import type { FollowedRollout } from '../cluster/cluster.ts';
import { ClusterError } from '../cluster/cluster-error.ts';
import { openPublication, type Publication, PublicationRefused } from '../cluster/publication.ts';
import { RedisClock } from '../cluster/redis-clock.ts';
import {
	decideMachineStep,
	type FinalPublication,
	failureReason,
	identityOf,
	isOlderThanServed,
	isOnTrial,
	isSamePublication,
	LOST_AFTER_MS,
	type MachineFailure,
	nextRollout,
	type PublicationNumber,
	type PublicationReference,
	publicationAtStart,
	publicationFor,
	REPORT_INTERVAL_MS,
	RETRY_FAILED_LOAD_MS,
	type Rollout,
	servesPublication,
	shiftRollout,
	wantedPublication,
} from '../cluster/rollout-decision.ts';
import { SAME_ID_HINT } from '../cluster/rollout-summary.ts';
import type { SealedValues } from '../cluster/sealed-values.ts';
import {
	type FleetReport,
	NO_REVISION,
	type ProcessIdentity,
	RolloutUnreadable,
	type SentReport,
	type SharedRollout,
} from '../cluster/shared-rollout.ts';
import { StoreError } from '../storage/store.ts';
import type { LoadFailureKind } from './load-failure.ts';
import type { PublicationFolder, StoredPublication } from './publication-folder.ts';
import { type ProcessTraffic, PublicationTraffic } from './publication-traffic.ts';

/** Milliseconds between two checks of whether a publication must be loaded. Each answer from Redis causes another check. */
const STEP_CHECK_INTERVAL_MS = 250;
/** Maximum characters of the reason of a failure. */
const MAX_REASON_CHARS = 500;
/**
 * The logged reason when a machine goes back to its previous publication because Redis has lost the rollout of the current one.
 */
const LOST_ROLLOUT_REASON = 'Redis has lost the rollout while the publication was on trial';
/** A warning is logged once this many reports with this machine's ID have come from another process. */
const MIN_OTHER_REPORTS = 3;
/** Another process with this machine's ID is assumed to have ended after this many milliseconds without a report. */
const FORGET_OTHER_PROCESS_MS = 30_000;

/**
 * Age in milliseconds from which a publication that was read from the disk is called old. Newer ones have probably been
 * published, but the machine cannot know of them without Redis.
 */
const OLD_PUBLICATION_MS = 7 * 24 * 3_600_000;

/**
 * The result of an attempt to serve a configuration. After `handed_over`, another process of this machine follows the
 * publications.
 */
export type PublicationLoadResult =
	| { readonly result: 'serving' }
	| { readonly result: 'handed_over' }
	/** Nothing was changed. The reason is a clause or a sentence. The default of `kind` is `refused`. */
	| { readonly result: 'refused'; readonly reason: string; readonly kind?: LoadFailureKind }
	/** Nothing was changed: a new process would have to take over, but the current one is itself not confirmed yet. */
	| { readonly result: 'postponed' };

/** The result of `#load`. `unavailable` means that nothing has changed and that there is nothing to report to Redis. */
type LoadOutcome = 'loaded' | 'refused' | 'unavailable';

export interface PublishedConfigurationDeps {
	readonly rollouts: Pick<SharedRollout, 'report' | 'replace' | 'readPublication' | 'removeReport'>;
	readonly sealedValues: SealedValues;
	/** The trusted publishers, as listed in the option `cluster`. */
	readonly publishers: readonly string[] | undefined;
	readonly folder: PublicationFolder;
	/**
	 * Loads a publication; undefined stands for the configuration in the machine's own file. Never rejects.
	 * @param withdrawn The publication that the machine must no longer serve, if that is the reason. The load must then not be
	 * postponed.
	 */
	load(
		publication: Publication | undefined,
		errorRateBefore: number,
		withdrawn: PublicationNumber | undefined,
	): Promise<PublicationLoadResult>;
	isReady(): boolean;
	traffic(): ProcessTraffic;
	version(): string;
	log(level: 'info' | 'warn' | 'error', message: string, fields: { readonly [name: string]: unknown }): void;
}

/** The initial state of a process that begins to follow the publications. */
export interface PublicationStart {
	/** ID of the machine. */
	readonly machine: string;
	/** The publication that the process serves. */
	readonly serves: PublicationNumber;
	/** Identity of this publication; see `PublicationReference`. */
	readonly identity?: string | undefined;
	/**
	 * True if the publication comes from the disk of the machine, because at the start Redis did not answer or had no usable
	 * rollout.
	 */
	readonly isFromDisk?: boolean | undefined;
	/** True if the process took over from another one, which began the trial that may be in progress. */
	readonly hasTakenOver: boolean;
	/** The share of server errors before the publication was loaded, 0 to 1. */
	readonly errorRateBefore: number;
	/**
	 * Failures that the machine still has to report, from the process that this one took over from. Without them, a process that
	 * replaces one with a failed publication would load that publication again.
	 */
	readonly failures: readonly MachineFailure[];
}

/** Follows the publications until it is stopped. */
export class PublishedConfiguration {
	readonly #deps: PublishedConfigurationDeps;
	readonly #clock: Clock;
	readonly #machine: string;
	readonly #hasTakenOver: boolean;
	#serves: PublicationNumber;
	/** Identity of the publication that the machine serves. */
	#identity: string | undefined;
	/** When the served publication was published; see {@link FinalPublication.finalSince}. */
	#finalSince: number | undefined;
	/** Highest number of a publication that this machine has seen in Redis or on its disk. */
	#highestKnown: PublicationNumber;
	#rollout: Rollout | undefined;
	#revision = NO_REVISION;
	/** True if the publication was loaded from the disk, and Redis has not answered since then. */
	#isFromDisk: boolean;
	/** True if it has been logged that the publication from the disk is old. */
	#hasLoggedOld = false;
	/** The latest failure of each publication, and when it happened, by {@link Clock.threadNow}. */
	readonly #failures = new Map<PublicationNumber, MachineFailure & { readonly at: number }>();
	/** Number of failures since the process started. */
	readonly #failureCounts: Record<MachineFailure['kind'], number> = {
		refused: 0,
		machine: 0,
		errors: 0,
		unready: 0,
		ended: 0,
	};
	/** The last publication that proved good while this process served it. It is also stored on the disk. */
	#lastGood: StoredPublication | undefined;
	/**
	 * The publication that an earlier process has left on the disk. If Redis has lost its data since then, another publication may
	 * have the same number by now, so without an identity, this one is used only if Redis does not have a publication with its
	 * number.
	 */
	#earlierLastGood: StoredPublication | undefined;
	/** The publication that this process has loaded most recently. */
	#loadedPublication: StoredPublication | undefined;
	readonly #traffic: PublicationTraffic;
	#unreadySince: number | undefined;
	#lastContactAt: number;
	readonly #redisClock = new RedisClock();
	/** Time, by {@link Clock.threadNow}, before which this machine does not advance the rollout as its coordinator. */
	#nextDecisionAt = 0;
	/** Tells this process apart from others in reports. */
	readonly #processToken = randomBytes(8).toString('hex');
	/**
	 * Another process that reports with the ID of this machine, how often it was noticed, and when last, by
	 * {@link Clock.threadNow}.
	 */
	#sameId: { readonly process: ProcessIdentity; readonly count: number; readonly at: number } | undefined;
	#isReporting = false;
	#isStepUnderWay = false;
	/** Time, by {@link Clock.threadNow}, before which nothing is loaded, because an attempt has just failed. */
	#nextLoadAt = 0;
	/** The publication whose postponement was logged last, so that it is logged only once. */
	#postponed: PublicationReference | undefined;
	/** True if Redis has lost the rollout while this machine served its publication on trial. `#rollout` is then the lost one. */
	#hasLostRollout = false;
	#stopReportTimer: () => void = () => {};
	#stopStepTimer: () => void = () => {};
	#isClosed = false;
	#hasLoggedUnexpected = false;
	/** True if it has been logged that the state of the rollout is unreadable. */
	#hasLoggedUnreadable = false;
	#hasLoggedDiskFailure = false;
	#lastDiskAction: Promise<unknown> = Promise.resolve();

	constructor(deps: PublishedConfigurationDeps, start: PublicationStart, clock: Clock = SYSTEM_CLOCK) {
		this.#deps = deps;
		this.#clock = clock;
		this.#lastContactAt = clock.threadNow();
		this.#machine = start.machine;
		this.#serves = start.serves;
		this.#identity = start.identity;
		this.#highestKnown = start.serves;
		this.#isFromDisk = start.isFromDisk === true;
		this.#traffic = new PublicationTraffic(() => deps.traffic(), start.errorRateBefore);
		this.#hasTakenOver = start.hasTakenOver;
		const served = { number: start.serves, identity: start.identity };
		// The previous process may have failed to load the publication that this one serves, so that failure no longer matters.
		const isOver = ({ publication, identity }: MachineFailure): boolean =>
			isSamePublication({ number: publication, identity }, served);
		for (const failure of start.failures) if (!isOver(failure)) this.#recordFailure(failure);
	}

	/** What a process that takes over from this one and serves the same publication must know. */
	get startOfSuccessor(): Pick<
		PublicationStart,
		'serves' | 'identity' | 'isFromDisk' | 'errorRateBefore' | 'failures'
	> {
		const { failures } = this;
		return {
			serves: this.#serves,
			identity: this.#identity,
			isFromDisk: this.#isFromDisk,
			errorRateBefore: this.#traffic.errorRateBefore,
			failures,
		};
	}

	/** The latest failure of each publication that the machine may be told to serve. */
	get failures(): MachineFailure[] {
		return Array.from(this.#failures.values(), ({ at: _, ...failure }) => failure);
	}

	/** The publications that this machine serves and should serve, for the metrics. */
	get rolloutReport(): FollowedRollout {
		const rollout = this.#hasLostRollout ? undefined : this.#rollout;
		const serves = this.#serves;
		return {
			serves,
			wanted: rollout ? wantedPublication(rollout, { machine: this.#machine, ...this.#served }) : serves,
			latest: rollout && { publication: rollout.publication, phase: rollout.phase },
			ageSeconds: this.#ageMs === undefined ? undefined : Math.round(this.#ageMs / 1000),
			isFromDisk: this.#isFromDisk,
			failures: this.#failureCounts,
		};
	}

	/** Milliseconds since the publication that the machine serves was published; undefined if it is not known to be final. */
	get #ageMs(): number | undefined {
		return this.#finalSince === undefined ? undefined : Math.max(0, Date.now() - this.#finalSince);
	}

	/** Begins to follow the publications and to report to Redis. Never rejects. */
	async start(): Promise<void> {
		this.#earlierLastGood = await this.#useDisk(folder => folder.lastGood());
		if (this.#earlierLastGood && isSamePublication(this.#earlierLastGood, this.#servedReference))
			this.#openFinal(this.#earlierLastGood.sealed);
		const trial = await this.#useDisk(folder => folder.unfinishedTrial());
		this.#hearOf(this.#earlierLastGood?.number);
		this.#hearOf(trial?.number);
		if (trial !== undefined && !isSamePublication(trial, this.#servedReference)) {
			// The process that this one took over from has withdrawn the publication.
			if (this.#hasTakenOver) await this.#useDisk(folder => folder.endTrial());
			// If this process has failed to load the publication, too, that failure is already recorded, with a more precise reason.
			else if (!this.#failures.has(trial.number)) {
				const reason = 'the process ended unexpectedly while it served the publication';
				this.#recordFailure({ publication: trial.number, identity: trial.identity, kind: 'ended', reason });
			}
		}
		if (this.#isClosed) return;
		this.#logDiskStart();
		this.#scheduleStepCheck();
		await this.#report();
	}

	/** Logs how old a publication from the disk is. A process that took over from another one does not log it again. */
	#logDiskStart(): void {
		const ageMs = this.#ageMs;
		if (!this.#isFromDisk || ageMs === undefined) return;
		// If the publication was already old, the previous process has logged the warning.
		if (this.#hasTakenOver) this.#hasLoggedOld = ageMs >= OLD_PUBLICATION_MS;
		else this.#deps.log('info', 'serving the last good publication from the disk', this.#ageFields(ageMs));
		this.#warnIfOld();
	}

	/** Warns once if the publication comes from the disk and is old. */
	#warnIfOld(): void {
		const ageMs = this.#ageMs;
		if (!this.#isFromDisk || this.#hasLoggedOld || ageMs === undefined || ageMs < OLD_PUBLICATION_MS) return;
		this.#hasLoggedOld = true;
		this.#deps.log('warn', 'the publication from the disk is more than a week old', {
			...this.#ageFields(ageMs),
			hint: 'Redis has not answered since the start, so another publication may be final by now.',
		});
	}

	#ageFields(ageMs: number): { readonly [name: string]: unknown } {
		return {
			publication: this.#serves,
			published_at: new Date(this.#finalSince!).toISOString(),
			age_seconds: Math.round(ageMs / 1000),
		};
	}

	#scheduleStepCheck(): void {
		const check = (): void => {
			this.#scheduleStepCheck();
			void this.#takeStep();
		};
		this.#stopStepTimer = this.#clock.startTimer(check, STEP_CHECK_INTERVAL_MS, false);
	}

	/** Stops following because the machine stops. Never rejects. */
	async stop(): Promise<void> {
		this.close();
		await Promise.all([
			this.#deps.rollouts.removeReport(this.#machine).catch(() => {}),
			this.#useDisk(folder => folder.endTrial()),
		]);
	}

	/** Stops following, but leaves this machine's report in Redis, because another process of the machine now follows. */
	close(): void {
		this.#isClosed = true;
		this.#stopReportTimer();
		this.#stopStepTimer();
	}

	/** Reports to Redis, and schedules the next report. Does nothing while a report is in progress. */
	async #report(): Promise<void> {
		if (this.#isReporting || this.#isClosed) return;
		this.#isReporting = true;
		this.#stopReportTimer();
		try {
			this.#traffic.takeSample();
			const wouldCoordinate = this.#rollout !== undefined && isOnTrial(this.#rollout) && !this.#hasLostRollout;
			const sentAt = this.#clock.threadNow();
			const answer = await this.#deps.rollouts.report(this.#ownReport(), this.#revision, wouldCoordinate);
			const clockChangeMs = this.#redisClock.observe(answer.now, sentAt, this.#clock.threadNow());
			// A machine is considered lost if the time of its last report is too far from the clock of Redis. After a change of
			// this clock, lost machines can be recognized only once all others have reported again.
			if (clockChangeMs !== 0) this.#nextDecisionAt = this.#clock.threadNow() + LOST_AFTER_MS;
			this.#isFromDisk = false;
			this.#noticeOtherProcess(answer.otherProcess);
			if (answer.changed) this.#useState(answer.changed.rollout, answer.revision);
			// If Redis has lost its data, no coordinator will end the trial, so the machine acts as if Redis did not answer.
			if (!this.#hasLostRollout) this.#lastContactAt = this.#clock.threadNow();
			if (answer.reports && clockChangeMs !== 0) await this.#shiftRollout(clockChangeMs);
			else if (answer.reports && this.#clock.threadNow() >= this.#nextDecisionAt)
				await this.#coordinate(answer.reports, answer.now);
			this.#hasLoggedUnreadable = false;
		} catch (error) {
			if (error instanceof RolloutUnreadable) {
				if (!this.#hasLoggedUnreadable) this.#deps.log('error', 'the rollout cannot be read', { cause: error.message });
				this.#hasLoggedUnreadable = true;
			} else if (!(error instanceof ClusterError)) this.#logUnexpected(error);
		} finally {
			this.#isReporting = false;
			if (!this.#isClosed) {
				// Random delays, so that machines that were started together do not always report at the same moment.
				const delayMs = REPORT_INTERVAL_MS * (0.9 + Math.random() / 5);
				this.#stopReportTimer = this.#clock.startTimer(() => void this.#report(), delayMs, false);
			}
		}
		this.#warnIfOld();
		await this.#takeStep();
		await this.#keepIfGood();
	}

	/**
	 * Notices that another process reports with the ID of this machine. It is not enough to see it once, because during a handover
	 * the last report of the previous process can arrive after the first one of the next.
	 */
	#noticeOtherProcess(other: ProcessIdentity | undefined): void {
		const now = this.#clock.threadNow();
		if (this.#sameId && now - this.#sameId.at > FORGET_OTHER_PROCESS_MS) this.#sameId = undefined;
		if (!other) return;
		const count = (this.#sameId?.count ?? 0) + 1;
		this.#sameId = { process: other, count, at: now };
		if (count !== MIN_OTHER_REPORTS) return;
		this.#deps.log('warn', 'another server has the same machine ID', {
			machine: this.#machine,
			host: other.host,
			pid: other.pid,
			hint: SAME_ID_HINT,
		});
	}

	/** As the coordinator, computes the next state of the rollout from all reports, and stores it in Redis. */
	async #coordinate(reports: readonly FleetReport[], now: number): Promise<void> {
		const rollout = this.#rollout;
		if (!rollout) return;
		const next = nextRollout(rollout, reports, now);
		if (next === rollout) return;
		const revision = await this.#deps.rollouts.replace(this.#revision, next);
		// If another machine has replaced the state in the meantime, the answer to the next report contains the new state.
		if (revision === undefined) return;
		this.#useState(next, revision);
		const { publication, reason, failedMachine } = next;
		if (next.phase === 'stopped')
			this.#deps.log('error', 'rollout stopped', { publication, reason, machine: failedMachine });
		else if (next.phase === 'completed') this.#deps.log('info', 'rollout completed', { publication });
		else if (next.wave !== rollout.wave)
			this.#deps.log('info', 'rollout extended', { publication, share: next.terms.shares[next.wave] });
	}

	/** Adjusts the times stored in the rollout after the clock of Redis has changed. */
	async #shiftRollout(clockChangeMs: number): Promise<void> {
		if (!this.#rollout) return;
		const shifted = shiftRollout(this.#rollout, clockChangeMs);
		const revision = await this.#deps.rollouts.replace(this.#revision, shifted);
		if (revision === undefined) return;
		this.#useState(shifted, revision);
		const seconds = Math.round(clockChangeMs / 1000);
		this.#deps.log('warn', 'the clock of Redis has changed, so the rollout pauses for a moment', { seconds });
	}

	#useState(rollout: Rollout | undefined, revision: string): void {
		this.#revision = revision;
		const known = this.#rollout;
		this.#hasLostRollout =
			rollout === undefined &&
			known !== undefined &&
			isOnTrial(known) &&
			servesPublication(this.#served, known) &&
			!isOlderThanServed(known, this.#served);
		// The lost rollout is kept. With it, the machine still watches its own errors, and goes back to the previous publication as it
		// does when Redis is unavailable.
		if (this.#hasLostRollout) return;
		if (rollout?.publication !== known?.publication || rollout?.identity !== known?.identity) this.#nextLoadAt = 0;
		this.#rollout = rollout;
		this.#hearOf(rollout?.publication);
		// An earlier state of the rollout of the served publication needs no action: the machines complete it again.
		if (rollout && isOlderThanServed(rollout, this.#served) && !servesPublication(this.#served, rollout)) {
			this.#deps.log('error', 'the rollout in Redis is older than what the machine serves', {
				publication: rollout.publication,
				serving: this.#serves,
				hint: 'Publish again.',
			});
		}
		for (const { publication: number, identity } of this.#failures.values()) {
			const isCurrent =
				rollout !== undefined &&
				(number === rollout.publication || number === rollout.previous) &&
				isSamePublication({ number, identity }, { number, identity: identityOf(rollout, number) });
			if (!isCurrent) this.#failures.delete(number);
		}
	}

	/** The publication that the machine serves, in the form that reports contain. */
	get #served(): FinalPublication {
		return { serves: this.#serves, identity: this.#identity, finalSince: this.#finalSince };
	}

	get #servedReference(): PublicationReference {
		return { number: this.#serves, identity: this.#identity };
	}

	/**
	 * Decrypts the publication that the machine serves, which must be final, and records when it was published. Returns false if it
	 * cannot be decrypted or verified.
	 */
	#openFinal(sealed: Buffer): boolean {
		const { sealedValues, publishers } = this.#deps;
		try {
			this.#finalSince = openPublication(sealedValues, this.#serves, sealed, publishers, this.#identity).publishedAt;
			return true;
		} catch (error) {
			if (!(error instanceof PublicationRefused)) throw error;
			return false;
		}
	}

	#hearOf(number: PublicationNumber | undefined): void {
		this.#highestKnown = Math.max(this.#highestKnown, number ?? 0);
	}

	#ownReport(): SentReport {
		const isReady = this.#deps.isReady();
		if (isReady) this.#unreadySince = undefined;
		else this.#unreadySince ??= this.#clock.threadNow();
		const { failures } = this;
		const failure = failures.find(one => one.publication === this.#rollout?.publication) ?? failures.at(-1);
		return {
			machine: this.#machine,
			...this.#served,
			highestKnown: this.#highestKnown,
			isReady,
			traffic: this.#traffic.sinceLoad,
			...(failure && { failure }),
			host: hostname(),
			pid: process.pid,
			process: this.#processToken,
			version: this.#deps.version(),
			...(this.#sameId && this.#sameId.count >= MIN_OTHER_REPORTS && { sameIdAs: this.#sameId.process }),
		};
	}

	/** Loads a publication if the rollout tells the machine to. Does nothing while a previous call is still in progress. */
	async #takeStep(): Promise<void> {
		const rollout = this.#rollout;
		if (!rollout || this.#isStepUnderWay || this.#isClosed) return;
		const now = this.#clock.threadNow();
		if (this.#deps.isReady()) this.#unreadySince = undefined;
		else this.#unreadySince ??= now;
		const decision = decideMachineStep(
			rollout,
			{
				machine: this.#machine,
				...this.#served,
				traffic: this.#traffic.sinceLoad,
				unreadySince: this.#unreadySince,
				lastContactAt: this.#lastContactAt,
				failure: this.#failures.get(publicationFor(rollout, this.#machine)),
			},
			now,
		);
		if (decision.step === 'none' || now < this.#nextLoadAt) return;
		this.#isStepUnderWay = true;
		let outcome: LoadOutcome = 'unavailable';
		try {
			if (decision.step === 'return') {
				const { publication, failure } = decision;
				const reason = this.#hasLostRollout && !failure ? LOST_ROLLOUT_REASON : decision.reason;
				if (this.#failures.get(this.#serves)?.kind !== failure?.kind || !failure)
					this.#deps.log('error', 'publication withdrawn', {
						publication: this.#serves,
						previous: publication,
						reason,
					});
				if (failure) this.#recordFailure(failure);
			}
			const number = decision.publication;
			const wanted = { number, identity: identityOf(rollout, number) };
			const isReturn = decision.step === 'return' || this.#hasToLeave(rollout);
			outcome = await this.#load(wanted, isOnTrial(rollout) && number === rollout.publication, isReturn);
			if (outcome !== 'loaded' && isReturn && (decision.step === 'return' || outcome === 'refused'))
				outcome = await this.#loadLastGood(rollout, outcome);
			if (outcome !== 'loaded' && decision.step === 'return')
				this.#nextLoadAt = this.#clock.threadNow() + RETRY_FAILED_LOAD_MS;
		} catch (error) {
			this.#logUnexpected(error);
		} finally {
			this.#isStepUnderWay = false;
		}
		if (this.#hasLostRollout && outcome === 'loaded') this.#forgetLostRollout();
		// Reports at once, so that the coordinator learns the outcome before the next report is due.
		if (outcome !== 'unavailable') void this.#report();
		// Without a pause, the next attempt would follow at once, and nothing else could happen in this thread.
		else this.#nextLoadAt = Math.max(this.#nextLoadAt, this.#clock.threadNow() + REPORT_INTERVAL_MS);
	}

	/** Reports whether the machine serves the publication of a rollout that was stopped or aborted. */
	#hasToLeave(rollout: Rollout): boolean {
		return (rollout.phase === 'stopped' || rollout.phase === 'aborted') && servesPublication(this.#served, rollout);
	}

	/** Loads the last good publication, because the one that the machine has to return to cannot be loaded. */
	async #loadLastGood(rollout: Rollout, outcome: LoadOutcome): Promise<LoadOutcome> {
		const fallback = this.#lastGood ?? this.#earlierLastGood;
		if (!fallback || fallback.number === rollout.previous || fallback.number === this.#serves) return outcome;
		return (await this.#load(fallback, false, true)) === 'loaded' ? 'loaded' : outcome;
	}

	/** Forgets the rollout, as if there had never been one. */
	#forgetLostRollout(): void {
		this.#hasLostRollout = false;
		this.#rollout = undefined;
	}

	/**
	 * Loads a publication. If that fails, records the failure, and the previous configuration remains in service.
	 * @param isReturn True if the machine must leave the publication that it serves.
	 */
	async #load(wanted: PublicationReference, isTrial: boolean, isReturn: boolean): Promise<LoadOutcome> {
		const { number } = wanted;
		const withdrawn = isReturn ? this.#serves : undefined;
		let result: PublicationLoadResult;
		let sealed: Buffer | undefined;
		let publication: Publication | undefined;
		const errorRateBefore = this.#traffic.recentErrorRate();
		try {
			sealed = number === 0 ? undefined : await this.#fetch(wanted);
			const { sealedValues, publishers } = this.#deps;
			publication = sealed && openPublication(sealedValues, number, sealed, publishers, wanted.identity);
			if (this.#isClosed) return 'unavailable';
			if (isTrial) await this.#useDisk(folder => folder.beginTrial(wanted));
			result = await this.#deps.load(publication, errorRateBefore, withdrawn);
		} catch (error) {
			// Redis has failed since it told this machine to load the publication. The machine will try again.
			if (error instanceof ClusterError) return 'unavailable';
			if (!(error instanceof PublicationRefused)) throw error;
			result = { result: 'refused', reason: error.message };
		}
		if (result.result === 'handed_over') {
			this.close();
			return 'loaded';
		}
		// The process is stopping, or another one has taken over, to which the record of the trial on the disk now belongs.
		if (this.#isClosed) return 'unavailable';
		if (result.result === 'postponed') {
			if (!this.#postponed || !isSamePublication(this.#postponed, wanted))
				this.#deps.log('info', 'publication postponed', {
					publication: number,
					serving: this.#serves,
					cause: 'it needs another process, and this one awaits its confirmation',
				});
			this.#postponed = wanted;
			this.#nextLoadAt = this.#clock.threadNow() + RETRY_FAILED_LOAD_MS;
			if (isTrial) await this.#useDisk(folder => folder.endTrial());
			return 'unavailable';
		}
		if (result.result === 'refused') {
			const { reason, kind = 'refused' } = result;
			const known = this.#failures.get(number)?.reason;
			this.#recordFailure({ publication: number, identity: wanted.identity, kind, reason });
			// After the end of a rollout, loading is retried until it succeeds, so the same failure is logged only once.
			if (this.#failures.get(number)?.reason !== known)
				this.#deps.log('error', 'publication refused', {
					publication: number,
					serving: this.#serves,
					reason: failureReason({ kind, reason }),
				});
			if (isTrial) await this.#useDisk(folder => folder.endTrial());
			return 'refused';
		}
		this.#deps.log('info', 'publication loaded', { publication: number, before: this.#serves });
		this.#serves = number;
		this.#identity = publication?.identity;
		this.#finalSince = undefined;
		this.#failures.delete(number);
		this.#loadedPublication = sealed && { number, identity: publication?.identity, sealed };
		this.#traffic.onLoad(errorRateBefore);
		if (!isTrial) await this.#useDisk(folder => folder.endTrial());
		return 'loaded';
	}

	/** Returns an encrypted publication. Rejects with ClusterError and PublicationRefused. */
	async #fetch(wanted: PublicationReference): Promise<Buffer> {
		const { number, identity } = wanted;
		for (const stored of [this.#loadedPublication, this.#lastGood])
			if (stored && isSamePublication(stored, wanted)) return stored.sealed;
		const stored = this.#earlierLastGood;
		const earlier = stored && isSamePublication(stored, wanted) ? stored.sealed : undefined;
		if (earlier && identity !== undefined && stored?.identity === identity) return earlier;
		try {
			const sealed = await this.#deps.rollouts.readPublication(number);
			if (sealed) return sealed;
		} catch (error) {
			if (!(error instanceof ClusterError && earlier)) throw error;
		}
		if (earlier) return earlier;
		throw new PublicationRefused('publication/missing', `Publication ${number} is no longer in Redis.`);
	}

	#recordFailure(failure: MachineFailure): void {
		this.#failureCounts[failure.kind]++;
		const reason = failure.reason.slice(0, MAX_REASON_CHARS).replace(/\.$/, '');
		this.#failures.delete(failure.publication);
		this.#failures.set(failure.publication, { ...failure, reason, at: this.#clock.threadNow() });
	}

	/** Writes the publication that is being served to the disk, once it is no longer on trial. */
	async #keepIfGood(): Promise<void> {
		const rollout = this.#rollout;
		const number = this.#serves;
		const served = this.#servedReference;
		if (!rollout || number === 0 || this.#isStepUnderWay) return;
		if (this.#finalSince !== undefined && this.#lastGood && isSamePublication(this.#lastGood, served)) return;
		if (!isSamePublication(served, { number: publicationAtStart(rollout), identity: identityOf(rollout, number) }))
			return;
		let sealed: Buffer;
		try {
			sealed = await this.#fetch(served);
			if (this.#isStepUnderWay || this.#serves !== number || this.#identity !== served.identity) return;
			// If somebody has altered the publication in Redis, it must not replace the good one on the disk.
			if (!this.#openFinal(sealed)) return;
		} catch (error) {
			if (!(error instanceof ClusterError || error instanceof PublicationRefused)) this.#logUnexpected(error);
			return;
		}
		if (this.#lastGood && isSamePublication(this.#lastGood, served)) return;
		const stored = { ...served, sealed };
		await this.#useDisk(async folder => {
			await folder.saveLastGood(stored);
			await folder.endTrial();
			this.#lastGood = stored;
		});
	}

	/**
	 * Logs an unexpected error, for example because another release wrote the state in another form. Only the first one is logged.
	 * The server must not end because of it.
	 */
	#logUnexpected(error: unknown): void {
		if (this.#hasLoggedUnexpected) return;
		this.#hasLoggedUnexpected = true;
		const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
		this.#deps.log('error', 'following the publications failed', { cause });
	}

	/**
	 * Uses the disk. If it fails, logs the first failure, and resolves to undefined: the machine continues to serve. Actions run in
	 * the order of the calls, so that a trial that ends while its beginning is being written is not recorded as unfinished.
	 */
	#useDisk<T>(action: (folder: PublicationFolder) => Promise<T>): Promise<T | undefined> {
		const result = this.#lastDiskAction.then(() => this.#runOnDisk(action));
		this.#lastDiskAction = result;
		return result;
	}

	async #runOnDisk<T>(action: (folder: PublicationFolder) => Promise<T>): Promise<T | undefined> {
		try {
			return await action(this.#deps.folder);
		} catch (error) {
			if (!(error instanceof StoreError)) this.#logUnexpected(error);
			else if (!this.#hasLoggedDiskFailure)
				this.#deps.log('warn', 'the disk cannot keep publications', { cause: error.message });
			this.#hasLoggedDiskFailure = true;
			return undefined;
		}
	}
}
