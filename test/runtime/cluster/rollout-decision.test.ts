/** The decisions of a rollout, with simulated machines and a clock that the test moves: waves, failures, pauses and returns. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	abortRollout,
	createRollout,
	decideMachineStep,
	LOST_AFTER_MS,
	MAX_TRIAL_WITHOUT_CONTACT_MS,
	MAX_UNREADY_MS,
	type MachineFailure,
	type MachineReport,
	type MachineState,
	machineRank,
	nextRollout,
	type PublicationNumber,
	pauseRollout,
	planPublication,
	publicationAtStart,
	REPORT_INTERVAL_MS,
	RETRY_FAILED_LOAD_MS,
	ROLLOUT_PHASES,
	type Rollout,
	type RolloutTerms,
	resumeRollout,
	shiftRollout,
	wantedPublication,
} from '../../../runtime/cluster/rollout-decision.ts';

const decisions = suite('decisions of a rollout');

const TERMS: RolloutTerms = { shares: [0.1, 1], observationMs: 5000, loadLimitMs: 60_000, maxErrorRateRise: 0.05 };
const NO_TRAFFIC = { responses: 0, serverErrors: 0, errorRateBefore: 0 };

/** A simulated machine. It does what the rollout tells it, unless a test changes its behavior. */
class SimulatedMachine {
	readonly id: string;
	serves: PublicationNumber = 1;
	isReady = true;
	traffic: MachineReport['traffic'] = NO_TRAFFIC;
	failure: MachineState['failure'];
	/** False while the machine can neither report nor read the state. */
	isReachable = true;
	unreadySince: number | undefined;
	lastContactAt = 0;
	reportedAt = 0;
	readonly served: Set<PublicationNumber> = new Set([1]);
	/** Tries to load a publication. Returns the reason if it refuses. */
	onLoad: (publication: PublicationNumber) => string | undefined = () => undefined;

	constructor(id: string) {
		this.id = id;
	}

	act(rollout: Rollout, now: number): void {
		const state: MachineState = {
			machine: this.id,
			serves: this.serves,
			traffic: this.traffic,
			unreadySince: this.unreadySince,
			lastContactAt: this.lastContactAt,
			failure: this.failure,
		};
		const decision = decideMachineStep(rollout, state, now);
		if (decision.step === 'none') return;
		if (decision.step === 'return' && decision.failure) this.failure = { ...decision.failure, at: now };
		const reason = this.onLoad(decision.publication);
		if (reason !== undefined) {
			this.failure = { publication: decision.publication, kind: 'refused', reason, at: now };
			return;
		}
		this.serves = decision.publication;
		this.served.add(decision.publication);
		this.traffic = NO_TRAFFIC;
	}

	report(now: number): void {
		this.lastContactAt = now;
		this.reportedAt = now;
	}

	get latestReport(): MachineReport {
		const { id: machine, serves, isReady, traffic, reportedAt } = this;
		const { at: _, ...failure } = this.failure ?? { at: 0 };
		const isFailed = this.failure !== undefined;
		return {
			machine,
			serves,
			isReady,
			traffic,
			reportedAt,
			...(isFailed ? { failure: failure as MachineFailure } : {}),
		};
	}
}

class Fleet {
	readonly machines: SimulatedMachine[];
	now = 1_000_000;
	rollout: Rollout;

	constructor(count: number, terms: Partial<RolloutTerms> = {}) {
		this.machines = Array.from({ length: count }, (_, i) => new SimulatedMachine(`machine-${i}`));
		this.rollout = createRollout(2, 1, { ...TERMS, ...terms }, this.now);
		for (const machine of this.machines) machine.report(this.now);
	}

	/** The machines in the order in which they are admitted. */
	get ordered(): SimulatedMachine[] {
		return [...this.machines].sort((a, b) => machineRank(2, a.id) - machineRank(2, b.id));
	}

