/** The scenarios of the full simulation, and the resulting figures that the documentation shows. */
import type { RolloutTerms } from '../../runtime/cluster/rollout-decision.ts';
import { type ClusterResult, type ClusterSettings, simulateCluster } from './cluster-simulation.ts';
import type { RedisCosts } from './redis-costs.ts';
import {
	type MachineFailureKind,
	type PublishedKind,
	type RolloutSettings,
	simulateRollout,
} from './rollout-simulation.ts';

/** Requests beyond a limit, if clients send as many requests as they can. */
export interface LimitFigures {
	readonly machines: number;
	readonly batch: number;
	/**
	 * Requests beyond the limit at the worst moment: the median of the clients, the highest of any client, and the documented bound.
	 */
	readonly median: number;
	readonly highest: number;
	readonly bound: number;
	/** All requests admitted, as a multiple of what the limit alone admits. */
	readonly admittedRatio: number;
}

/** Load on Redis caused by the limits of a million clients. */
export interface LoadFigures {
	readonly machines: number;
	readonly batch: number;
	readonly requestsPerSecond: number;
	readonly commandsPerSecond: number;
	readonly keysPerSecond: number;
	readonly receivedBytesPerSecond: number;
	readonly sentBytesPerSecond: number;
	/** Fraction of time during which Redis executes commands. */
	readonly busyShare: number;
	/** Milliseconds until Redis has counted usage: the median and the 99th percentile. */
	readonly medianDelayMs: number;
	readonly delayMs: number;
	/** The longest time that a request waited for Redis, in milliseconds. */
	readonly longestWaitMs: number;
}

/** How fast purges reach healthy machines, while 1 % of the machines are failing. */
export interface PurgeFigures {
	readonly machines: number;
	readonly purgesPerSecond: number;
	readonly medianMs: number;
	readonly percentile99Ms: number;
	readonly percentile999Ms: number;
	readonly busyShare: number;
	readonly commandsPerSecond: number;
	readonly purges: number;
	readonly lost: number;
}

/** Outcomes of rollouts of one configuration. */
export interface RolloutFigures {
	readonly machines: number;
	readonly published: string;
	readonly rollouts: number;
	readonly completed: number;
	/** Number of rollouts in which the publication reached more machines than the canary share. */
	readonly beyondCanary: number;
	/**
	 * The highest fraction of machines that served the publication in any rollout, and the median number of seconds until the end.
	 */
	readonly highestShare: number;
	readonly medianSeconds: number;
}

/** The figures of a whole run. */
export interface SimulationFigures {
	readonly date: string;
	readonly seed: number;
	readonly costs: RedisCosts;
	readonly limits: readonly LimitFigures[];
	readonly loads: readonly LoadFigures[];
	readonly purges: readonly PurgeFigures[];
	readonly rollouts: readonly RolloutFigures[];
}

const BASE: Omit<ClusterSettings, 'seed' | 'machines' | 'seconds'> = {
	clients: 1_000_000,
	requestRate: 0,
	excessiveClients: 0,
	excessiveRate: 0,
	limit: { perMinute: 600, burst: 100, batch: 10 },
	onError: 'deny',
	waitMs: 50,
	maxKeys: 4096,
	purgeRate: 0,
	failingShare: 0.01,
	failureSeconds: 10,
};
/** Requests per second, on each machine, that are subject to a limit. */
const REQUESTS_PER_MACHINE = 100;

/** Simulates clients that exceed their limit. */
export async function simulateLimits(
	machines: number,
	batch: number,
	seed: number,
	costs: RedisCosts,
): Promise<LimitFigures> {
	const limit = { ...BASE.limit, batch };
	const settings = {
		...BASE,
		seed,
		machines,
		seconds: 10,
		limit,
		clients: 1,
		excessiveClients: 10,
		excessiveRate: 500,
	};
	const result = await simulateCluster(settings, costs);
	return {
		machines,
		batch,
		median: rounded(result.overshoot.percentile(50)),
		highest: rounded(result.highestOvershoot),
		bound: result.overshootBound,
		admittedRatio: rounded(result.excessiveAdmitted / result.excessiveAllowed, 2),
	};
}

/** Simulates a million clients, most of whom stay below their limit. */
export async function simulateLoad(
	machines: number,
	batch: number,
	seed: number,
	costs: RedisCosts,
): Promise<LoadFigures> {
	const seconds = 4;
	const requestRate = machines * REQUESTS_PER_MACHINE;
	const settings = { ...BASE, seed, machines, seconds, limit: { ...BASE.limit, batch }, requestRate };
	const { load, requests, reportDelays, waits } = await simulateCluster(settings, costs);
	return {
		machines,
		batch,
		requestsPerSecond: Math.round(requests / seconds),
		commandsPerSecond: Math.round(commandsOf(load.commands) / seconds),
		keysPerSecond: Math.round(load.keys / seconds),
		receivedBytesPerSecond: Math.round(load.receivedBytes / seconds),
		sentBytesPerSecond: Math.round(load.sentBytes / seconds),
		busyShare: rounded(load.busyMs / seconds / 1000, 3),
		medianDelayMs: rounded(reportDelays.percentile(50)),
		delayMs: rounded(reportDelays.percentile(99)),
		longestWaitMs: rounded(waits.highest),
	};
}

