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
import {
	decideMachineStep,
	failureReason,
	identityOf,
	isOlderThanServed,
	isOnTrial,
	isSamePublication,
	type MachineFailure,
	type PublicationNumber,
	type PublicationReference,
	publicationAtStart,
	publicationFor,
	REPORT_INTERVAL_MS,
	RETRY_FAILED_LOAD_MS,
	type Rollout,
	servesPublication,
	wantedPublication,
} from '../cluster/rollout-decision.ts';
import { NO_REVISION, RolloutUnreadable, type SentReport, type SharedRollout } from '../cluster/shared-rollout.ts';
import type { LoadFailureKind } from './load-failure.ts';
import { MachineFailures } from './machine-failures.ts';
import { PublicationCopies } from './publication-copies.ts';
import { PublicationDisk } from './publication-disk.ts';
import type { PublicationFolder } from './publication-folder.ts';
import { PublicationLog, type WriteLogEntry } from './publication-log.ts';
import { type ProcessTraffic, PublicationTraffic } from './publication-traffic.ts';
import { RolloutCoordinator } from './rollout-coordinator.ts';
import { SameMachineId } from './same-machine-id.ts';
import { type PublicationKeys, ServedPublication } from './served-publication.ts';

/** Milliseconds between two checks of whether a publication must be loaded. Each answer from Redis causes another check. */
const STEP_CHECK_INTERVAL_MS = 250;
/**
 * The logged reason when a machine goes back to its previous publication because Redis has lost the rollout of the current one.
 */
const LOST_ROLLOUT_REASON = 'Redis has lost the rollout while the publication was on trial';

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

export interface PublishedConfigurationDeps extends PublicationKeys {
	readonly rollouts: Pick<SharedRollout, 'report' | 'replace' | 'readPublication' | 'removeReport'>;
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
	readonly log: WriteLogEntry;
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
	readonly #log: PublicationLog;
	readonly #served: ServedPublication;
	readonly #failures: MachineFailures;
	readonly #disk: PublicationDisk;
	readonly #copies: PublicationCopies;
	readonly #coordinator: RolloutCoordinator;
	readonly #sameId: SameMachineId;
	/** Highest number of a publication that this machine has seen in Redis or on its disk. */
	#highestKnown: PublicationNumber;
	#rollout: Rollout | undefined;
	#revision = NO_REVISION;
	readonly #traffic: PublicationTraffic;
	#unreadySince: number | undefined;
	#lastContactAt: number;
	/** Tells this process apart from others in reports. */
	readonly #processToken = randomBytes(8).toString('hex');
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
	/** True if it has been logged that the state of the rollout is unreadable. */
	#hasLoggedUnreadable = false;

