/** A Redis Cluster of three nodes: the store, purges and rate limits, and nodes that lose slots or end. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import { keySlot } from '../../runtime/cluster/key-slot.ts';
import { REPORT_SCRIPT } from '../../runtime/cluster/shared-limits.ts';
import { openRedisStore } from '../../runtime/storage/redis-store.ts';
import { until } from '../harness.ts';
import { respondingSite, withServer } from '../runtime/running-server.ts';
import { addStoreCases } from '../runtime/storage/store-contract.ts';
import { joinWithFakeCaches } from './fake-caches.ts';
import { NodeGroup } from './redis-node-group.ts';

const test = suite('Redis Cluster');
const keys = [randomBytes(32).toString('base64')];
const group = await NodeGroup.start();
const { nodes } = group;

const open: Cluster[] = [];

function clusterWith(prefix: string, settings: Partial<ClusterSettings> = {}, log: string[] = []): Cluster {
	const cluster = new Cluster(
		{ ...group.settings, keys, prefix, timeout: 10_000, ...settings },
		{ log: (_level, _logger, message, fields) => log.push(`${message}: ${fields?.cause}`) },
	);
	open.push(cluster);
	return cluster;
}

/** Returns the slot of all keys of a cluster, except for those of rate limits. */
const slotOf = (cluster: Cluster): number => keySlot(cluster.redisKey(''));

test.after(async () => {
	for (const cluster of open) cluster.close();
	await group.close();
});

// Prefixes are in different slots, so that these cases use all nodes.
let prefixes = 0;
addStoreCases(test, async () => {
	const prefix = `contract${++prefixes}`;
	return () => openRedisStore(clusterWith(prefix));
});

test('the slot of a key is the one that Redis computes', () => {
	for (const key of ['svc', '{svc}:store:a', 'a{}b', 'a{b', '}{x}y{z}', '{svc:login}:limits:login', 'ä{ö}']) {
		assert.is(keySlot(key), Number(nodes[0]!.cli('cluster', 'keyslot', key)), key);
	}
});

test('rate limits have slots of their own, everything else shares one', () => {
	const cluster = clusterWith('svc');
	const slots = ['members', 'purges', 'store:a'].map(name => keySlot(cluster.redisKey(name)));
	assert.is(new Set(slots).size, 1);
	const slotOfZone = (zone: string) => keySlot(cluster.redisKey(`limits:${zone}`, zone));
	assert.is(slotOfZone('login'), keySlot(`${cluster.redisKey('limits:login', 'login')}:process`));
	assert.is.not(slotOfZone('login'), slotOfZone('search'));
});

test('a purge reaches the other members, which confirm it', async () => {
	const [first, second] = [clusterWith('purging'), clusterWith('purging')];
	const [, applied] = await Promise.all([first, second].map(joinWithFakeCaches));
	await until('both members', async () => (await first.listMembers().catch(() => [])).length === 2);
	// A machine reads only purges that are made after it has joined. So purges are repeated until both machines read them.
	await until('both to read purges', async () => {
		await (await first.purges)!.purge({ tag: 'before' });
		return applied!.length > 0;
	});
	applied!.length = 0;
	const outcome = await (await first.purges)!.purge({ tag: 'news' });
	assert.equal(outcome.confirmed, [second.ownId]);
	assert.equal(
		applied!.map(selection => 'tag' in selection && selection.tag),
		['news'],
	);
});