	/** Lets an interval pass: every machine acts and reports, then the coordinator decides. */
	tick(): void {
		this.now += REPORT_INTERVAL_MS;
		for (const machine of this.machines) {
			machine.act(this.rollout, this.now);
			if (machine.isReachable) machine.report(this.now);
		}
		const reports = this.machines.map(({ latestReport }) => latestReport);
		this.rollout = nextRollout(this.rollout, reports, this.now);
	}

	/** Lets time pass until a condition holds. */
	runUntil(what: string, condition: () => boolean): void {
		for (let ticks = 0; !condition(); ticks++) {
			if (ticks === 1000) throw new Error(`never happened: ${what}; ${JSON.stringify(this.rollout)}`);
			this.tick();
		}
	}

	runFor(milliseconds: number): void {
		for (const end = this.now + milliseconds; this.now < end; ) this.tick();
	}

	countServing(publication: PublicationNumber): number {
		return this.machines.filter(({ serves }) => serves === publication).length;
	}

	countTouched(): number {
		return this.machines.filter(({ served }) => served.has(2)).length;
	}
}

decisions('a good publication reaches a tenth of the machines, is observed, and reaches all', () => {
	const fleet = new Fleet(30);
	fleet.runUntil('the first wave serves', () => fleet.countServing(2) > 0);
	assert.is(fleet.countServing(2), 3);
	const { now } = fleet;
	fleet.runUntil('the second wave', () => fleet.countTouched() > 3);
	assert.ok(fleet.now - now >= TERMS.observationMs, `${fleet.now - now} ms`);
	assert.is(fleet.rollout.phase, 'running');
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
	assert.is(fleet.countServing(2), 30);
	assert.is(publicationAtStart(fleet.rollout), 2);
});

decisions('every share has a wave, and shares that add no machine are skipped', () => {
	const fleet = new Fleet(20, { shares: [0.01, 0.02, 0.05, 0.5, 1] });
	const counts = new Set<number>();
	fleet.runUntil('the end', () => {
		counts.add(fleet.countTouched());
		return fleet.rollout.phase === 'completed';
	});
	assert.equal([...counts], [0, 1, 10, 20]);
});

decisions('a refusal stops the rollout on the first machine, and the others never see it', () => {
	const fleet = new Fleet(10);
	for (const machine of fleet.machines) machine.onLoad = one => (one === 2 ? 'a certificate is missing' : undefined);
	fleet.runUntil('the stop', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'stopped');
	assert.is(fleet.rollout.reason, 'a certificate is missing');
	assert.is(fleet.rollout.failedMachine, fleet.ordered[0]!.id);
	fleet.runFor(60_000);
	assert.is(fleet.countTouched(), 0);
	assert.is(fleet.machines.filter(({ failure }) => failure !== undefined).length, 1);
	assert.is(publicationAtStart(fleet.rollout), 1);
});

decisions('errors stop the rollout: the machine returns at once, by itself', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	first.traffic = { responses: 19, serverErrors: 19, errorRateBefore: 0 };
	fleet.tick();
	assert.is(first.serves, 2);
	first.traffic = { responses: 40, serverErrors: 6, errorRateBefore: 0 };
	fleet.tick();
	assert.is(first.serves, 2);
	first.traffic = { responses: 40, serverErrors: 8, errorRateBefore: 0 };
	fleet.tick();
	assert.is(first.serves, 1);
	assert.is(fleet.rollout.phase, 'stopped');
	assert.is(fleet.rollout.reason, '20.0 % of 40 responses were errors');
	assert.is(fleet.countTouched(), 1);
	fleet.runFor(60_000);
	assert.is(fleet.countServing(1), 10);
});

decisions('errors that were there before do not stop the rollout', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	first.traffic = { responses: 100, serverErrors: 52, errorRateBefore: 0.5 };
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
});