	constructor(deps: PublishedConfigurationDeps, start: PublicationStart, clock: Clock = SYSTEM_CLOCK) {
		this.#deps = deps;
		this.#clock = clock;
		this.#lastContactAt = clock.threadNow();
		this.#machine = start.machine;
		const served = { number: start.serves, identity: start.identity };
		const { rollouts } = deps;
		const log = new PublicationLog((level, message, fields) => deps.log(level, message, fields));
		this.#log = log;
		this.#served = new ServedPublication(served, start.isFromDisk === true, deps, log);
		this.#failures = new MachineFailures(clock);
		this.#disk = new PublicationDisk(deps.folder, log);
		this.#copies = new PublicationCopies(rollouts, this.#disk);
		this.#coordinator = new RolloutCoordinator(rollouts, log, clock, (rollout, revision) =>
			this.#useState(rollout, revision),
		);
		this.#sameId = new SameMachineId(start.machine, log, clock);
		this.#highestKnown = start.serves;
		this.#traffic = new PublicationTraffic(() => deps.traffic(), start.errorRateBefore);
		this.#hasTakenOver = start.hasTakenOver;
		// The previous process may have failed to load the publication that this one serves, so that failure no longer matters.
		const isOver = ({ publication, identity }: MachineFailure): boolean =>
			isSamePublication({ number: publication, identity }, served);
		for (const failure of start.failures) if (!isOver(failure)) this.#failures.record(failure);
	}

	/** What a process that takes over from this one and serves the same publication must know. */
	get startOfSuccessor(): Pick<
		PublicationStart,
		'serves' | 'identity' | 'isFromDisk' | 'errorRateBefore' | 'failures'
	> {
		const { number, identity } = this.#served.reference;
		return {
			serves: number,
			identity,
			isFromDisk: this.#served.isFromDisk,
			errorRateBefore: this.#traffic.errorRateBefore,
			failures: this.failures,
		};
	}

	/** The latest failure of each publication that the machine may be told to serve. */
	get failures(): MachineFailure[] {
		return this.#failures.all;
	}

	/** The publications that this machine serves and should serve, for the metrics. */
	get rolloutReport(): FollowedRollout {
		const rollout = this.#hasLostRollout ? undefined : this.#rollout;
		const { number, ageMs, isFromDisk, facts } = this.#served;
		return {
			serves: number,
			wanted: rollout ? wantedPublication(rollout, { machine: this.#machine, ...facts }) : number,
			latest: rollout && { publication: rollout.publication, phase: rollout.phase },
			ageSeconds: ageMs === undefined ? undefined : Math.round(ageMs / 1000),
			isFromDisk,
			failures: this.#failures.counts,
		};
	}

	/** Begins to follow the publications and to report to Redis. Never rejects. */
	async start(): Promise<void> {
		const lastGood = await this.#copies.readDisk();
		if (lastGood && isSamePublication(lastGood, this.#served.reference)) this.#served.openFinal(lastGood.sealed);
		const trial = await this.#disk.use(folder => folder.unfinishedTrial());
		this.#hearOf(lastGood?.number);
		this.#hearOf(trial?.number);
		if (trial !== undefined && !isSamePublication(trial, this.#served.reference)) {
			// The process that this one took over from has withdrawn the publication.
			if (this.#hasTakenOver) await this.#disk.use(folder => folder.endTrial());
			// If this process has failed to load the publication, too, that failure is already recorded, with a more precise reason.
			else if (!this.#failures.of(trial.number)) {
				const reason = 'the process ended unexpectedly while it served the publication';
				this.#failures.record({ publication: trial.number, identity: trial.identity, kind: 'ended', reason });
			}
		}
		if (this.#isClosed) return;
		this.#served.logStartFromDisk(this.#hasTakenOver);
		this.#scheduleStepCheck();
		await this.#report();
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
			this.#disk.use(folder => folder.endTrial()),
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
			const clockChangeMs = this.#coordinator.observeClock(answer.now, sentAt);
			this.#served.isFromDisk = false;
			this.#sameId.notice(answer.otherProcess);
			if (answer.changed) this.#useState(answer.changed.rollout, answer.revision);
			// If Redis has lost its data, no coordinator will end the trial, so the machine acts as if Redis did not answer.
			if (!this.#hasLostRollout) this.#lastContactAt = this.#clock.threadNow();
			const { reports, now } = answer;
			if (reports && this.#rollout)
				await this.#coordinator.coordinate(this.#rollout, this.#revision, reports, now, clockChangeMs);
			this.#hasLoggedUnreadable = false;
		} catch (error) {
			if (error instanceof RolloutUnreadable) {
				if (!this.#hasLoggedUnreadable)
					this.#log.write('error', 'the rollout cannot be read', { cause: error.message });
				this.#hasLoggedUnreadable = true;
			} else if (!(error instanceof ClusterError)) this.#log.unexpected(error);
		} finally {
			this.#isReporting = false;
			if (!this.#isClosed) {
				// Random delays, so that machines that were started together do not always report at the same moment.
				const delayMs = REPORT_INTERVAL_MS * (0.9 + Math.random() / 5);
				this.#stopReportTimer = this.#clock.startTimer(() => void this.#report(), delayMs, false);
			}
		}
		this.#served.warnIfOld();
		await this.#takeStep();
		await this.#keepIfGood();
	}

	#useState(rollout: Rollout | undefined, revision: string): void {
		this.#revision = revision;
		const known = this.#rollout;
		this.#hasLostRollout =
			rollout === undefined &&
			known !== undefined &&
			isOnTrial(known) &&
			servesPublication(this.#served.facts, known) &&
			!isOlderThanServed(known, this.#served.facts);
		// The lost rollout is kept. With it, the machine still watches its own errors, and goes back to the previous publication as it
		// does when Redis is unavailable.
		if (this.#hasLostRollout) return;
		if (rollout?.publication !== known?.publication || rollout?.identity !== known?.identity) this.#nextLoadAt = 0;
		this.#rollout = rollout;
		this.#hearOf(rollout?.publication);
		// An earlier state of the rollout of the served publication needs no action: the machines complete it again.
		const { facts } = this.#served;
		if (rollout && isOlderThanServed(rollout, facts) && !servesPublication(facts, rollout)) {
			this.#log.write('error', 'the rollout in Redis is older than what the machine serves', {
				publication: rollout.publication,
				serving: this.#served.number,
				hint: 'Publish again.',
			});
		}
		this.#failures.forgetAllBut(rollout);
	}

	#hearOf(number: PublicationNumber | undefined): void {
		this.#highestKnown = Math.max(this.#highestKnown, number ?? 0);
	}

	#ownReport(): SentReport {
		const isReady = this.#deps.isReady();
		if (isReady) this.#unreadySince = undefined;
		else this.#unreadySince ??= this.#clock.threadNow();
		const { otherProcess } = this.#sameId;
		const failures = this.#failures.all;
		const failure = failures.find(one => one.publication === this.#rollout?.publication) ?? failures.at(-1);
		return {
			machine: this.#machine,
			...this.#served.facts,
			highestKnown: this.#highestKnown,
			isReady,
			traffic: this.#traffic.sinceLoad,
			...(failure && { failure }),
			host: hostname(),
			pid: process.pid,
			process: this.#processToken,
			version: this.#deps.version(),
			...(otherProcess && { sameIdAs: otherProcess }),
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
				...this.#served.facts,
				traffic: this.#traffic.sinceLoad,
				unreadySince: this.#unreadySince,
				lastContactAt: this.#lastContactAt,
				failure: this.#failures.of(publicationFor(rollout, this.#machine)),
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
				if (this.#failures.of(this.#served.number)?.kind !== failure?.kind || !failure)
					this.#log.write('error', 'publication withdrawn', {
						publication: this.#served.number,
						previous: publication,
						reason,
					});
				if (failure) this.#failures.record(failure);
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
			this.#log.unexpected(error);
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
		return (
			(rollout.phase === 'stopped' || rollout.phase === 'aborted') && servesPublication(this.#served.facts, rollout)
		);
	}

	/** Loads the last good publication, because the one that the machine has to return to cannot be loaded. */
	async #loadLastGood(rollout: Rollout, outcome: LoadOutcome): Promise<LoadOutcome> {
		const fallback = this.#copies.lastGood;
		if (!fallback || fallback.number === rollout.previous || fallback.number === this.#served.number) return outcome;
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
		const withdrawn = isReturn ? this.#served.number : undefined;
		let result: PublicationLoadResult;
		let sealed: Buffer | undefined;
		let publication: Publication | undefined;
		const errorRateBefore = this.#traffic.recentErrorRate();
		try {
			sealed = number === 0 ? undefined : await this.#copies.fetch(wanted);
			const { sealedValues, publishers } = this.#deps;
			publication = sealed && openPublication(sealedValues, number, sealed, publishers, wanted.identity);
			if (this.#isClosed) return 'unavailable';
			if (isTrial) await this.#disk.use(folder => folder.beginTrial(wanted));
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
				this.#log.write('info', 'publication postponed', {
					publication: number,
					serving: this.#served.number,
					cause: 'it needs another process, and this one awaits its confirmation',
				});
			this.#postponed = wanted;
			this.#nextLoadAt = this.#clock.threadNow() + RETRY_FAILED_LOAD_MS;
			if (isTrial) await this.#disk.use(folder => folder.endTrial());
			return 'unavailable';
		}
		if (result.result === 'refused') {
			const { reason, kind = 'refused' } = result;
			const known = this.#failures.of(number)?.reason;
			this.#failures.record({ publication: number, identity: wanted.identity, kind, reason });
			// After the end of a rollout, loading is retried until it succeeds, so the same failure is logged only once.
			if (this.#failures.of(number)?.reason !== known)
				this.#log.write('error', 'publication refused', {
					publication: number,
					serving: this.#served.number,
					reason: failureReason({ kind, reason }),
				});
			if (isTrial) await this.#disk.use(folder => folder.endTrial());
			return 'refused';
		}
		this.#log.write('info', 'publication loaded', { publication: number, before: this.#served.number });
		const identity = publication?.identity;
		this.#served.replaceBy(number, identity);
		this.#failures.forget(number);
		this.#copies.onLoaded(sealed && { number, identity, sealed });
		this.#traffic.onLoad(errorRateBefore);
		if (!isTrial) await this.#disk.use(folder => folder.endTrial());
		return 'loaded';
	}

	/** Writes the publication that is being served to the disk, once it is no longer on trial. */
	async #keepIfGood(): Promise<void> {
		const rollout = this.#rollout;
		const { reference } = this.#served;
		const { number, identity } = reference;
		if (!rollout || number === 0 || this.#isStepUnderWay) return;
		if (this.#served.isFinal && this.#copies.hasKept(reference)) return;
		if (!isSamePublication(reference, { number: publicationAtStart(rollout), identity: identityOf(rollout, number) }))
			return;
		let sealed: Buffer;
		try {
			sealed = await this.#copies.fetch(reference);
			const current = this.#served.reference;
			if (this.#isStepUnderWay || current.number !== number || current.identity !== identity) return;
			// If somebody has altered the publication in Redis, it must not replace the good one on the disk.
			if (!this.#served.openFinal(sealed)) return;
		} catch (error) {
			if (!(error instanceof ClusterError || error instanceof PublicationRefused)) this.#log.unexpected(error);
			return;
		}
		if (!this.#copies.hasKept(reference)) await this.#copies.keep({ ...reference, sealed });
	}
}
