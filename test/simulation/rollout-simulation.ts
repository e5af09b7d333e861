/**
 * A rollout over many machines, some of which fail for reasons unrelated to the publication. Decisions are made by the code of
 * real servers, runtime/cluster/rollout-decision.ts. Loads, traffic and failures are simulated. The same settings yield the same
 * result.
 */
import {
	COORDINATOR_LEASE_MS,
	createRollout,
	decideMachineStep,
	isOnTrial,
	type MachineFailure,
	type MachineReport,
	nextRollout,
	publicationAtStart,
	publicationFor,
	REPORT_INTERVAL_MS,
	type Rollout,
	type RolloutPhase,
	type RolloutTerms,
} from '../../runtime/cluster/rollout-decision.ts';
import { seededRandom } from '../zipf-trace.ts';

/** What the published configuration does on each machine. */
export type PublishedKind =
	| { readonly kind: 'good' }
	| { readonly kind: 'refused' }
	/**
	 * A fraction of the requests is answered with an error, beginning `afterSeconds` seconds after the machine has loaded the
	 * configuration.
	 */
	| { readonly kind: 'errors'; readonly rate: number; readonly afterSeconds: number };

/** The machines, the load and the failures of a simulation. */
export interface RolloutSettings {
	readonly seed: number;
	readonly machines: number;
	readonly terms: RolloutTerms;
	readonly published: PublishedKind;
	/** Requests per second of each machine, and the error rate without the publication. */
	readonly requestRate: number;
	readonly errorRate: number;
	/** Fraction of the machines that are failing at any time, and the mean length of a failure in seconds. */
	readonly failingShare: number;
	readonly failureSeconds: number;
	/** The ways in which machines fail, all equally frequent. */
	readonly failureKinds: readonly MachineFailureKind[];
}

/**
 * How a machine fails. `crashed`: its process ends and is started again. `cut off`: it cannot reach Redis. `unready`: it is not
 * ready, for example because a thread does not respond. `failing requests`: it answers half of the requests with an error, for
 * example because a disk is full.
 */
export type MachineFailureKind = 'crashed' | 'cut off' | 'unready' | 'failing requests';

/** What a simulation of a rollout has shown. */
export interface RolloutResult {
	readonly phase: RolloutPhase;
	readonly reason: string | undefined;
	/** The highest fraction of the machines that have served the publication. */
	readonly reachedShare: number;
	/** Seconds from the publication until the rollout ended. */
	readonly seconds: number;
	/** Number of requests that were answered with an error because of the publication. */
	readonly badResponses: number;
}

const PREVIOUS = 1;
const PUBLICATION = 2;
/** Milliseconds between the checks in which a machine decides what to do next. */
const STEP_INTERVAL_MS = 500;
/** Milliseconds that a machine takes to load a configuration: the minimum, and the mean of the random part added to it. */
const LOAD_MS = 500;
const MEAN_EXTRA_LOAD_MS = 500;
/** Fraction of requests that a machine with the failure `failing requests` answers with an error. */
const OWN_FAILURE_ERROR_RATE = 0.5;
/** Number of checks from which the error rate before a load is computed; they span a minute. */
const MAX_HISTORY_CHECKS = 120;
/** Milliseconds simulated before the publication, and milliseconds after which an unfinished rollout is given up. */
const WARM_UP_MS = 60_000;
const MAX_ROLLOUT_MS = 3_600_000;

interface Machine {
	readonly name: string;
	/** Time of the machine's next report; the machines report at different times. */
	nextReportAt: number;
	serves: number;
	loadedAt: number;
	/** The configuration load in progress; undefined if there is none. */
	loading: { readonly publication: number; readonly endsAt: number } | undefined;
	/** The values of `responses` and `errors` at each of the last checks. */
	history: { responses: number; errors: number }[];
	responses: number;
	errors: number;
	/** The values of `responses` and `errors` when the publication was loaded. */
	responsesAtLoad: number;
	errorsAtLoad: number;
	errorRateBefore: number;
	failing: MachineFailureKind | undefined;
	healsAt: number;
	unreadySince: number | undefined;
	lastContactAt: number;
	failure: (MachineFailure & { readonly at: number }) | undefined;
	known: Rollout;
}