decisions('errors of many machines add up, even if each of them has served little', () => {
	const fleet = new Fleet(10, { shares: [0.5, 1] });
	fleet.runUntil('the first wave serves', () => fleet.countServing(2) === 5);
	for (const machine of fleet.ordered.slice(0, 5)) {
		machine.traffic = { responses: 4, serverErrors: 1, errorRateBefore: 0 };
	}
	fleet.tick();
	assert.is(fleet.rollout.phase, 'stopped');
	assert.is(fleet.rollout.reason, '25.0 % of 20 responses of all admitted machines were errors');
});

decisions('a machine that stays unready returns; one that is unready for a moment does not', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	first.unreadySince = fleet.now;
	first.isReady = false;
	fleet.runFor(MAX_UNREADY_MS);
	assert.is(first.serves, 2);
	assert.is(fleet.rollout.phase, 'running');
	fleet.tick();
	assert.is(first.serves, 1);
	assert.is(fleet.rollout.phase, 'stopped');
	assert.is(fleet.rollout.reason, 'the machine was not ready for requests');
});

decisions('a machine that is lost after it has loaded the publication stops the rollout', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	first.isReachable = false;
	fleet.runFor(LOST_AFTER_MS);
	assert.is(fleet.rollout.phase, 'running');
	fleet.tick();
	assert.is(fleet.rollout.phase, 'stopped');
	assert.is(fleet.rollout.reason, 'the machine no longer reports');
	assert.is(fleet.rollout.failedMachine, first.id);
	// The machine that was cut off returns to the previous publication by itself.
	const state = { machine: first.id, serves: 2, traffic: NO_TRAFFIC, unreadySince: undefined, failure: undefined };
	const { now } = fleet;
	const trial = { ...fleet.rollout, phase: 'running' as const };
	const atLimit = { ...state, lastContactAt: now - MAX_TRIAL_WITHOUT_CONTACT_MS };
	assert.is(decideMachineStep(trial, atLimit, now).step, 'none');
	const decision = decideMachineStep(trial, { ...atLimit, lastContactAt: atLimit.lastContactAt - 1 }, now);
	assert.is(decision.step === 'return' && decision.publication, 1);
	// If the publication has completed its trial, the machine keeps it.
	assert.is(decideMachineStep({ ...trial, phase: 'completed' }, { ...state, lastContactAt: 0 }, now).step, 'none');
});

decisions('a machine that was lost before the wave, or outside of it, changes nothing', () => {
	const fleet = new Fleet(10);
	const [first, second] = fleet.ordered as [SimulatedMachine, SimulatedMachine];
	first.isReachable = false;
	first.reportedAt = fleet.now - LOST_AFTER_MS - 1;
	fleet.runUntil('another machine serves', () => second.serves === 2);
	fleet.ordered[5]!.isReachable = false;
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
	// Both machines load the publication when they can reach the cluster again.
	first.isReachable = true;
	fleet.ordered[5]!.isReachable = true;
	fleet.runUntil('all serve it', () => fleet.countServing(2) === 10);
});

decisions('if the only machine of a wave leaves, another one takes its place', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	fleet.rollout = pauseRollout(fleet.rollout)!;
	fleet.machines.splice(fleet.machines.indexOf(first), 1);
	fleet.runFor(LOST_AFTER_MS * 2);
	assert.is(fleet.countServing(2), 0);
	fleet.rollout = resumeRollout(fleet.rollout)!;
	const { wave } = fleet.rollout;
	fleet.runUntil('another machine serves', () => fleet.countServing(2) > 0);
	assert.is(fleet.countServing(2), 1);
	assert.is(fleet.rollout.wave, wave);
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
});

decisions('if all machines leave, the rollout goes on with the first one that reports', () => {
	const fleet = new Fleet(1);
	fleet.runUntil('the machine serves', () => fleet.countServing(2) === 1);
	fleet.machines.splice(0);
	const before = fleet.rollout;
	fleet.runFor(LOST_AFTER_MS * 2);
	assert.is(fleet.rollout, before);
	fleet.machines.push(new SimulatedMachine('new'));
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
});

