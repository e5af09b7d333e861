/**
 * Three machines under load while their redis-server fails in every way, and while one of them is cut off from it. Requests
 * fail only where the configuration says so, response times do not grow, limits follow `on_error`, and every purge reaches every
 * machine in the end.
 *
 * A fault lasts `SVC_FAULT_SECONDS` seconds, by default 6.
 */
import { existsSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until, waitForClock } from '../../harness.ts';
import { canCreateNamespaces, isInNamespaces, runInNamespaces } from '../private-namespaces.ts';
import { Fleet, type FleetMachine, LIMIT, POLICIES, type Policy, type PurgeAnswer, pages } from './fleet.ts';
import { highestUsage, medianOf, p99BySecond, statusesOf } from './phases.ts';
import { makeNetworks } from './private-network.ts';
import type { Sample } from './visitor.ts';

const FAULT_MS = Number(process.env.SVC_FAULT_SECONDS ?? 6) * 1000;
/** Minimum length of a fault for which response times are checked. Shorter runs only print them. */
const MIN_MEASURED_FAULT_MS = 30_000;
/** Milliseconds of the phases without a fault. */
const QUIET_MS = Math.max(4000, FAULT_MS / 4);
/** Milliseconds at the beginning that are not measured, because connections are new and code is not compiled yet. */
const WARM_UP_MS = 1500;
/** Maximum factor by which response times may grow during a fault. */
const MAX_GROWTH = 1.3;
/** Growth of response times, in milliseconds, that is too small to be attributed to a fault. */
const MIN_GROWTH_MS = 1;
/** Maximum fraction of the requests with a limit that may wait for a Redis that does not answer in time. */
const MAX_WAITING_SHARE = 0.01;
/** Environment variable that makes this file fail on purpose, to test that a failure leaves nothing behind. */
const FAILING_VARIABLE = 'SVC_TEST_FAULT_FAILS';

interface Fault {
	readonly name: string;
	begin(fleet: Fleet): Promise<void>;
	end(fleet: Fleet): Promise<void>;
	readonly isRelayed?: boolean;
	/** Indexes of the machines that cannot use Redis during the fault. */
	readonly without: readonly number[];
	/** True if Redis loses the purges with its data. */
	readonly losesData?: boolean;
	/** True if the fault ends so soon that Redis is unavailable only for a moment. */
	readonly isBrief?: boolean;
}

const ALL = [0, 1, 2];
const FAULTS: readonly Fault[] = [
	{
		name: 'killed, and restarted with its data',
		begin: ({ redis }) => redis.kill(),
		end: ({ redis }) => redis.start(),
		without: ALL,
	},
	{
		name: 'frozen',
		begin: async ({ redis }) => redis.signal('SIGSTOP'),
		end: async ({ redis }) => redis.signal('SIGCONT'),
		without: ALL,
	},
	{
		name: 'cut off from all machines',
		begin: ({ redis }) => redis.machine.setLink('back', 'down'),
		end: ({ redis }) => redis.machine.setLink('back', 'up'),
		without: ALL,
	},
	{
		name: 'two seconds late with every reply',
		begin: async fleet => fleet.delayRedis(1000),
		end: async fleet => fleet.delayRedis(0),
		isRelayed: true,
		without: ALL,
	},
	{
		name: 'full',
		begin: async ({ redis }) => void (await redis.cli('config', 'set', 'maxmemory', '1')),
		end: async ({ redis }) => void (await redis.cli('config', 'set', 'maxmemory', '0')),
		without: ALL,
	},
	{
		name: 'restarted without its data',
		begin: async ({ redis }) => {
			await redis.kill();
			redis.deleteData();
			await redis.start();
		},
		end: async () => {},
		without: ALL,
		losesData: true,
		isBrief: true,
	},
	{
		name: 'cut off from one machine',
		begin: ({ machines }) => machines[2]!.network.setLink('back', 'down'),
		end: ({ machines }) => machines[2]!.network.setLink('back', 'up'),
		without: [2],
	},
];

