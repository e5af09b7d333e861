/** Small simulations with fixed seeds: what the documentation promises about limits and purges holds while machines fail. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT } from '../harness.ts';
import { type ClusterResult, type ClusterSettings, simulateCluster } from './cluster-simulation.ts';
import { readRedisCosts } from './redis-costs.ts';
import { describeOrigin, renderBlocks, replaceBlocks } from './report.ts';
import { type RolloutSettings, simulateRollout } from './rollout-simulation.ts';
import type { SimulationFigures } from './scenarios.ts';

const test = suite('simulations of a cluster');

const SETTINGS: ClusterSettings = {
	seed: 1,
	machines: 40,
	seconds: 12,
	clients: 10_000,
	requestRate: 2000,
	excessiveClients: 5,
	excessiveRate: 3000,
	limit: { perMinute: 600, burst: 100, batch: 6 },
	onError: 'deny',
	waitMs: 50,
	maxKeys: 1024,
	purgeRate: 4,
	failingShare: 0.3,
	failureSeconds: 2,
};

/** Returns the parts of a result that can be compared with those of another run, as text. */
function comparable({ overshoot, reportDelays, waits, propagation, ...rest }: ClusterResult): string {
	const percentiles = [overshoot, reportDelays, waits, propagation].map(samples => [
		samples.count,
		samples.percentile(50),
		samples.highest,
	]);
	return JSON.stringify({ ...rest, purgeAnswers: undefined, unconfirmed: undefined, percentiles });
}

test('a limit is never exceeded by more than a batch for each process, although machines crash and are cut off', async () => {
	const result = await simulateCluster(SETTINGS, readRedisCosts());
	assert.ok(Math.min(...Object.values(result.failures)) > 0, JSON.stringify(result.failures));
	assert.ok(result.processes > SETTINGS.machines);
	assert.ok(result.highestOvershoot <= result.overshootBound, `${result.highestOvershoot} requests`);
	// Without shared limits, each machine would admit the whole burst.
	assert.ok(result.highestOvershoot > 40, `${result.highestOvershoot} requests`);
	assert.ok(
		result.waits.count > 0 && result.waits.highest < 51,
		`${result.waits.count} waits, ${result.waits.highest} ms`,
	);
	assert.ok(result.reportDelays.percentile(50) > 5 && result.reportDelays.percentile(99) < 50);
});

test('no purge is lost, and healthy machines apply it within 100 ms', async () => {
	const result = await simulateCluster({ ...SETTINGS, seed: 2, requestRate: 0, excessiveClients: 0 }, readRedisCosts());
	assert.ok(result.purges > 30 && result.purgesNotShared > 0, `${result.purges}, ${result.purgesNotShared}`);
	assert.is(result.lostPurges, 0);
	assert.ok(result.propagation.count > 300, `${result.propagation.count} purges of healthy machines`);
	assert.ok(result.propagation.percentile(99) < 100, `${result.propagation.percentile(99)} ms`);
});

test('the same seed has the same result, and another one has another', async () => {
	const costs = readRedisCosts();
	const settings = { ...SETTINGS, seconds: 3 };
	const first = comparable(await simulateCluster(settings, costs));
	assert.is(comparable(await simulateCluster(settings, costs)), first);
	assert.is.not(
		comparable(await simulateCluster({ ...settings, seed: 2 }, costs)),
		first.replace('"seed":1', '"seed":2'),
	);
});

const ROLLOUT: Omit<RolloutSettings, 'published'> = {
	seed: 1,
	machines: 60,
	terms: { shares: [0.1, 1], observationMs: 10_000, loadLimitMs: 60_000, maxErrorRateRise: 0.05 },
	requestRate: 10,
	errorRate: 0.02,
	failingShare: 0,
	failureSeconds: 20,
	failureKinds: ['crashed', 'cut off', 'unready', 'failing requests'],
};

test('a bad configuration stops within its first wave, and a good one reaches all machines', () => {
	for (const published of [
		{ kind: 'refused' },
		{ kind: 'errors', rate: 0.5, afterSeconds: 0 },
		{ kind: 'errors', rate: 0.3, afterSeconds: 5 },
	] as const) {
		const { phase, reachedShare } = simulateRollout({ ...ROLLOUT, published });
		assert.is(phase, 'stopped', JSON.stringify(published));
		assert.ok(reachedShare <= 0.1, `${reachedShare}`);
	}
	const good = simulateRollout({ ...ROLLOUT, published: { kind: 'good' } });
	assert.equal([good.phase, good.reachedShare, good.badResponses], ['completed', 1, 0]);
});

test('a good configuration is not stopped in a large wave by machines that fail for reasons of their own', () => {
	const terms = { ...ROLLOUT.terms, shares: [0.5, 1] };
	for (const seed of [1, 2, 3]) {
		const settings = {
			...ROLLOUT,
			seed,
			machines: 80,
			terms,
			failingShare: 0.01,
			published: { kind: 'good' },
		} as const;
		assert.is(simulateRollout(settings).phase, 'completed', `seed ${seed}`);
	}
});

test('the guide shows the figures of the latest simulation', () => {
	const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
	const figures = JSON.parse(read('test/simulation/latest.json')) as SimulationFigures;
	assert.equal(figures.costs, readRedisCosts());
	const guide = read('cli/manual/cluster-size.md');
	assert.is(replaceBlocks(guide, renderBlocks(figures)), guide);
	assert.ok(guide.includes(describeOrigin(figures)));
	assert.ok(figures.limits.every(({ highest, bound }) => highest <= bound));
	assert.ok(figures.purges.every(({ lost }) => lost === 0));
});

test.run();