/** Runs a rollout until it has ended. */
export function simulateRollout(settings: RolloutSettings): RolloutResult {
	const { machines: machineCount, terms, published, failureKinds } = settings;
	const random = seededRandom(settings.seed);
	const exponential = (mean: number): number => -Math.log(1 - random()) * mean;
	let rollout: Rollout = { ...createRollout(PREVIOUS, 0, terms, 0), phase: 'completed', admittedRank: 1 };
	const machines: Machine[] = Array.from({ length: machineCount }, (_, index) => ({
		name: `machine-${index}-${settings.seed}`,
		nextReportAt: random() * REPORT_INTERVAL_MS,
		serves: PREVIOUS,
		loadedAt: 0,
		loading: undefined,
		history: [],
		responses: 0,
		errors: 0,
		responsesAtLoad: 0,
		errorsAtLoad: 0,
		errorRateBefore: 0,
		failing: undefined,
		healsAt: 0,
		unreadySince: undefined,
		lastContactAt: 0,
		failure: undefined,
		known: rollout,
	}));
	const reports = new Map<string, MachineReport>();
	const reached = new Set<string>();
	let coordinator: { name: string; until: number } | undefined;
	let badResponses = 0;
	/** Probability that a healthy machine fails between two checks. */
	const failureChance =
		((settings.failingShare / settings.failureSeconds) * STEP_INTERVAL_MS) / 1000 / (1 - settings.failingShare);

	const finishLoad = (machine: Machine, publication: number, now: number): void => {
		const first = machine.history[0];
		const recent = first ? machine.responses - first.responses : 0;
		machine.errorRateBefore = recent >= 20 ? (machine.errors - first!.errors) / recent : 0;
		machine.serves = publication;
		machine.loadedAt = now;
		machine.responsesAtLoad = machine.responses;
		machine.errorsAtLoad = machine.errors;
		machine.history = [];
		if (machine.failure?.publication === publication) machine.failure = undefined;
		if (publication === PUBLICATION) reached.add(machine.name);
	};
	const trafficOf = (machine: Machine) => ({
		responses: machine.responses - machine.responsesAtLoad,
		serverErrors: machine.errors - machine.errorsAtLoad,
		errorRateBefore: machine.errorRateBefore,
	});
	const report = (machine: Machine, now: number): void => {
		machine.nextReportAt = now + REPORT_INTERVAL_MS * (0.9 + random() / 5);
		machine.lastContactAt = now;
		machine.known = rollout;
		const { failure } = machine;
		reports.set(machine.name, {
			machine: machine.name,
			serves: machine.serves,
			isReady: machine.failing !== 'unready',
			traffic: trafficOf(machine),
			...(failure && { failure }),
			reportedAt: now,
		});
		if (!isOnTrial(rollout)) return;
		if (coordinator && coordinator.until > now && coordinator.name !== machine.name) return;
		coordinator = { name: machine.name, until: now + COORDINATOR_LEASE_MS };
		rollout = nextRollout(rollout, [...reports.values()], now);
		machine.known = rollout;
	};
	const serve = (machine: Machine, now: number): void => {
		const isBad =
			published.kind === 'errors' &&
			machine.serves === PUBLICATION &&
			now - machine.loadedAt >= published.afterSeconds * 1000;
		const responses = poisson((settings.requestRate * STEP_INTERVAL_MS) / 1000, random);
		for (let response = 0; response < responses; response++) {
			const isOwn = random() < (machine.failing === 'failing requests' ? OWN_FAILURE_ERROR_RATE : settings.errorRate);
			const isOfPublication = isBad && random() < published.rate;
			if (isOfPublication) badResponses++;
			if (isOwn || isOfPublication) machine.errors++;
		}
		machine.responses += responses;
		machine.history.push({ responses: machine.responses, errors: machine.errors });
		if (machine.history.length > MAX_HISTORY_CHECKS) machine.history.shift();
	};
	const changeHealth = (machine: Machine, now: number): void => {
		if (machine.failing === undefined) {
			if (random() >= failureChance) return;
			machine.failing = failureKinds[Math.floor(random() * failureKinds.length)]!;
			machine.healsAt = now + exponential(settings.failureSeconds * 1000);
			if (machine.failing === 'crashed') {
				machine.loading = undefined;
				if (machine.serves === PUBLICATION && isOnTrial(machine.known)) {
					const reason = 'the process ended unexpectedly while it served the publication';
					machine.failure = { publication: PUBLICATION, kind: 'ended', reason, at: now };
				}
			}
		} else if (now >= machine.healsAt) {
			if (machine.failing === 'crashed') finishLoad(machine, publicationAtStart(rollout), now);
			machine.failing = undefined;
		}
	};
	const takeStep = (machine: Machine, now: number): void => {
		if (machine.failing === 'unready') machine.unreadySince ??= now;
		else machine.unreadySince = undefined;
		if (machine.loading) {
			if (now < machine.loading.endsAt) return;
			const { publication } = machine.loading;
			machine.loading = undefined;
			if (publication === PUBLICATION && published.kind === 'refused') {
				const reason = 'the configuration cannot be loaded';
				machine.failure = { publication, kind: 'refused', reason, at: now };
			} else finishLoad(machine, publication, now);
			machine.nextReportAt = now;
			return;
		}
		const isOfWanted = machine.failure && machine.failure.publication === publicationFor(machine.known, machine.name);
		const failure = isOfWanted ? machine.failure : undefined;
		const { name, serves, unreadySince, lastContactAt } = machine;
		const state = { machine: name, serves, traffic: trafficOf(machine), unreadySince, lastContactAt, failure };
		const decision = decideMachineStep(machine.known, state, now);
		if (decision.step === 'none') return;
		if (decision.step === 'return' && decision.failure) machine.failure = { ...decision.failure, at: now };
		machine.loading = {
			publication: decision.publication,
			endsAt: now + LOAD_MS + exponential(MEAN_EXTRA_LOAD_MS),
		};
	};

	for (let now = 0; now < WARM_UP_MS + MAX_ROLLOUT_MS; now += STEP_INTERVAL_MS) {
		if (now === WARM_UP_MS) rollout = createRollout(PUBLICATION, PREVIOUS, terms, now);
		if (now > WARM_UP_MS && !isOnTrial(rollout)) break;
		for (const machine of machines) {
			changeHealth(machine, now);
			if (machine.failing === 'crashed') continue;
			serve(machine, now);
			if (machine.failing !== 'cut off' && now >= machine.nextReportAt) report(machine, now);
			takeStep(machine, now);
		}
	}
	return {
		phase: rollout.phase,
		reason: rollout.reason,
		reachedShare: reached.size / machineCount,
		seconds: ((rollout.endedAt ?? WARM_UP_MS + MAX_ROLLOUT_MS) - WARM_UP_MS) / 1000,
		badResponses,
	};
}

/** Returns a random number of events whose expected number is `mean`. */
function poisson(mean: number, random: () => number): number {
	const limit = Math.exp(-mean);
	let count = 0;
	for (let product = random(); product > limit; product *= random()) count++;
	return count;
}