decisions('a wave of 100 machines tolerates five that are lost or have failed, but not six', () => {
	for (const [lost, phase] of [
		[5, 'completed'],
		[6, 'stopped'],
	] as const) {
		const fleet = new Fleet(100, { shares: [1] });
		fleet.runUntil('all serve', () => fleet.countServing(2) === 100);
		for (const machine of fleet.ordered.slice(0, 3)) machine.isReachable = false;
		for (const [index, machine] of fleet.ordered.slice(3, lost).entries()) {
			machine.serves = 1;
			const kind = (['ended', 'errors', 'unready'] as const)[index]!;
			machine.failure = { publication: 2, kind, reason: 'the machine has failed', at: fleet.now };
		}
		fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
		assert.is(fleet.rollout.phase, phase, `${lost} lost`);
	}
});

decisions(
	'a machine that cannot load the publication because of itself stops the rollout, and the reason says so',
	() => {
		for (const [kind, reason] of [
			['machine', 'the cause lies with the machine: the port is in use'],
			['refused', 'the port is in use'],
		] as const) {
			const fleet = new Fleet(100, { shares: [1] });
			const first = fleet.ordered[0]!;
			first.failure = { publication: 2, kind, reason: 'the port is in use', at: fleet.now };
			fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
			assert.is(fleet.rollout.phase, 'stopped');
			assert.is(fleet.rollout.reason, reason);
			assert.is(fleet.rollout.failedMachine, first.id);
		}
	},
);

decisions('a machine whose process ended does not load the publication again before the end of the trial', () => {
	const fleet = new Fleet(40, { shares: [1] });
	fleet.runUntil('all serve', () => fleet.countServing(2) === 40);
	const first = fleet.ordered[0]!;
	first.serves = 1;
	first.failure = { publication: 2, kind: 'ended', reason: 'the process ended unexpectedly', at: fleet.now };
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(first.serves, 1);
	fleet.runFor(RETRY_FAILED_LOAD_MS + REPORT_INTERVAL_MS);
	assert.is(fleet.countServing(2), 40);
});

decisions('a machine that does not load the publication in time stops the rollout', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	first.act = () => {};
	fleet.runUntil('the stop', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.reason, 'the machine has not loaded it within 60 s');
	assert.is(fleet.rollout.failedMachine, first.id);
});

decisions('a paused rollout admits nobody, still stops at a failure, and can be resumed', () => {
	const fleet = new Fleet(10);
	fleet.runUntil('the first machine serves', () => fleet.countServing(2) === 1);
	fleet.rollout = pauseRollout(fleet.rollout)!;
	assert.is(pauseRollout(fleet.rollout), undefined);
	fleet.runFor(120_000);
	assert.is(fleet.countServing(2), 1);
	const paused = fleet.rollout;
	fleet.rollout = resumeRollout(fleet.rollout)!;
	assert.is(resumeRollout(fleet.rollout), undefined);
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
	assert.is(pauseRollout(fleet.rollout), undefined);

	const failing = new Fleet(10);
	failing.runUntil('the first machine serves', () => failing.countServing(2) === 1);
	failing.rollout = { ...paused, startedAt: failing.now, waveStartedAt: failing.now };
	failing.ordered[0]!.traffic = { responses: 20, serverErrors: 20, errorRateBefore: 0 };
	failing.runUntil('the stop', () => failing.rollout.phase === 'stopped');
	assert.is(failing.countServing(2), 0);
});

decisions('a rollout that is paused before its first wave admits nobody until it is resumed', () => {
	const fleet = new Fleet(10);
	fleet.rollout = pauseRollout(fleet.rollout)!;
	fleet.runFor(10_000);
	assert.is(fleet.countTouched(), 0);
});