test('the ACL user of the manual has enough rights, and none in a cluster whose prefix begins with the same letters', async () => {
	const manual = readFileSync(new URL('../../cli/manual/redis.md', import.meta.url), 'utf8');
	const [, rights] = /ACL SETUSER svc on >PASSWORD ~svc:\* ([^`]+)`/.exec(manual)!;
	const [, patterns] = /keys have braces: `([^`]+)`/.exec(manual)!;
	for (const node of nodes) {
		node.cli('acl', 'setuser', 'svc', 'on', '>password', ...patterns!.split(' '), ...rights!.split(' '));
		node.cli('acl', 'log', 'reset');
	}
	/** Writes, locks, purges and reports usage, as machines do. Returns the errors. */
	const errorsOf = async (cluster: Cluster): Promise<string[]> => {
		const store = openRedisStore(cluster);
		await joinWithFakeCaches(cluster);
		const limitKey = cluster.redisKey('limits:login', 'login');
		const results = await Promise.allSettled([
			store.write('certificates/a', 'certificate').then(() => store.list('certificates')),
			store.lock('order').then(lock => lock.release()),
			cluster.purges!.then(purges => purges.purge({ tag: 'news' })),
			REPORT_SCRIPT.run(cluster, [limitKey, `${limitKey}:process`], ['1', '10'], 5000),
		]);
		return results.flatMap(result => (result.status === 'rejected' ? [(result.reason as Error).message] : []));
	};
	const login = { user: 'svc', password: 'password' };
	assert.equal(await errorsOf(clusterWith('svc', login)), []);
	for (const node of nodes) assert.is(node.cli('acl', 'log').trim(), '');
	const errors = await errorsOf(clusterWith('svc-staging', login));
	assert.is(errors.length, 4);
	for (const error of errors) assert.match(error, 'the Redis user lacks a permission');
	for (const node of nodes) node.cli('acl', 'deluser', 'svc');
});

test('servers share rate limits', async () => {
	const batch = 2;
	const limit = 20;
	const zone = {
		name: 'all',
		requests: limit,
		window: 86_400_000,
		key: '{http.request.uri.query}',
		shared: { batch, wait: 5000, on_error: 'deny' as const },
	};
	const document = {
		settings: { cluster: { ...group.settings, keys, prefix: 'limited' } },
		sites: [respondingSite('ok', { steps: [{ handler: 'rate_limit', zones: [zone] }] })],
	};
	await withServer(document, {}, one =>
		withServer(document, {}, async other => {
			let admitted = 0;
			for (let i = 0; i < 60; i++) if ((await [one, other][i % 2]!.get('/?client')).status === 200) admitted++;
			assert.ok(admitted >= limit && admitted <= limit + 2 * batch, `${admitted} admitted`);
		}),
	);
});

test('commands follow a slot that moves to another node, and keys that are being moved', async () => {
	const cluster = clusterWith('moving');
	const applied = await joinWithFakeCaches(cluster);
	const store = openRedisStore(cluster);
	await store.write('before', 'value');
	const slot = keySlot(cluster.redisKey(''));
	const source = group.ownerOf(slot)!;
	const target = nodes.find(node => node !== source)!;
	const [sourceId, targetId] = [source, target].map(node => node.cli('cluster', 'myid').trim()) as [string, string];
	target.cli('cluster', 'setslot', String(slot), 'importing', sourceId);
	source.cli('cluster', 'setslot', String(slot), 'migrating', targetId);
	// The node from which the slot is moved does not have this key, so it redirects this single command to the target node.
	assert.is(await cluster.sendCommand(['GET', cluster.redisKey('absent')]), null);
	await cluster.sendCommand(['SET', cluster.redisKey('new'), 'moved']);
	assert.ok(target.cli('cluster', 'getkeysinslot', String(slot), '10').includes('new'));
	// The first of these keys is still at the source node, and the second is not. The command is repeated until both are at one
	// node.
	const both = ['EXISTS', cluster.redisKey('store_keys'), cluster.redisKey('absent')];
	await cluster.sendCommand(both, 100).then(
		() => assert.unreachable(),
		error => {
			assert.is((error as ClusterError).message, 'keys are being moved to another node of the Redis Cluster');
		},
	);
	const [existing, written] = [cluster.sendCommand(both), store.write('during', 'value')];
	const movedKeys = source.cli('cluster', 'getkeysinslot', String(slot), '1000').trim().split('\n');
	source.cli('migrate', '127.0.0.1', String(target.port), '', '0', '5000', 'keys', ...movedKeys);
	for (const node of [target, source]) node.cli('cluster', 'setslot', String(slot), 'node', targetId);
	assert.is(await existing, 1);
	await written;
	assert.is(String(await store.read('during')), 'value');
	assert.is(String(await store.read('before')), 'value');
	await until('purges through the new node', async () => {
		const other = clusterWith('moving');
		await joinWithFakeCaches(other);
		await (await other.purges)!.purge({ tag: 'news' }).catch(error => assert.instance(error.cause, ClusterError));
		other.close();
		return applied.some(selection => 'tag' in selection && selection.tag === 'news');
	});
});

test('a slot that no node serves is reported as a failure of the connection, until a node serves it again', async () => {
	const log: string[] = [];
	const cluster = clusterWith('unserved', {}, log);
	const get = () => cluster.sendCommand(['GET', cluster.redisKey('key')]);
	assert.is(await get(), null);
	const slot = slotOf(cluster);
	const owner = group.ownerOf(slot)!;
	for (const node of nodes) node.cli('cluster', 'delslots', String(slot));
	await until('a refusal', () =>
		get().then(
			() => false,
			error => (error as Error).message === 'the Redis Cluster is down',
		),
	);
	assert.not(cluster.isConnected);
	// A process that starts now can connect, and finds the slot as soon as a node serves it.
	const late = clusterWith('unserved');
	await late.sendCommand(['GET', late.redisKey('key')]).then(
		() => assert.unreachable(),
		error => {
			assert.is((error as ClusterError).message, 'the Redis Cluster is down');
		},
	);
	owner.cli('cluster', 'addslots', String(slot));
	await until('the connections to be usable again, without a command', () => cluster.isConnected && late.isConnected);
	assert.is(await get(), null);
	const connected = 'connected to Redis: undefined';
	const failed = 'Redis is unavailable; the server continues without it: the Redis Cluster is down';
	// Until all nodes know that the slot is served again, some of them may still refuse its keys.
	assert.equal(log.slice(0, 3), [connected, failed, connected]);
	assert.is(log.at(-1), connected);
	for (const node of nodes) await node.untilAnswer('cluster_state:ok', 'cluster', 'info');
});

test('a node that ends makes its keys unavailable, not those of other nodes, until it is back', async () => {
	const clusters = Array.from({ length: 12 }, (_, i) => clusterWith(`node${i}`));
	const lost = clusters[0]!;
	const node = group.ownerOf(slotOf(lost))!;
	const kept = clusters.find(cluster => group.ownerOf(slotOf(cluster)) !== node)!;
	// Without this setting, all nodes would refuse all commands as soon as one slot is not served.
	for (const one of nodes) one.cli('config', 'set', 'cluster-require-full-coverage', 'no');
	for (const cluster of [lost, kept]) await cluster.sendCommand(['SET', cluster.redisKey('key'), '1']);
	await node.kill();
	await lost.sendCommand(['GET', lost.redisKey('key')]).then(
		() => assert.unreachable(),
		error => assert.is((error as ClusterError).code, 'cluster/unavailable'),
	);
	assert.not(lost.isConnected);
	assert.is(String(await kept.sendCommand(['GET', kept.redisKey('key')])), '1');
	assert.ok(kept.isConnected);
	await node.start();
	await until('the node to be back', () => lost.sendCommand(['PING', lost.redisKey('key')]).then(Boolean, () => false));
	assert.ok(lost.isConnected);
});

test.run();
