/**
 * Purges after a failover without Sentinels: the host name of Redis leads to another server, while some connections of a machine
 * still lead to the old one, which goes on accepting writes.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import type { Cluster } from '../../runtime/cluster/cluster.ts';
import { until } from '../harness.ts';
import { joinWithFakeCaches } from './fake-caches.ts';
import { RedisRelay } from './redis-relay.ts';
import { RedisServer } from './redis-server.ts';

const test = suite('purges after another server has taken over');

/** A member of the cluster, and the relay through which it reaches Redis. */
interface Machine {
	readonly cluster: Cluster;
	readonly relay: RedisRelay;
	readonly applied: readonly PurgeSelection[];
	purge(tag: string): Promise<{ readonly confirmed: readonly string[]; readonly unconfirmed: readonly string[] }>;
}

const has = ({ applied }: Machine, tag: string): boolean =>
	applied.some(selection => 'tag' in selection && selection.tag === tag);

async function openMachine(redis: RedisServer): Promise<Machine> {
	const relay = await RedisRelay.start(redis.port);
	const cluster = redis.cluster({ address: relay.address, timeout: 5000 });
	const applied = await joinWithFakeCaches(cluster);
	return { cluster, relay, applied, purge: async tag => (await cluster.purges)!.purge({ tag }) };
}

/** The IDs of the connections of a server that wait for purges. */
function readerIds(server: RedisServer): string[] {
	const lines = server.cli('client', 'list').split('\n');
	return lines.flatMap(line =>
		/ cmd=xread /.test(line) ? / id=(\d+)|^id=(\d+)/.exec(line)!.slice(1).filter(Boolean) : [],
	);
}

/** Ends the connection over which a machine waits for purges. Its other connection to the old server continues. */
function endReader(server: RedisServer): void {
	for (const id of readerIds(server)) server.cli('client', 'kill', 'id', id);
}

/** Runs a test with two machines, and two servers: the old one, and one with the same data to which both machines are led next. */
async function withServers(
	run: (servers: { old: RedisServer; next: RedisServer }, machines: { one: Machine; other: Machine }) => Promise<void>,
): Promise<void> {
	const [old, next] = [await RedisServer.start(), await RedisServer.start()];
	const [one, other] = [await openMachine(old), await openMachine(old)];
	try {
		// A machine reads only purges that are made after it has joined.
		await until('both to read purges', async () => {
			await one.purge('before');
			return has(other, 'before');
		});
		next.cli('replicaof', '127.0.0.1', String(old.port));
		await next.untilAnswer(old.cli('xinfo', 'stream', 'svc:purges'), 'xinfo', 'stream', 'svc:purges');
		next.cli('replicaof', 'no', 'one');
		for (const { relay } of [one, other]) relay.leadTo(next.port);
		await run({ old, next }, { one, other });
	} finally {
		for (const { cluster, relay } of [one, other]) {
			cluster.close();
			relay.close();
		}
		await Promise.all([old.kill(), next.kill()]);
	}
}

test('a purge that the old server alone has accepted is added to the new one, which the machine already reads', async () => {
	await withServers(async ({ old, next }, { one, other }) => {
		other.relay.setReachable(false);
		other.relay.setReachable(true);
		endReader(old);
		await until('both to read the new server', () => readerIds(next).length === 2);
		assert.equal(await one.purge('late'), { purged: 0, confirmed: [], unconfirmed: [other.cluster.ownId] });
		await until('the purge to arrive', () => has(other, 'late'));
		assert.not.ok(
			other.applied.some(selection => 'prefix' in selection),
			'the other machine has missed nothing else',
		);
		assert.is(one.applied.filter(selection => 'tag' in selection && selection.tag === 'late').length, 1);
	});
});

test('a purge that the new server lacks is added to it, although the old one still has it', async () => {
	await withServers(async ({ old }, { one, other }) => {
		other.relay.setReachable(false);
		assert.equal(await one.purge('lost'), { purged: 0, confirmed: [], unconfirmed: [other.cluster.ownId] });
		endReader(old);
		other.relay.setReachable(true);
		await until('the purge to arrive', () => has(other, 'lost'));
		assert.not.ok(
			other.applied.some(selection => 'prefix' in selection),
			'the other machine has missed nothing else',
		);
	});
});

test.run();
