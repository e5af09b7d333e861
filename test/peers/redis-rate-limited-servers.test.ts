/** Servers that share rate limits through a real redis-server that is killed, suspended or slow. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../compiler/document/document.ts';
import type { ZoneSharing } from '../../compiler/modules/directives/rate-limit/rate-limit-handler.ts';
import { until } from '../harness.ts';
import { jsonInput, respondingSite, type TestServer, withServer } from '../runtime/running-server.ts';
import { RedisServer } from './redis-server.ts';

const test = suite('servers that share rate limits');
const KEY = randomBytes(32).toString('base64');
/** A window in milliseconds, so long that no used-up request becomes available again while a test runs. */
const DAY = 86_400_000;
const WAIT_MS = 100;
const LIMIT = 20;
const BATCH = 2;

/** Returns a server's configuration: one zone for each policy, at the path `/POLICY`. */
function limited({ address }: { readonly address: string }, body = 'ok', sharing: ZoneSharing = {}): Document {
	const steps = (['local', 'allow', 'deny'] as const).map(policy => ({
		handler: 'rate_limit',
		when: { type: 'path', patterns: [`/${policy}`] },
		zones: [
			{
				name: policy,
				requests: LIMIT,
				window: DAY,
				key: '{http.request.uri.query}',
				shared: { batch: BATCH, wait: WAIT_MS, on_error: policy, ...sharing },
			},
		],
	}));
	return {
		settings: { metrics: {}, cluster: { address, keys: [KEY] } },
		sites: [respondingSite(body, { steps })],
	};
}

/** Starts Redis and two servers, and runs a test when both servers are connected to Redis. */
async function withMachines(
	run: (redis: RedisServer, machines: readonly [TestServer, TestServer]) => Promise<void>,
	sharing?: ZoneSharing,
): Promise<void> {
	const redis = await RedisServer.start();
	const document = limited(redis, 'ok', sharing);
	try {
		await withServer(document, {}, one =>
			withServer(document, {}, async other => {
				const members = async () => (await one.runtime.metrics()).includes('svc_cluster_members 2');
				await until('both are members', async () => {
					await one.runtime.cluster!.listMembers().catch(() => {});
					return members();
				});
				await other.runtime.cluster!.listMembers();
				await run(redis, [one, other]);
			}),
		);
	} finally {
		redis.signal('SIGCONT');
		await redis.kill();
	}
}

/** Sends requests one after the other, to the machines in turn. Returns the number of responses by status. */
async function send(
	machines: readonly TestServer[],
	path: string,
	count: number,
): Promise<{ [status: number]: number }> {
	const found: { [status: number]: number } = {};
	for (let index = 0; index < count; index++) {
		const { status } = await machines[index % machines.length]!.get(path);
		found[status] = (found[status] ?? 0) + 1;
	}
	return found;
}

async function metric(machines: readonly TestServer[], name: string): Promise<number> {
	let sum = 0;
	for (const { runtime } of machines) {
		const text = await runtime.metrics();
		for (const line of text.split('\n')) if (line.startsWith(name)) sum += Number(line.split(' ').at(-1));
	}
	return sum;
}

test('two servers admit one limit, which a reload does not renew, and Redis never sees a key', async () => {
	await withMachines(async (redis, machines) => {
		const before = await send(machines, '/local?canary-198.51.100.7', 50);
		assert.ok(before[200]! >= LIMIT && before[200]! <= LIMIT + 2 * BATCH, JSON.stringify(before));
		assert.is(before[200]! + before[429]!, 50);
		for (const { runtime } of machines) {
			const { result } = await runtime.load(jsonInput(limited(redis, 'changed')));
			assert.is(result, 'applied');
		}
		assert.is((await machines[0].get('/')).body, 'changed');
		assert.equal(await send(machines, '/local?canary-198.51.100.7', 6), { 429: 6 });
		assert.is(await metric(machines, 'svc_rate_limit_fallbacks_total'), 0);
		assert.ok((await metric(machines, 'svc_cluster_limit_reports_total{result="counted"}')) > 0);
		const dump = readFileSync(redis.dump(), 'latin1');
		assert.match(dump, /svc:limits:local/);
		assert.not.match(dump, /canary|198\.51|http/);
	});
});