decisions('after an abort, all machines return, and the rollout cannot be aborted again', () => {
	const fleet = new Fleet(10, { shares: [0.5, 1] });
	fleet.runUntil('the first wave serves', () => fleet.countServing(2) === 5);
	fleet.rollout = abortRollout(fleet.rollout, fleet.now)!;
	assert.is(abortRollout(fleet.rollout, fleet.now), undefined);
	fleet.runFor(5000);
	assert.is(fleet.countServing(1), 10);
	assert.is(fleet.countTouched(), 5);
	assert.is(fleet.rollout.phase, 'aborted');
});

decisions('a machine that cannot return tries again', () => {
	const fleet = new Fleet(10);
	const first = fleet.ordered[0]!;
	fleet.runUntil('the first machine serves', () => first.serves === 2);
	let refusals = 0;
	first.onLoad = () => (refusals++ < 2 ? 'a thread died' : undefined);
	fleet.rollout = abortRollout(fleet.rollout, fleet.now)!;
	fleet.runUntil('it returns', () => first.serves === 1);
	assert.is(refusals, 3);
});

decisions('while a rollout runs, a machine loads the previous publication again, but never the one on trial', () => {
	const now = 1_000_000;
	const trial = createRollout(2, 1, TERMS, now);
	const stepAfterFailure = (rollout: Rollout, publication: PublicationNumber, ageMs: number) => {
		const failure = { publication, kind: 'refused', reason: 'a certificate is missing', at: now - ageMs } as const;
		const state = {
			machine: 'a',
			serves: 0,
			traffic: NO_TRAFFIC,
			unreadySince: undefined,
			lastContactAt: now,
			failure,
		};
		return decideMachineStep(rollout, state, now);
	};
	for (const phase of ['running', 'paused'] as const) {
		const rollout = { ...trial, phase };
		assert.equal(stepAfterFailure(rollout, 1, RETRY_FAILED_LOAD_MS), { step: 'load', publication: 1 });
		assert.equal(stepAfterFailure(rollout, 1, RETRY_FAILED_LOAD_MS - 1), { step: 'none' });
		assert.equal(stepAfterFailure({ ...rollout, admittedRank: 1 }, 2, 60_000), { step: 'none' });
	}
});

decisions('without machines, a rollout waits for the first one', () => {
	const fleet = new Fleet(0);
	fleet.runFor(120_000);
	assert.is(fleet.rollout.wave, -1);
	const machine = new SimulatedMachine('first');
	fleet.machines.push(machine);
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(fleet.rollout.phase, 'completed');
	assert.is(machine.serves, 2);
});

decisions('a machine that joins during the last wave loads the publication before the rollout is completed', () => {
	const fleet = new Fleet(10);
	fleet.runUntil('all serve', () => fleet.countServing(2) === 10);
	const late = new SimulatedMachine('late');
	late.serves = publicationAtStart(fleet.rollout);
	assert.is(late.serves, 1);
	fleet.machines.push(late);
	fleet.runUntil('the end', () => fleet.rollout.phase !== 'running');
	assert.is(late.serves, 2);
});

decisions('a machine that is cut off loads nothing that it was told before', () => {
	const rollout = { ...createRollout(2, 1, TERMS, 0), admittedRank: 1, wave: 1 };
	const state = { machine: 'a', serves: 1, traffic: NO_TRAFFIC, unreadySince: undefined, failure: undefined };
	assert.is(decideMachineStep(rollout, { ...state, lastContactAt: 0 }, LOST_AFTER_MS + 1).step, 'none');
	assert.is(decideMachineStep(rollout, { ...state, lastContactAt: 1 }, LOST_AFTER_MS + 1).step, 'load');
});

