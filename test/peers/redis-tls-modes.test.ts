/** TLS to Sentinels, to the server that they name, and to all nodes of a Redis Cluster. Each certificate must have the right name. */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { Cluster } from '../../runtime/cluster/cluster.ts';
import { keySlot } from '../../runtime/cluster/key-slot.ts';
import { openRedisStore } from '../../runtime/storage/redis-store.ts';
import { until } from '../harness.ts';
import { NodeGroup } from './redis-node-group.ts';
import { SENTINEL_PASSWORD, SENTINEL_USER, SentinelGroup } from './redis-sentinel-group.ts';
import { RedisCertificate } from './redis-server.ts';

const test = suite('TLS to several Redis servers');
const keys = [randomBytes(32).toString('base64')];
const PASSWORD = 'canary-of-the-servers';
const NAME = 'redis.test';
/** Only the address of one node is configured: the cluster finds the other nodes by asking that one. */
const ONE_NODE = { mode: 'cluster' } as const;
const WRONG_NAME = 'the certificate of Redis has another name';
const UNTRUSTED = 'the certificate of Redis was not issued by a trusted authority';

const certificate = await RedisCertificate.issue([NAME, '127.0.0.1']);
const namedCertificate = await RedisCertificate.issue([NAME]);
const otherAuthority = await RedisCertificate.issue([NAME, '127.0.0.1']);

/**
 * Sends a command with these settings. Returns the answer, or the cause of the failure. Fails if a message contains a password.
 */
async function outcomeOf(settings: ClusterSettings, key: string = 'key'): Promise<string> {
	const logged: unknown[] = [];
	const cluster = new Cluster(
		{ keys, timeout: 10_000, ...settings },
		{ log: (_level, _logger, message, fields) => logged.push(message, fields) },
	);
	try {
		const outcome = await cluster
			.sendCommand(['SET', cluster.redisKey(key), 'value'])
			.then(String, error => (error as Error).message);
		assert.not.match(JSON.stringify([logged, outcome]), /canary/);
		return outcome;
	} finally {
		cluster.close();
	}
}

test('Sentinels and servers with TLS, a user and passwords of their own, also after a failover', async () => {
	const group = await SentinelGroup.start({ certificate, password: PASSWORD });
	const tls = { ca: certificate.authorityFile };
	const settings = { ...group.settings, tls, password: PASSWORD };
	const cluster = new Cluster({ ...settings, keys, timeout: 10_000 }, { log: () => {} });
	try {
		const store = openRedisStore(cluster);
		await store.write('certificates/a', 'before');
		assert.is(
			await outcomeOf({ ...settings, tls: { ca: otherAuthority.authorityFile } }),
			`no Sentinel answers: ${UNTRUSTED}`,
		);
		assert.is(await outcomeOf({ ...settings, tls: {} }), `no Sentinel answers: ${UNTRUSTED}`);
		assert.is(
			await outcomeOf({ ...settings, tls: { ...tls, server_name: 'other.test' } }),
			`no Sentinel answers: ${WRONG_NAME}`,
		);
		assert.is(await outcomeOf({ ...settings, tls: { ...tls, server_name: NAME } }), 'OK');
		const sentinel = { master: 'mymaster', user: SENTINEL_USER, password: SENTINEL_PASSWORD };
		const rejected = 'Redis rejects the user or password';
		assert.is(
			await outcomeOf({ ...settings, sentinel: { ...sentinel, password: 'canary-that-is-wrong' } }),
			`no Sentinel answers: ${rejected}`,
		);
		assert.is(
			await outcomeOf({ ...settings, sentinel: { ...sentinel, user: 'other' } }),
			`no Sentinel answers: ${rejected}`,
		);
		assert.is(
			await outcomeOf({ ...settings, sentinel: { master: 'mymaster' } }),
			'no Sentinel answers: Redis requires a password',
		);
		assert.is(await outcomeOf({ ...settings, password: 'canary-that-is-wrong' }), rejected);
		const { tls: _, ...withoutTls } = settings;
		assert.match(await outcomeOf(withoutTls), /^no Sentinel answers: /);
		await group.failover();
		await until('a write to the new master', () =>
			store.write('certificates/b', 'after').then(
				() => true,
				() => false,
			),
		);
		assert.is(String(await store.read('certificates/a')), 'before');
	} finally {
		cluster.close();
		await group.close();
	}
});

test('a server that the Sentinels name, but that has no certificate for its address, gets no command', async () => {
	const group = await SentinelGroup.start({ certificate: namedCertificate });
	const tls = { ca: namedCertificate.authorityFile };
	try {
		assert.is(await outcomeOf({ ...group.settings, tls }), `no Sentinel answers: ${WRONG_NAME}`);
		assert.is(await outcomeOf({ ...group.settings, tls: { ...tls, server_name: NAME } }), 'OK');
	} finally {
		await group.close();
	}
});

test('all nodes of a Redis Cluster with TLS, also those that only the others name', async () => {
	const group = await NodeGroup.start({ certificate, password: PASSWORD });
	const { address } = group.settings;
	const tls = { ca: certificate.authorityFile };
	const settings = { ...ONE_NODE, address, tls, password: PASSWORD };
	try {
		// There are so many prefixes that each node owns the key of at least one of them.
		const prefixes = Array.from({ length: 12 }, (_, i) => `prefix${i}`);
		const owners = new Set(prefixes.map(prefix => group.ownerOf(keySlot(`{${prefix}}:key`))));
		assert.is(owners.size, group.nodes.length);
		for (const prefix of prefixes) {
			assert.is(await outcomeOf({ ...settings, prefix }), 'OK');
			assert.match(group.ownerOf(keySlot(`{${prefix}}:key`))!.cli('get', `{${prefix}}:key`), 'value');
		}
		assert.is(await outcomeOf({ ...settings, tls: { ca: otherAuthority.authorityFile } }), UNTRUSTED);
		assert.is(await outcomeOf({ ...settings, tls: { ...tls, server_name: 'other.test' } }), WRONG_NAME);
		assert.is(await outcomeOf({ ...settings, tls: { ...tls, server_name: NAME } }), 'OK');
		assert.is(await outcomeOf({ ...settings, password: 'canary-that-is-wrong' }), 'Redis rejects the user or password');
	} finally {
		await group.close();
	}
});

test('a node of a Redis Cluster without a certificate for its own address gets no command', async () => {
	const group = await NodeGroup.start({ certificate: namedCertificate });
	const { address } = group.settings;
	const tls = { ca: namedCertificate.authorityFile };
	const localAddress = `localhost:${address.split(':')[1]}`;
	try {
		assert.is(await outcomeOf({ ...ONE_NODE, address, tls }), WRONG_NAME);
		assert.is(await outcomeOf({ ...ONE_NODE, address: localAddress, tls }), WRONG_NAME);
		// With one name for all nodes, their addresses do not matter.
		assert.is(await outcomeOf({ ...ONE_NODE, address: localAddress, tls: { ...tls, server_name: NAME } }), 'OK');
	} finally {
		await group.close();
	}
});

test.run();
