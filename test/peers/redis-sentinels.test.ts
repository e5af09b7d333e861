/**
 * A master with a replica and three Sentinels: servers continue after a failover, and purges that the replica lacked are not lost.
 */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { openRedisStore } from '../../runtime/storage/redis-store.ts';
import { freePorts, until } from '../harness.ts';
import { respondingSite, withServer } from '../runtime/running-server.ts';
import { assertRefuses } from '../runtime/storage/store-contract.ts';
import { joinWithFakeCaches } from './fake-caches.ts';
import { SENTINEL_PASSWORD, SENTINEL_USER, SentinelGroup } from './redis-sentinel-group.ts';

const test = suite('Redis with Sentinels');
const COMMON_SETTINGS = { keys: [randomBytes(32).toString('base64')], timeout: 2000 };

/** Runs a test with Redis. Clusters that the test opens with `open` are closed afterwards. */
async function withRedis(
	run: (group: SentinelGroup, open: (settings?: Partial<ClusterSettings>) => Cluster) => Promise<void>,
): Promise<void> {
	const group = await SentinelGroup.start();
	const clusters: Cluster[] = [];
	try {
		await run(group, (settings = {}) => {
			const cluster = new Cluster({ ...group.settings, ...COMMON_SETTINGS, ...settings }, { log: () => {} });
			clusters.push(cluster);
			return cluster;
		});
	} finally {
		for (const cluster of clusters) cluster.close();
		await group.close();
	}
}

async function untilMembers(cluster: Cluster): Promise<void> {
	await until('both members', async () => (await cluster.listMembers().catch(() => [])).length === 2);
}

const has = (applied: readonly PurgeSelection[], tag: string): boolean =>
	applied.some(selection => 'tag' in selection && selection.tag === tag);
const hasEverything = (applied: readonly PurgeSelection[]): boolean =>
	applied.some(selection => 'prefix' in selection && selection.prefix === '/' && selection.host === undefined);

test('requests, limits, values and purges go on after the master was killed', async () => {
	await withRedis(async (redis, open) => {
		const [one, other] = [open(), open()];
		const applied = await joinWithFakeCaches(other);
		await joinWithFakeCaches(one);
		await untilMembers(one);
		const store = openRedisStore(one);
		await store.write('certificates/a', 'value');
		const zone = {
			name: 'all',
			// The limit is higher than the number of requests that can be sent during a failover.
			requests: 10_000_000,
			window: 86_400_000,
			key: 'everyone',
			shared: { batch: 5, wait: 100, on_error: 'allow' as const },
		};
		const document = {
			settings: { cluster: { ...redis.settings, ...COMMON_SETTINGS } },
			sites: [respondingSite('ok', { steps: [{ handler: 'rate_limit', zones: [zone] }] })],
		};
		await withServer(document, {}, async server => {
			await until('a connection', async () => {
				await server.get('/');
				return server.runtime.cluster!.isConnected;
			});
			let isFailingOver = true;
			const statuses = new Set<number>();
			const load = (async () => {
				while (isFailingOver) statuses.add((await server.get('/')).status);
			})();
			try {
				await redis.failover();
				await until('a purge on all machines', async () => {
					await (await one.purges)!.purge({ tag: 'after' }).catch(() => {});
					return has(applied, 'after');
				});
				assert.is(String(await store.read('certificates/a')), 'value');
				await store.write('certificates/b', 'value');
				const reports = server.runtime.cluster!.report().limits.reports;
				await until('reports of limits', () => server.runtime.cluster!.report().limits.reports > reports);
			} finally {
				isFailingOver = false;
				await load;
			}
			assert.equal([...statuses], [200]);
		});
	});
});