decisions('a number is never given twice: it rises above what any machine or its disk knows', () => {
	const report = (serves: PublicationNumber, highestKnown?: PublicationNumber, identity?: string): MachineReport => ({
		machine: `machine-${serves}-${highestKnown}`,
		serves,
		identity,
		highestKnown,
		isReady: true,
		traffic: NO_TRAFFIC,
		reportedAt: 0,
	});
	assert.equal(planPublication(undefined, []), { number: 1, previous: { number: 0 } });
	// Redis has lost its data. One machine serves publication 5, which was on trial; another one serves 4, but knows of 7.
	const reports = [report(5, 5, 'e'), report(4, 5, 'd'), report(4, 7, 'd'), report(0, undefined)];
	assert.equal(planPublication(undefined, reports), { number: 8, previous: { number: 4, identity: 'd' } });
	const stopped: Rollout = {
		...createRollout(9, 6, TERMS, 0, { identity: 'i', previousIdentity: 'f' }),
		phase: 'stopped',
	};
	assert.equal(planPublication(stopped, reports), { number: 10, previous: { number: 6, identity: 'f' } });
	const completed: Rollout = { ...stopped, phase: 'completed' };
	assert.equal(planPublication(completed, reports), { number: 10, previous: { number: 9, identity: 'i' } });
});

decisions('a rollout that is older than the final publication of a machine is not followed', () => {
	const state = { machine: 'a', traffic: NO_TRAFFIC, unreadySince: undefined, lastContactAt: 0, failure: undefined };
	const [oldTime, newTime] = [1_000_000, 2_000_000];
	const served = { serves: 7, identity: 'g', finalSince: newTime };
	const old: Rollout = { ...createRollout(5, 4, TERMS, oldTime, { identity: 'e' }), admittedRank: 1, wave: 0 };
	for (const phase of ROLLOUT_PHASES) {
		assert.equal(decideMachineStep({ ...old, phase }, { ...state, ...served }, 0), { step: 'none' }, phase);
		assert.is(wantedPublication({ ...old, phase }, { machine: 'a', ...served }), 7);
	}
	const completed: Rollout = { ...old, phase: 'completed' };
	// Publication 7 was on trial when a failover lost its rollout.
	const onTrial = { ...state, ...served, finalSince: undefined };
	assert.equal(decideMachineStep(completed, onTrial, 0), { step: 'load', publication: 5 });
	// Redis had lost its data, so publication 5 is newer than 7.
	const newer = { ...completed, startedAt: newTime + 1 };
	assert.equal(decideMachineStep(newer, { ...state, ...served }, 0), { step: 'load', publication: 5 });
	// The next publication does not make the machines return to the old one.
	const report: MachineReport = { machine: 'a', ...served, isReady: true, traffic: NO_TRAFFIC, reportedAt: 0 };
	assert.equal(planPublication(completed, [report]), { number: 8, previous: { number: 7, identity: 'g' } });
});

decisions('a machine that knows a publication as final keeps it if Redis has it on trial again', () => {
	const state = { machine: 'a', traffic: NO_TRAFFIC, unreadySince: undefined, lastContactAt: 0, failure: undefined };
	const startedAt = 1_000_000;
	const served = { serves: 7, identity: 'g', finalSince: startedAt };
	// Redis was restored from a copy that was made while the rollout had not admitted this machine yet.
	const restored = createRollout(7, 6, TERMS, startedAt, { identity: 'g', previousIdentity: 'f' });
	for (const phase of ['running', 'paused'] as const) {
		const rollout: Rollout = { ...restored, phase };
		for (const now of [0, 1_000_000])
			assert.equal(decideMachineStep(rollout, { ...state, ...served }, now), { step: 'none' }, `${phase} ${now}`);
		assert.is(wantedPublication(rollout, { machine: 'a', ...served }), 7);
		assert.equal(decideMachineStep(rollout, { ...state, ...served, finalSince: undefined }, 0), {
			step: 'load',
			publication: 6,
		});
	}
	const report: MachineReport = { machine: 'a', ...served, isReady: true, traffic: NO_TRAFFIC, reportedAt: 0 };
	assert.equal(planPublication(restored, [report]), { number: 8, previous: { number: 7, identity: 'g' } });
	// A failover had lost the end of the rollout, which has then been stopped.
	assert.equal(decideMachineStep({ ...restored, phase: 'stopped' }, { ...state, ...served }, 0), {
		step: 'load',
		publication: 6,
	});
});

