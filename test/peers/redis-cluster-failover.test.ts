/**
 * A Redis Cluster of three masters with a replica each: requests, limits, values, locks and purges go on after a replica has taken
 * the place of a master that was killed, that is frozen, or that hands over its slots.
 */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { keySlot } from '../../runtime/cluster/key-slot.ts';
import { openRedisStore } from '../../runtime/storage/redis-store.ts';
import { until } from '../harness.ts';
import { respondingSite, withServer } from '../runtime/running-server.ts';
import { joinWithFakeCaches } from './fake-caches.ts';
import { NodeGroup } from './redis-node-group.ts';

const test = suite('failover in a Redis Cluster');
const keys = [randomBytes(32).toString('base64')];
const ZONE = 'all';

/** Runs a test with a Redis Cluster. Clusters that the test opens with `open` are closed afterwards. */
async function withNodes(
	run: (group: NodeGroup, open: (settings?: Partial<ClusterSettings>) => Cluster) => Promise<void>,
): Promise<void> {
	const group = await NodeGroup.start({ replicas: 1, nodeTimeoutMs: 3000 });
	const clusters: Cluster[] = [];
	try {
		await run(group, (settings = {}) => {
			const cluster = new Cluster({ ...group.settings, keys, timeout: 2000, ...settings }, { log: () => {} });
			clusters.push(cluster);
			return cluster;
		});
	} finally {
		for (const cluster of clusters) cluster.close();
		await group.close();
	}
}

const has = (applied: readonly PurgeSelection[], tag: string): boolean =>
	applied.some(selection => 'tag' in selection && selection.tag === tag);

/** Returns the slot of all keys of a cluster, except for those of rate limits. */
const slotOf = (cluster: Cluster): number => keySlot(cluster.redisKey(''));

/** Returns a key prefix for which one node stores both the rate limits and all other keys. */
function prefixWithOneNode(group: NodeGroup): string {
	for (let i = 0; ; i++) {
		const owners = [`{node${i}}:`, `{node${i}:${ZONE}}:`].map(key => group.ownerOf(keySlot(key)));
		if (owners[0] === owners[1]) return `node${i}`;
	}
}

test('requests, limits, values, locks and purges go on after a master was killed', async () => {
	await withNodes(async (group, open) => {
		const prefix = prefixWithOneNode(group);
		const [one, other] = [open({ prefix }), open({ prefix })];
		const applied = await joinWithFakeCaches(other);
		await joinWithFakeCaches(one);
		await until('both members', async () => (await one.listMembers().catch(() => [])).length === 2);
		const store = openRedisStore(one);
		await store.write('certificates/a', 'value');
		const lock = await store.lock('order');
		const zone = {
			name: ZONE,
			// The limit is higher than the number of requests that can be sent during a failover.
			requests: 10_000_000,
			window: 86_400_000,
			key: 'everyone',
			shared: { batch: 5, wait: 100, on_error: 'allow' as const },
		};
		const document = {
			settings: { cluster: { ...group.settings, keys, prefix, timeout: 2000 } },
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
				await group.failover(slotOf(one));
				await until('a purge on all machines', async () => {
					await (await one.purges)!.purge({ tag: 'after' }).catch(() => {});
					return has(applied, 'after');
				});
				assert.is(String(await store.read('certificates/a')), 'value');
				await store.fenced(lock).write('certificates/b', 'value');
				assert.is(await openRedisStore(other).tryLock('order'), undefined);
				const reports = server.runtime.cluster!.report().limits.reports;
				await until('reports of limits', () => server.runtime.cluster!.report().limits.reports > reports);
			} finally {
				isFailingOver = false;
				await load;
			}
			assert.equal([...statuses], [200]);
		});
		await lock.release();
	});
});

test('a frozen master is left as soon as its replica was promoted, and not used again as a replica', async () => {
	await withNodes(async (group, open) => {
		const cluster = open();
		const set = (value: string) => cluster.sendCommand(['SET', cluster.redisKey('value'), value]);
		await set('old');
		const slot = slotOf(cluster);
		const master = group.ownerOf(slot)!;
		await master.untilReplicated();
		master.signal('SIGSTOP');
		const successor = await group.untilReplaced(master, slot);
		await until('the new master to answer', () =>
			set('new').then(
				() => true,
				() => false,
			),
		);
		master.signal('SIGCONT');
		await master.untilAnswer('role:slave', 'info', 'replication');
		assert.is(String(await cluster.sendCommand(['GET', cluster.redisKey('value')])), 'new');
		await set('newer');
		assert.ok(successor.cli('get', cluster.redisKey('value')).includes('newer'));
	});
});

test('no command fails or is executed twice while a master hands over its slots to its replica', async () => {
	await withNodes(async (group, open) => {
		const [cluster, other] = [open({ timeout: 10_000 }), open()];
		const applied = await joinWithFakeCaches(other);
		await joinWithFakeCaches(cluster);
		const counter = cluster.redisKey('counter');
		let count = 0;
		let isHandingOver = true;
		const load = (async () => {
			while (isHandingOver) assert.is(await cluster.sendCommand(['INCR', counter]), ++count);
		})();
		const slot = slotOf(cluster);
		const master = group.ownerOf(slot)!;
		const replica = group.replicaOf(master)!;
		try {
			await until('commands', () => count > 0);
			assert.match(replica.cli('cluster', 'failover'), 'OK');
			assert.is(await group.untilReplaced(master, slot), replica);
			const countAtHandover = count;
			await until('further commands', () => count > countAtHandover);
		} finally {
			isHandingOver = false;
			await load;
		}
		assert.is(Number(replica.cli('get', counter)), count);
		await until('purges at the new master', async () => {
			await (await cluster.purges)!.purge({ tag: 'after' }).catch(() => {});
			return has(applied, 'after');
		});
	});
});

test.run();