/** Sends requests one after the other. Returns the milliseconds until each response, in ascending order. */
async function responseTimes(machine: TestServer, path: string, count: number): Promise<number[]> {
	const times: number[] = [];
	for (let index = 0; index < count; index++) {
		const start = performance.now();
		await machine.get(path);
		times.push(performance.now() - start);
	}
	return times.sort((a, b) => a - b);
}

for (const fault of ['killed', 'frozen'] as const) {
	test(`while Redis is ${fault}, each zone does what it says, and requests wait within the bound`, async () => {
		await withMachines(async (redis, machines) => {
			for (const policy of ['local', 'allow', 'deny']) {
				assert.equal(await send(machines, `/${policy}?early`, 10), { 200: 10 }, policy);
			}
			if (fault === 'killed') await redis.kill();
			else redis.signal('SIGSTOP');
			// A request beyond the batch makes each machine find out that Redis is unavailable. Later requests do not wait.
			for (const machine of machines) await send([machine], '/local?first', BATCH + 1);

			const [one] = machines;
			assert.equal(await send([one], '/local?a', 30), { 200: LIMIT, 429: 10 });
			assert.equal(await send([one], '/allow?a', 60), { 200: 60 });
			assert.equal(await send([one], '/deny?a', 10), { 200: BATCH, 503: 8 });
			const denied = await one.get('/deny?a');
			assert.is(denied.headers.get('retry-after'), '1');
			assert.ok((await metric(machines, 'svc_rate_limit_fallbacks_total{zone="deny",policy="deny"}')) >= 9);
			// With a frozen server, a report fails only after some seconds.
			if (fault === 'killed')
				assert.ok((await metric(machines, 'svc_cluster_limit_reports_total{result="failed"}')) > 0);

			// Requests without a limit are not slowed down. Of the requests with a limit, one waits, at most as long as the zone
			// permits.
			const quiet = await responseTimes(one, '/', 100);
			const limits = await responseTimes(one, '/local?b', 100);
			const slowest = limits.at(-1)!;
			assert.ok(slowest < WAIT_MS + 5 * quiet.at(-1)! + 100, `${slowest} ms, quiet ${quiet.at(-1)} ms`);
			assert.ok(limits[98]! < 5 * quiet[98]! + 50, `${limits[98]} ms, quiet ${quiet[98]} ms`);

			const counted = (machine: TestServer) => metric([machine], 'svc_cluster_limit_reports_total{result="counted"}');
			const before = await Promise.all(machines.map(counted));
			if (fault === 'killed') await redis.start();
			else redis.signal('SIGCONT');
			for (const [index, machine] of machines.entries()) {
				await until('reports are counted again', async () => (await counted(machine)) > before[index]!);
			}
			// Requests that were admitted without Redis are counted by Redis now.
			await until('the other machine knows', async () => (await machines[1].get('/local?a')).status === 429);
			const after = await send(machines, '/deny?later', 50);
			assert.ok(after[200]! >= LIMIT && after[200]! <= LIMIT + 2 * BATCH, JSON.stringify(after));
			assert.is(after[503], undefined);
		});
	});
}

test('a zone returns nothing for requests that it has admitted without counting them, because Redis was away', async () => {
	const redis = await RedisServer.start();
	const zone = { requests: LIMIT, window: DAY, key: '{http.request.uri.query}' };
	const shared = { ...zone, name: 'shared', shared: { batch: BATCH, wait: 1000, on_error: 'allow' } };
	const site = respondingSite('ok', {
		steps: [
			{ handler: 'rate_limit', zones: [shared, { ...zone, name: 'own', when: { type: 'path', patterns: ['/both'] } }] },
		],
	});
	const document: Document = {
		settings: { metrics: {}, cluster: { address: redis.address, keys: [KEY] } },
		sites: [site],
	};
	try {
		await withServer(document, {}, async machine => {
			const counted = () => metric([machine], 'svc_cluster_limit_reports_total{result="counted"}');
			await until('Redis is connected', () => machine.runtime.cluster!.isConnected);
			assert.equal(await send([machine], '/?used', LIMIT + 1), { 200: LIMIT, 429: 1 });
			redis.signal('SIGSTOP');
			await send([machine], '/?other', BATCH + 1);
			await until('Redis is away', async () => (await machine.get('/?used')).status === 200);
			const before = await counted();
			// The zone `shared` admits all of them uncounted. The zone `own` refuses half of them.
			assert.equal(await send([machine], '/both?used', 2 * LIMIT), { 200: LIMIT, 429: LIMIT });
			redis.signal('SIGCONT');
			await until('reports are counted again', async () => (await counted()) > before);
			assert.equal(await send([machine], '/?used', LIMIT), { 429: LIMIT });
		});
	} finally {
		redis.signal('SIGCONT');
		await redis.kill();
	}
});