const pathOf = (policy: Policy): string => `/limited/${policy}`;

/** Returns the samples of the cluster's machines. */
const ofCluster = (samples: readonly Sample[]): Sample[] => samples.filter(({ machine }) => machine < ALL.length);

function limitedBy(policy: Policy, samples: readonly Sample[]): Sample[] {
	return ofCluster(samples).filter(({ path }) => path === pathOf(policy));
}

/** Returns the unexpected responses. Only `on_error deny` may refuse requests because of a failure. */
function failuresIn(samples: readonly Sample[]): string[] {
	const isExpected = ({ path, status, text, machine }: Sample): boolean => {
		if (path === '/plain') return status === 200 && ['first', 'second'].includes(text);
		if (path === '/pages/') return status === 200 && /^\/pages\/\d version \d+;$/.test(text);
		if (status === 200) return text === 'admitted';
		return status === 429 || (status === 503 && path === pathOf('deny') && machine < ALL.length);
	};
	return samples
		.filter(sample => !isExpected(sample))
		.map(({ machine, path, status, text }) => `machine ${machine} ${path}: ${status} ${text}`);
}

/** Waits until a machine reports the usage of rate limits to Redis again. */
async function untilReported(machine: FleetMachine): Promise<void> {
	const counted = () => machine.metric('svc_cluster_limit_reports_total{result="counted"}');
	const before = await counted();
	await until(`${machine.network.name} reports its usage`, async () => (await counted()) > before);
}

/**
 * Checks that response times during the fault are about the same as without it. Slowness that also affects the machine without
 * Redis is tolerated, and so are differences as large as those between seconds without a fault.
 */
function checkTimes(
	fault: Fault,
	kind: string,
	isKind: (path: string) => boolean,
	quiet: Sample[],
	faulty: Sample[],
): void {
	const ofKind = (samples: readonly Sample[]): Sample[] => samples.filter(({ path }) => isKind(path));
	const ofControl = (samples: readonly Sample[]): Sample[] =>
		ofKind(samples).filter(({ machine }) => machine >= ALL.length);
	const [quietP99s, faultyP99s] = [quiet, faulty].map(samples => p99BySecond(ofKind(ofCluster(samples))));
	const [controlQuiet, controlFaulty] = [quiet, faulty].map(samples => medianOf(p99BySecond(ofControl(samples))));
	const [before, during, worst] = [medianOf(quietP99s!), medianOf(faultyP99s!), Math.max(...quietP99s!)];
	const shown = [before, worst, during, controlQuiet!, controlFaulty!].map(value => value.toFixed(1));
	const line = `${fault.name}, ${kind}: the p99 of a typical second is ${shown[0]} ms without the fault (at worst ${shown[1]}) and ${shown[2]} ms during it; ${shown[3]} and ${shown[4]} ms on a machine without Redis`;
	console.log(line);
	const noise = Math.max(1, controlFaulty! / controlQuiet!);
	// A short run has too few seconds of each phase to tell a change from the noise of a shared machine.
	const areTimesChecked = FAULT_MS >= MIN_MEASURED_FAULT_MS;
	const limitMs = Math.max(before * MAX_GROWTH * noise, before + MIN_GROWTH_MS, worst);
	assert.ok(!areTimesChecked || during <= limitMs, line);
}