test('a purge that the new master lacks reaches a machine that had not read it, and lost locks are fenced', async () => {
	await withRedis(async (redis, open) => {
		const [master, replica] = redis.servers;
		for (const server of redis.servers) server.cli('acl', 'setuser', 'away', 'on', '>away', '~*', '&*', '+@all');
		const one = open();
		const away = open({ user: 'away', password: 'away' });
		const [ownApplied, applied] = [await joinWithFakeCaches(one), await joinWithFakeCaches(away)];
		await untilMembers(one);
		// A machine reads only purges that are made after it has joined. So purges are repeated until both machines read them.
		await until('both to read purges', async () => {
			await (await one.purges)!.purge({ tag: 'before' });
			return has(applied, 'before');
		});
		await until(
			'the replica to have the purge',
			() => replica.cli('xlen', 'svc:purges') === master.cli('xlen', 'svc:purges'),
		);
		// The replica no longer receives anything: it does not run, and the master has closed the connection to it.
		replica.signal('SIGSTOP');
		master.cli('client', 'kill', 'type', 'replica');
		// The other machine can no longer reach this master.
		master.cli('acl', 'setuser', 'away', 'off');
		master.cli('client', 'kill', 'user', 'away');
		const { unconfirmed } = await (await one.purges)!.purge({ tag: 'lost' });
		assert.equal(unconfirmed, [away.ownId]);
		const store = openRedisStore(one);
		const lock = await store.lock('order');
		await store.fenced(lock).write('certificates/c', 'lost');
		await master.kill();
		replica.signal('SIGCONT');
		await redis.untilReplaced();
		await until('the purge to be added again', () => has(applied, 'lost'));
		assert.not(hasEverything(applied), 'the other machine has missed nothing else');
		await until('everything to be purged where the lost purge was read', () => hasEverything(ownApplied));
		assert.is(await store.read('certificates/c'), undefined);
		// Another process takes the lock, which the new master did not know until its holder renewed it.
		const otherStore = openRedisStore(away);
		await until('the other machine to be connected', () =>
			otherStore.read('a').then(
				() => true,
				() => false,
			),
		);
		replica.cli('del', 'svc:lock:order', 'svc:lock_token:order');
		const otherLock = await otherStore.lock('order');
		await otherStore.fenced(otherLock).write('certificates/c', 'new');
		await assertRefuses('store/lock-lost', store.fenced(lock).write('certificates/c', 'old'));
		assert.is(String(await store.read('certificates/c')), 'new');
		await Promise.all([lock.release(), otherLock.release()]);
	});
});

test('a frozen master is left as soon as another one was chosen, and not used again as a replica', async () => {
	await withRedis(async (redis, open) => {
		const cluster = open();
		await cluster.sendCommand(['SET', cluster.redisKey('value'), 'old']);
		await until('replication', () => redis.servers[1].cli('get', 'svc:value').includes('old'));
		redis.servers[0].signal('SIGSTOP');
		await redis.untilReplaced();
		await until('the new master to answer', () =>
			cluster.sendCommand(['SET', cluster.redisKey('value'), 'new']).then(
				() => true,
				() => false,
			),
		);
		redis.servers[0].signal('SIGCONT');
		await redis.servers[0].untilAnswer('role:slave', 'info', 'replication');
		assert.is(String(await cluster.sendCommand(['GET', cluster.redisKey('value')])), 'new');
		await redis.servers[0].untilAnswer('new', 'get', 'svc:value');
		await cluster.sendCommand(['SET', cluster.redisKey('value'), 'newer']);
		assert.ok(redis.servers[1].cli('get', 'svc:value').includes('newer'));
	});
});

test('Sentinels that do not know the master, refuse the password or do not run are named as the cause', async () => {
	await withRedis(async redis => {
		const causeOf = async (settings: object): Promise<string> => {
			const cluster = new Cluster({ ...redis.settings, ...settings }, { log: () => {} });
			try {
				await cluster.sendCommand(['PING']);
				return 'answered';
			} catch (error) {
				return (error as Error).message;
			} finally {
				cluster.close();
			}
		};
		const sentinel = { master: 'mymaster', user: SENTINEL_USER, password: SENTINEL_PASSWORD };
		assert.is(await causeOf({ sentinel: { ...sentinel, master: 'other' } }), 'no Sentinel knows the master `other`');
		assert.is(
			await causeOf({ sentinel: { ...sentinel, password: 'wrong' } }),
			'no Sentinel answers: Redis rejects the user or password',
		);
		const [unused] = await freePorts(1);
		const address = `127.0.0.1:${unused}`;
		assert.is(await causeOf({ address, other_addresses: [] }), 'no Sentinel answers: connection refused');
		assert.is(await causeOf({ address }), 'answered', 'one of the Sentinels suffices');
	});
});

test.run();