/** Starts a proxy to Redis that delays the replies. */
async function slowProxy(redis: RedisServer, delayMs: number): Promise<{ readonly address: string; close(): void }> {
	const sockets = new Set<Socket>();
	const server = createServer(client => {
		const upstream = connect(redis.port, '127.0.0.1');
		for (const socket of [client, upstream]) {
			sockets.add(socket);
			socket.on('error', () => {});
		}
		client.on('data', data => upstream.write(data));
		upstream.on('data', data => setTimeout(() => client.write(data), delayMs));
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
		close: () => {
			server.close();
			for (const socket of sockets) socket.destroy();
		},
	};
}

test('while every reply of Redis takes a second, requests wait within the bound, and are counted nevertheless', async () => {
	const redis = await RedisServer.start();
	const proxy = await slowProxy(redis, 1000);
	try {
		await withServer(limited(proxy), {}, async machine => {
			await until('Redis is connected', () => machine.runtime.cluster!.isConnected);
			const quiet = await responseTimes(machine, '/', 60);
			const times = await responseTimes(machine, '/local?a', 60);
			// Only a few requests beyond the first batch wait. Later requests do not, because the machine already knows that a reply is
			// late.
			assert.ok(times[56]! < 5 * quiet[56]! + 50, `${times[56]} ms, quiet ${quiet[56]} ms`);
			assert.ok(times.at(-1)! < WAIT_MS + 5 * quiet.at(-1)! + 100, `${times.at(-1)} ms, quiet ${quiet.at(-1)} ms`);
			assert.is((await machine.get('/local?a')).status, 429);
			assert.is(await metric([machine], 'svc_rate_limit_requests_total{zone="local",outcome="admitted"}'), LIMIT);
			const counted = () => metric([machine], 'svc_cluster_limit_reports_total{result="counted"}');
			await until('reports are counted', async () => (await counted()) > 0);
			assert.is(redis.cli('exists', 'svc:limits:local').trim(), '1');
		});
	} finally {
		proxy.close();
		await redis.kill();
	}
});

test('Redis that is full, or loses its data, fails no request of a zone that is local', async () => {
	await withMachines(async (redis, machines) => {
		redis.cli('config', 'set', 'maxmemory', '1');
		assert.equal(await send([machines[0]], '/local?a', 30), { 200: LIMIT, 429: 10 });
		redis.cli('config', 'set', 'maxmemory', '0');
		await until('reports are counted', async () => redis.cli('exists', 'svc:limits:local').trim() === '1');
		redis.cli('flushall');
		const begun = await send(machines, '/local?b', 60);
		assert.ok(begun[200]! >= LIMIT && begun[200]! <= LIMIT + 2 * BATCH, JSON.stringify(begun));
	});
});

test('a client that sends a batch at once waits for Redis, and none of its requests is refused early', async () => {
	await withMachines(
		async (_, machines) => {
			const answers = await Promise.all(Array.from({ length: LIMIT }, () => machines[0].get('/deny?burst')));
			assert.equal(new Set(answers.map(({ status }) => status)), new Set([200]));
			assert.ok((await metric(machines, 'svc_rate_limit_waits_total')) > 0);
			assert.is((await machines[0].get('/deny?burst')).status, 429);
		},
		{ wait: 10_000 },
	);
});

test.run();