decisions('a machine with another publication of the same number keeps it until it has to load the new one', () => {
	const state = { machine: 'a', traffic: NO_TRAFFIC, unreadySince: undefined, lastContactAt: 0, failure: undefined };
	const trial = createRollout(1, 0, TERMS, 0, { identity: 'new' });
	const stepOf = (rollout: Rollout, serves: PublicationNumber, identity: string | undefined) =>
		decideMachineStep(rollout, { ...state, serves, identity }, 0);
	for (const [serves, identity] of [
		[1, 'old'],
		[4, 'other'],
	] as const) {
		// The rollout's previous configuration is the machine's own file. To load it would be a step back.
		assert.equal(stepOf(trial, serves, identity), { step: 'none' });
		assert.equal(stepOf({ ...trial, phase: 'aborted' }, serves, identity), { step: 'none' });
		assert.equal(stepOf({ ...trial, admittedRank: 1, wave: 0 }, serves, identity), { step: 'load', publication: 1 });
		assert.equal(stepOf({ ...trial, phase: 'completed' }, serves, identity), { step: 'load', publication: 1 });
	}
	assert.equal(stepOf({ ...trial, phase: 'completed' }, 1, 'new'), { step: 'none' });
	assert.equal(stepOf({ ...trial, phase: 'aborted' }, 1, 'new'), { step: 'load', publication: 0 });
	// A publication by an earlier release has no identity.
	assert.equal(stepOf({ ...trial, phase: 'completed' }, 1, undefined), { step: 'none' });
});

decisions('a machine that serves another publication of the same number does not count as serving the new one', () => {
	const now = 1_000_000;
	const rollout: Rollout = {
		...createRollout(1, 0, { ...TERMS, observationMs: 0 }, now, { identity: 'new' }),
		wave: 1,
		admittedRank: 1,
	};
	const report: MachineReport = {
		machine: 'a',
		serves: 1,
		identity: 'old',
		isReady: true,
		traffic: { responses: 1000, serverErrors: 1000, errorRateBefore: 0 },
		failure: { publication: 1, identity: 'old', kind: 'ended', reason: 'the process ended' },
		reportedAt: now,
	};
	assert.is(nextRollout(rollout, [report], now), rollout);
	const { failure: _, ...loaded } = { ...report, identity: 'new', traffic: NO_TRAFFIC };
	assert.is(nextRollout(rollout, [loaded], now).observedSince, now);
});

decisions('a change of the clock of Redis neither loses machines nor shortens or prolongs an observation', () => {
	for (const changeMs of [3_600_000, -3_600_000]) {
		const fleet = new Fleet(10);
		fleet.runUntil('the observation', () => fleet.rollout.observedSince !== undefined);
		const { wave } = fleet.rollout;
		fleet.rollout = shiftRollout(fleet.rollout, changeMs);
		const now = fleet.now + changeMs;
		// One report is from before the clock changed, and one from after it.
		const [first] = fleet.ordered;
		const reports = [{ ...first!.latestReport, reportedAt: now }];
		assert.is(nextRollout(fleet.rollout, reports, now).wave, wave);
		const later = now + TERMS.observationMs;
		const old = fleet.ordered[1]!.latestReport;
		const next = nextRollout(fleet.rollout, [{ ...reports[0]!, reportedAt: later }, old], later);
		assert.is(next.phase, 'completed');
	}
});

decisions('the order of the machines differs between publications', () => {
	const machines = Array.from({ length: 50 }, (_, i) => `machine-${i}`);
	const firstOf = (publication: number): string =>
		[...machines].sort((a, b) => machineRank(publication, a) - machineRank(publication, b))[0]!;
	assert.ok(new Set(Array.from({ length: 20 }, (_, i) => firstOf(i + 1))).size > 5);
});

decisions.run();
