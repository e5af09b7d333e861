/** The state of rollouts in a real redis-server: which reports and publications are deleted, and when. */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createRollout, type Rollout, type RolloutTerms } from '../../runtime/cluster/rollout-decision.ts';
import { NO_REVISION, type SentReport, SharedRollout } from '../../runtime/cluster/shared-rollout.ts';
import { RedisServer } from './redis-server.ts';

const states = suite('the state of rollouts in Redis');

const TERMS: RolloutTerms = { shares: [1], observationMs: 0, loadLimitMs: 60_000, maxErrorRateRise: 0.05 };

function reportOf(machine: string): SentReport {
	const traffic = { responses: 0, serverErrors: 0, errorRateBefore: 0 };
	return { machine, serves: 0, isReady: true, traffic, host: 'host', pid: 1, version: 'test' };
}

/** Runs a test with an empty Redis. */
async function withRollouts(test: (redis: RedisServer, open: () => SharedRollout) => Promise<void>): Promise<void> {
	const redis = await RedisServer.start();
	const cluster = redis.cluster({ keys: [randomBytes(32).toString('base64')] });
	try {
		await test(redis, () => new SharedRollout(cluster, cluster.sealedValues!));
	} finally {
		cluster.close();
		await redis.kill();
	}
}

states('machines that have not reported for ten minutes are forgotten, also while nothing is rolled out', async () => {
	await withRollouts(async (redis, open) => {
		const [seconds] = redis.cli('time').split('\n');
		const now = Number(seconds) * 1000;
		const written = { gone: now - 601_000, away: now - 500_000, future: now + 700_000 };
		for (const [machine, at] of Object.entries(written))
			redis.cli('hset', 'svc:rollout:reports', machine, `${at}:report`);
		const known = (): string[] => redis.cli('hkeys', 'svc:rollout:reports').trim().split('\n').sort();
		await open().report(reportOf('first'), NO_REVISION, false);
		assert.equal(known(), ['away', 'first']);
		// Another machine does not search for old reports again within the same minute.
		redis.cli('hset', 'svc:rollout:reports', 'gone', `${written.gone}:report`);
		await open().report(reportOf('second'), NO_REVISION, false);
		assert.equal(known(), ['away', 'first', 'gone', 'second']);
		redis.cli('del', 'svc:rollout:search');
		await open().report(reportOf('second'), NO_REVISION, true);
		assert.equal(known(), ['away', 'first', 'second']);
	});
});

states('a process learns that another one has reported with its machine ID, and where it runs', async () => {
	await withRollouts(async (_redis, open) => {
		const [first, second] = [open(), open()];
		const here = { ...reportOf('machine'), host: 'here', process: 'a' };
		const there = { ...reportOf('machine'), host: 'there', process: 'b' };
		const send = async (rollouts: SharedRollout, report: SentReport) =>
			(await rollouts.report(report, NO_REVISION, false)).otherProcess;
		assert.is(await send(first, here), undefined);
		assert.is(await send(first, here), undefined);
		// A process that has just started, perhaps by a handover, replaces the report of another process.
		assert.is(await send(second, there), undefined);
		assert.equal(await send(first, here), { host: 'there', pid: 1 });
		assert.equal(await send(second, there), { host: 'here', pid: 1 });
		assert.is(await send(second, there), undefined);
	});
});

states('old publications are deleted, those to return to as soon as they are no longer needed', async () => {
	await withRollouts(async (redis, open) => {
		const rollouts = open();
		let revision = NO_REVISION;
		let replaced: Rollout | undefined;
		const publish = async (number: number, previous: number): Promise<void> => {
			const next = createRollout(number, previous, TERMS, 0);
			revision = (await rollouts.publish(revision, next, Buffer.from('sealed'), replaced))!;
			replaced = next;
		};
		const has = (number: number): boolean => redis.cli('exists', `svc:publication:${number}`).trim() === '1';
		await publish(1, 0);
		// None of these publications is completed, so publication 1 remains the one to return to.
		for (let number = 2; number <= 25; number++) await publish(number, 1);
		assert.equal([1, 2, 5, 6, 25].map(has), [true, false, false, true, true]);
		await publish(26, 25);
		assert.equal([1, 6, 7, 25, 26].map(has), [false, false, true, true, true]);
	});
});

states.run();