async function prove(fault: Fault, fleet: Fleet): Promise<void> {
	const { machines, application } = fleet;
	await waitForClock(WARM_UP_MS);
	await fleet.takeSamples();
	await waitForClock(QUIET_MS);
	const quiet = await fleet.takeSamples();
	const changed = pages().slice(0, 6);

	const countWaits = async (): Promise<number> => {
		const counts = fault.without.map(index => machines[index]!.metric('svc_rate_limit_waits_total'));
		return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
	};
	await fault.begin(fleet);
	await waitForClock(FAULT_MS / 3);
	const purges: { readonly machine: number; readonly answer: PurgeAnswer }[] = [];
	for (const [index, page] of changed.entries()) {
		const machine = index % machines.length;
		application.change(page);
		purges.push({ machine, answer: await machines[machine]!.purge(page) });
	}
	// By now, the machines have noticed the fault, so hardly any request waits for Redis.
	const knownSince = Date.now();
	const waitsBefore = await countWaits();
	await waitForClock(FAULT_MS / 6);
	await Promise.all([...machines, fleet.control].map(machine => machine.reload('second')));
	await waitForClock(FAULT_MS / 2);
	const waits = (await countWaits()) - waitsBefore;
	const knownUntil = Date.now();
	await fault.end(fleet);
	for (const machine of machines) {
		for (const page of changed) {
			const expected = application.textOf(page);
			await until(`${machine.network.name} serves ${expected}`, async () => (await machine.get(page)) === expected);
		}
		await untilReported(machine);
	}
	const completePurges = await Promise.all(machines.map(one => one.metric('svc_cluster_complete_purges_total')));
	assert.equal(
		completePurges.map(count => count > 0),
		machines.map(() => fault.losesData === true),
		'only lost purges make a machine purge everything',
	);
	if (fault.losesData !== true) {
		const received = await Promise.all(
			machines.map(one => one.metric('svc_cluster_purges_total{direction="received"}')),
		);
		const others = changed.length - changed.length / machines.length;
		assert.equal(received, [others, others, others], 'every machine received each purge of the others once');
	}
	await until('a purge is confirmed by all machines again', async () => {
		const { status, machines: confirmations } = await machines[0]!.purge(changed[0]!);
		return status === 200 && confirmations!.confirmed.length === 2 && confirmations!.unconfirmed.length === 0;
	});
	const faulty = await fleet.takeSamples();
	await waitForClock(QUIET_MS);
	const healed = await fleet.takeSamples();

	for (const samples of [quiet, faulty, healed]) assert.equal(failuresIn(samples), []);
	const unharmed = [...quiet, ...healed];
	checkTimes(fault, 'without a limit', path => !path.startsWith('/limited/'), unharmed, faulty);
	checkTimes(fault, 'with a limit', path => path.startsWith('/limited/'), unharmed, faulty);
	const limitedCount = faulty.filter(({ machine, path, sentAt }) => {
		return (
			fault.without.includes(machine) && path.startsWith('/limited/') && sentAt > knownSince && sentAt < knownUntil
		);
	}).length;
	const shownWaits = `${waits} of ${limitedCount} requests with a limit waited for Redis in vain`;
	if (!fault.isBrief) assert.ok(waits < limitedCount * MAX_WAITING_SHARE, shownWaits);

	for (const { machine, answer } of purges) checkPurge(fault, machine, answer, machines);
	checkLimits(fault, quiet, faulty, healed);
	for (const machine of [...machines, fleet.control]) assert.is(await machine.get('/plain'), 'second');
}

/** Checks the answer to a purge during the fault. */
function checkPurge(fault: Fault, machine: number, answer: PurgeAnswer, machines: readonly FleetMachine[]): void {
	const shown = `machine ${machine}: ${JSON.stringify(answer)}`;
	if (fault.isBrief) {
		assert.is(answer.status, 200, shown);
		return;
	}
	if (fault.without.includes(machine)) {
		assert.is(answer.status, 503, shown);
		assert.is(answer.error?.code, 'purge_not_shared', shown);
		return;
	}
	assert.is(answer.status, 200, shown);
	assert.equal(
		answer.machines?.unconfirmed,
		fault.without.map(index => machines[index]!.id),
		shown,
	);
}

/** Returns by how many requests the computed usage of a limit may be wrong, because the visitor learns of decisions late. */
function usageTolerance(samples: readonly Sample[]): number {
	return 1 + (LIMIT.perSecond * Math.max(...samples.map(({ elapsedMs }) => elapsedMs))) / 1000;
}

