/** What a process reports to a real redis-server about shared rate limits: bounded memory, and each usage counted once. */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Rate, UNDECIDED } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { monotonicNowMs } from '../../runtime/clock/clock.ts';
import type { Cluster } from '../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import type { SharedLimits } from '../../runtime/cluster/shared-limits.ts';
import { LimitTable, limitTableWords } from '../../runtime/rate-limits/limit-table.ts';
import { LimitTables } from '../../runtime/rate-limits/limit-tables.ts';
import { RedisServer } from './redis-server.ts';

const test = suite('reports of shared rate limits');
const KEY = randomBytes(32).toString('base64');
const MAX_KEYS = 1024;
const SETTINGS = { zone: 'all', maxKeys: MAX_KEYS, isShared: true } as const;
/** Five requests an hour, each of which is reported at once. */
const RATE: Rate = {
	intervalMs: 720_000,
	capacityMs: 3_600_000,
	maxDelayMs: 0,
	shared: { batchMs: 720_000, waitMs: 50, onError: 'local' },
};

/** Opens the limit table of a machine. */
function open(cluster: Cluster): { readonly table: LimitTable; readonly shared: SharedLimits } {
	const shared = cluster.limits!;
	const buffer = new SharedArrayBuffer(4 * limitTableWords(MAX_KEYS, true));
	new LimitTables(undefined, () => shared).onLimitsOpened('table', SETTINGS, buffer);
	return { table: new LimitTable(buffer, MAX_KEYS, true), shared };
}

/** Counts a request, reports the usage to Redis, and returns whether the request was admitted. */
async function request({ table, shared }: ReturnType<typeof open>, key: string): Promise<boolean> {
	let excessMs = table.take(key, monotonicNowMs(), RATE, 1);
	while (excessMs === UNDECIDED) {
		await shared.reportUsage('table', table.placeOf(key));
		excessMs = table.take(key, monotonicNowMs(), RATE, 1);
	}
	await shared.reportUsage('table', table.placeOf(key));
	return excessMs <= 0;
}

test('an attacker with 30,000 keys fills neither the table nor Redis, and does not free a limited client', async () => {
	const redis = await RedisServer.start();
	const clusters = [redis.cluster({ keys: [KEY] }), redis.cluster({ keys: [KEY] })] as const;
	const [one, other] = [open(clusters[0]), open(clusters[1])];
	try {
		await clusters[0].sendCommand(['PING'], 30_000);
		await clusters[1].sendCommand(['PING'], 30_000);
		for (let index = 0; index < 5; index++) assert.ok(await request(one, 'victim'));
		assert.not.ok(await request(one, 'victim'));
		for (let batch = 0; batch < 100; batch++) {
			await Promise.all(Array.from({ length: 300 }, (_, index) => request(one, `attacker ${batch} ${index}`)));
		}
		assert.ok(one.shared.counts.keys > 10_000, `${one.shared.counts.keys} keys were reported`);
		assert.is(Number(redis.cli('zcard', 'svc:limits:all')), MAX_KEYS);
		assert.ok(Number(redis.cli('memory', 'usage', 'svc:limits:all')) < MAX_KEYS * 200);
		// Another machine admits one request before it learns from Redis that the client has used up its limit.
		assert.ok(await request(other, 'victim'));
		assert.not.ok(await request(other, 'victim'));
		const expiry = Number(redis.cli('pttl', 'svc:limits:all'));
		assert.ok(expiry > 0 && expiry <= RATE.capacityMs + RATE.intervalMs, `${expiry} ms`);
	} finally {
		for (const cluster of clusters) cluster.close();
		await redis.kill();
	}
});

test('keys are forgotten once their burst is available again', async () => {
	const redis = await RedisServer.start();
	const cluster = redis.cluster({ keys: [KEY] });
	const machine = open(cluster);
	const shared = { batchMs: 20, waitMs: 50, onError: 'local' } as const;
	const brief: Rate = { intervalMs: 20, capacityMs: 200, maxDelayMs: 0, shared };
	try {
		await cluster.sendCommand(['PING'], 30_000);
		machine.table.take('a', monotonicNowMs(), brief, 1);
		await machine.shared.reportUsage('table', machine.table.placeOf('a'));
		assert.is(machine.shared.counts.keys, 1);
		while (redis.cli('exists', 'svc:limits:all').trim() !== '0') await new Promise(resolve => setTimeout(resolve, 10));
	} finally {
		cluster.close();
		await redis.kill();
	}
});

test('a report whose reply is lost is counted once', async () => {
	const redis = await RedisServer.start();
	const cluster = redis.cluster({ keys: [KEY] });
	const machine = open(cluster);
	const { sendCommand: command } = cluster;
	let lostCount = 0;
	cluster.sendCommand = async (args, limitMs) => {
		const reply = await command.call(cluster, args, limitMs);
		if (!String(args[0]).startsWith('EVAL') || lostCount++ > 0) return reply;
		throw new ClusterError('cluster/unavailable', 'no answer');
	};
	try {
		await cluster.sendCommand(['PING'], 30_000);
		assert.ok(machine.table.take('a', monotonicNowMs(), RATE, 1) <= 0);
		await machine.shared.reportUsage('table', machine.table.placeOf('a'));
		assert.is(machine.shared.counts.failures, 1);
		while (machine.shared.counts.reports === 0) await new Promise(resolve => setTimeout(resolve, 10));
		// One of the five requests that the limit allows has been used before, so four remain.
		const used = [true, true, true, true, false];
		for (const expected of used) assert.is(await request(machine, 'a'), expected);
	} finally {
		cluster.close();
		await redis.kill();
	}
});

test('what a process has not reported is reported when it ends', async () => {
	const redis = await RedisServer.start();
	const clusters = [redis.cluster({ keys: [KEY] }), redis.cluster({ keys: [KEY] })] as const;
	const [one, other] = [open(clusters[0]), open(clusters[1])];
	const shared = { ...RATE.shared!, batchMs: 4 * RATE.intervalMs };
	try {
		for (const cluster of clusters) await cluster.sendCommand(['PING'], 30_000);
		// One request is less than the batch of four, so it is not reported yet.
		one.table.take('a', monotonicNowMs(), { ...RATE, shared }, 1);
		await one.shared.close();
		const used = [true, true, true, true, false];
		for (const expected of used) assert.is(await request(other, 'a'), expected);
	} finally {
		for (const cluster of clusters) cluster.close();
		await redis.kill();
	}
});

test.run();