/** Simulates purges, each of which begins on a random machine. */
export async function simulatePurges(
	machines: number,
	purgesPerSecond: number,
	seed: number,
	costs: RedisCosts,
): Promise<PurgeFigures> {
	const seconds = 10;
	const result = await simulateCluster(
		{ ...BASE, seed, machines, seconds, clients: 1, maxKeys: 8, purgeRate: purgesPerSecond },
		costs,
	);
	const { propagation, load, purges, lostPurges } = result;
	return {
		machines,
		purgesPerSecond,
		medianMs: rounded(propagation.percentile(50)),
		percentile99Ms: rounded(propagation.percentile(99)),
		percentile999Ms: rounded(propagation.percentile(99.9)),
		busyShare: rounded(load.busyMs / seconds / 1000, 3),
		commandsPerSecond: Math.round(commandsOf(load.commands) / seconds),
		purges,
		lost: lostPurges,
	};
}

/** The terms of `svc publish --canary 10%`. */
const TERMS: RolloutTerms = { shares: [0.1, 1], observationMs: 30_000, loadLimitMs: 180_000, maxErrorRateRise: 0.05 };
const FAILURE_KINDS: readonly MachineFailureKind[] = ['crashed', 'cut off', 'unready', 'failing requests'];

/** The configurations that are published, and what the documentation calls them. */
const PUBLISHED: readonly (readonly [name: string, published: PublishedKind])[] = [
	['good', { kind: 'good' }],
	['refused by the machines', { kind: 'refused' }],
	['half of the requests fail at once', { kind: 'errors', rate: 0.5, afterSeconds: 0 }],
	['a tenth fails at once', { kind: 'errors', rate: 0.1, afterSeconds: 0 }],
	['half fail after 20 s', { kind: 'errors', rate: 0.5, afterSeconds: 20 }],
	['half fail after 45 s', { kind: 'errors', rate: 0.5, afterSeconds: 45 }],
];

/** Simulates rollouts of every kind of configuration. */
export function simulateRollouts(machines: number, rollouts: number, seed: number): RolloutFigures[] {
	return PUBLISHED.map(([name, published]) => {
		const settings: Omit<RolloutSettings, 'seed'> = {
			machines,
			terms: TERMS,
			published,
			requestRate: 5,
			errorRate: 0.01,
			failingShare: 0.01,
			failureSeconds: 60,
			failureKinds: FAILURE_KINDS,
		};
		const results = Array.from({ length: rollouts }, (_, index) =>
			simulateRollout({ ...settings, seed: seed + index }),
		);
		const seconds = results.map(result => result.seconds).sort((a, b) => a - b);
		return {
			machines,
			published: name,
			rollouts,
			completed: results.filter(({ phase }) => phase === 'completed').length,
			beyondCanary: results.filter(({ reachedShare }) => reachedShare > TERMS.shares[0]! + 1e-9).length,
			highestShare: rounded(Math.max(...results.map(({ reachedShare }) => reachedShare)), 3),
			medianSeconds: Math.round(seconds[rollouts >> 1]!),
		};
	});
}

/** Runs all scenarios. `onProgress` gets a line about each. */
export async function simulateAll(
	date: string,
	seed: number,
	costs: RedisCosts,
	onProgress: (line: string) => void,
): Promise<SimulationFigures> {
	const limits: LimitFigures[] = [];
	const loads: LoadFigures[] = [];
	const purges: PurgeFigures[] = [];
	const show = <T>(figures: T): T => {
		onProgress(JSON.stringify(figures));
		return figures;
	};
	for (const machines of [10, 100, 1000])
		for (const batch of [1, 10]) limits.push(show(await simulateLimits(machines, batch, seed, costs)));
	for (const [machines, batch] of [
		[100, 1],
		[100, 10],
		[1000, 1],
		[1000, 10],
	] as const)
		loads.push(show(await simulateLoad(machines, batch, seed, costs)));
	for (const [machines, rate] of [
		[100, 10],
		[1000, 1],
		[1000, 5],
		[1000, 10],
		[1000, 20],
	] as const)
		purges.push(show(await simulatePurges(machines, rate, seed, costs)));
	const rollouts = [...simulateRollouts(100, 50, seed), ...simulateRollouts(1000, 5, seed)].map(show);
	return { date, seed, costs, limits, loads, purges, rollouts };
}

function commandsOf(commands: ClusterResult['load']['commands']): number {
	const { wake: _, ...sent } = commands;
	return Object.values(sent).reduce((sum, count) => sum + count, 0);
}

function rounded(value: number, digits: number = 1): number {
	return Number(value.toFixed(digits));
}