/** Checks what the limits admitted before, during and after the fault. */
function checkLimits(fault: Fault, quiet: Sample[], faulty: Sample[], healed: Sample[]): void {
	const { perSecond, burst, batch } = LIMIT;
	for (const policy of POLICIES) {
		for (const [phase, samples] of [
			['quiet', quiet],
			['healed', healed],
		] as const) {
			// If Redis was late because this computer was busy, the machines have decided alone, as `on_error` says.
			const isLate = statusesOf(limitedBy('deny', samples))[503] !== undefined;
			const usage = highestUsage(limitedBy(policy, samples), perSecond);
			const sharedBound = burst + ALL.length * batch + usageTolerance(limitedBy(policy, samples));
			assert.ok(isLate || usage <= sharedBound, `${phase}, ${policy}: a usage of ${usage}, at most ${sharedBound}`);
			const statuses = statusesOf(limitedBy(policy, samples));
			// On a busy computer, the reply of Redis may come too late for a few requests.
			assert.ok((statuses[503] ?? 0) <= samples.length / 100, `${phase}, ${policy}: ${JSON.stringify(statuses)}`);
			assert.ok(statuses[200]! > 0 && statuses[429]! > 0, `${phase}, ${policy}: ${JSON.stringify(statuses)}`);
		}
	}
	if (fault.isBrief) return;
	for (const index of fault.without) {
		const of = (policy: Policy) => limitedBy(policy, faulty).filter(({ machine }) => machine === index);
		const usage = highestUsage(of('local'), perSecond);
		const bound = burst + batch + usageTolerance(of('local'));
		assert.ok(usage <= bound, `machine ${index} admitted a usage of ${usage} alone, at most ${bound}`);
		const [local, allow, deny] = POLICIES.map(policy => statusesOf(of(policy))) as [...Record<string, number>[]] as [
			Record<string, number>,
			Record<string, number>,
			Record<string, number>,
		];
		const shown = JSON.stringify({ local, allow, deny });
		assert.ok(local[429]! > 0, shown);
		// Without Redis, hardly any request is refused by `allow`, and hardly any admitted by `deny`.
		assert.ok(allow[200]! > 2 * (allow[429] ?? 0), shown);
		assert.ok(deny[503]! > (deny[200] ?? 0), shown);
	}
}

if (isInNamespaces) {
	const test = suite('machines whose Redis fails');
	const isFailing = process.env[FAILING_VARIABLE] !== undefined;
	await makeNetworks();
	for (const fault of isFailing ? FAULTS.slice(0, 1) : FAULTS) {
		test(`Redis is ${fault.name}`, async () => {
			const fleet = await Fleet.start(fault.isRelayed === true);
			// This process is the first of its process namespace, so the kernel ends every process that it leaves behind.
			if (isFailing) assert.unreachable('this must fail');
			try {
				await prove(fault, fleet);
			} finally {
				await fleet.close();
			}
		});
	}
	test.run();
	// A fleet that could not be started or closed leaves child processes, which would keep this process alive. It therefore exits
	// once the test runner has set the exit code.
	const END_CHECK_MS = 100;
	setInterval(() => {
		if (process.exitCode !== undefined) process.exit();
	}, END_CHECK_MS);
} else if (canCreateNamespaces()) {
	const { remainingProcesses, status } = runInNamespaces(import.meta.filename, {}, true);
	const test = suite('the end of fault tests');
	test('they ran to the end, and have left no process', () => {
		assert.is(status, 0);
		assert.equal(remainingProcesses, []);
	});
	test('if one of them fails, no process and no file remains', () => {
		const failed = runInNamespaces(import.meta.filename, { [FAILING_VARIABLE]: '1' }, false);
		assert.match(failed.output, /this must fail/);
		assert.is.not(failed.status, 0);
		assert.equal(failed.remainingProcesses, []);
		assert.not.ok(existsSync(failed.folder));
	});
	test.run();
} else {
	const test = suite('fault tests');
	test('are left out, because the system allows no namespaces', () => {});
	test.run();
}
