/** Replies that no Redis, Sentinel or Redis Cluster should give: they must end neither the server nor a request. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ClusterSettings } from '../../../compiler/document/cluster-settings.ts';
import { Cluster } from '../../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../../runtime/cluster/cluster-error.ts';
import { ClusterMembers } from '../../../runtime/cluster/cluster-members.ts';
import type { RedisAccess } from '../../../runtime/cluster/redis-access.ts';
import type { RedisReply } from '../../../runtime/cluster/redis-connection.ts';
import { SharedLimits } from '../../../runtime/cluster/shared-limits.ts';
import { LimitTable, limitTableWords } from '../../../runtime/rate-limits/limit-table.ts';
import { freePorts, rawExchange, serve, temporaryFolder, until, WAIT_LIMIT_MS } from '../../harness.ts';
import { ScriptedRedis } from './scripted-redis.ts';

const test = suite('invalid replies of Redis');
const KEY = randomBytes(32).toString('base64');

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
const array = (...replies: readonly string[]): string => `*${replies.length}\r\n${replies.join('')}`;
const NOTHING = '$-1\r\n';

/** Replies as bytes. Some are not even in the protocol of Redis. */
const REPLIES: readonly string[] = [
	...[NOTHING, '*-1\r\n', ':1\r\n', '+OK\r\n', bulk('PONG'), bulk(''), array(), array(array()), array(NOTHING)],
	...[array(':1\r\n', NOTHING, array()), array(bulk('a'), NOTHING), array(array(NOTHING, NOTHING))],
	...[array(array(bulk('svc:purges'), array(array(bulk('1-0'), array(bulk('number')))))), array(NOTHING, NOTHING)],
	...[array(array(':0\r\n', ':16383\r\n', NOTHING)), array(bulk('1-0'), bulk('x'), NOTHING, ':1\r\n')],
	...[array(':1\r\n', bulk('1-0'), bulk('found'), bulk('v'), bulk('x')), array(':1\r\n', bulk('1-0'), bulk('lead'))],
	...[
		'-ERR no\r\n',
		'-MOVED 1 127.0.0.1:1\r\n',
		'-NOSCRIPT x\r\n',
		'-\r\n',
		'!garbage\r\n',
		'\0\0\0',
		'*9999999999\r\n',
	],
];

for (const [mode, lines] of [
	['a single server', ''],
	['Sentinels', 'sentinel mymaster'],
	['a Redis Cluster', 'mode cluster'],
] as const) {
	test(`a server serves on while ${mode} answers commands with replies that are not valid`, async () => {
		let count = 0;
		let isStarting = true;
		// The server connects as it would to a real Redis, and each later command gets the next reply of the list.
		const redis: ScriptedRedis = new ScriptedRedis(([name, question = '']) => {
			const isLocating = isStarting || count % 3 === 0;
			const [host, port] = address.split(':') as [string, string];
			if (name === 'ROLE') return array(bulk('master'));
			if (name === 'SENTINEL' && isLocating)
				return question === 'MASTER' ? array(bulk('config-epoch'), bulk('1')) : array(bulk(host), bulk(port));
			if (name === 'CLUSTER' && isLocating)
				return array(array(':0\r\n', ':16383\r\n', array(bulk(host), `:${port}\r\n`)));
			return REPLIES[count++ % REPLIES.length]!;
		});
		const address = await redis.start();
		const folder = temporaryFolder();
		const [port] = (await freePorts(1)) as [number];
		const [tlsPort] = (await freePorts(1)) as [number];
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{
	admin off
	threads 1
	default_bind 127.0.0.1
	http_port ${port}
	https_port ${tlsPort}
	cluster redis://${address} {
		${lines}
		key {$CLUSTER_KEY}
		timeout 50ms
	}
	cache {
		shared
	}
}
http://shop.test {
	rate_limit all 1000000 per 1m {
		shared {
			batch 1
			wait 20ms
			on_error local
		}
	}
	cache {
		ttl 1h
	}
	respond "answer"
}
https://shop.test {
	tls internal
	respond "secret"
}
`,
		);
		const env = { CLUSTER_KEY: KEY, XDG_STATE_HOME: folder, XDG_DATA_HOME: folder };
		const server = await serve([path.join(folder, 'Configfile')], port, { env });
		try {
			isStarting = false;
			await until('two replies of each kind', async () => {
				const targets = Array.from({ length: 8 }, (_, i) => `/${redis.commands.length}-${i}`);
				const texts = await Promise.all(
					targets.map(target =>
						rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n`),
					),
				);
				for (const text of texts) assert.match(text, /^HTTP\/1\.1 200 /);
				assert.is(server.child.exitCode, null, server.output());
				return count > 2 * REPLIES.length;
			});
			assert.not.match(server.output(), /unexpected|unhandled/i);
			redis.close();
			assert.is(await server.stop(WAIT_LIMIT_MS), 0, server.output());
		} finally {
			redis.close();
			await server.stop();
		}
	});
}

for (const [name, location, facts] of [
	['without the epoch of the configuration', array(bulk('127.0.0.1'), bulk('6379')), array(bulk('name'), bulk('m'))],
	['with an epoch that is not a number', array(bulk('a'), bulk('1')), array(bulk('config-epoch'), bulk('x'))],
	['without an address', array(), array(bulk('config-epoch'), bulk('1'))],
	['with an address that is a text', bulk('127.0.0.1:6379'), array(bulk('config-epoch'), bulk('1'))],
	['without facts', array(bulk('127.0.0.1'), bulk('6379')), '*-1\r\n'],
] as const) {
	test(`a Sentinel's answer ${name} makes Redis unavailable`, async () => {
		const sentinel = new ScriptedRedis(command => (command[1] === 'MASTER' ? facts : location));
		const settings = { address: await sentinel.start(), sentinel: { master: 'm' } } as ClusterSettings;
		const logged: unknown[] = [];
		const cluster = new Cluster(settings, { log: (_level, _logger, _message, fields) => logged.push(fields?.cause) });
		try {
			const error = await cluster.sendCommand(['PING'], 5000).catch(failure => failure);
			assert.instance(error, ClusterError);
			assert.is(error.message, 'no Sentinel answers: the answer of a Sentinel is not valid');
			assert.equal(logged, [error.message]);
		} finally {
			cluster.close();
			sentinel.close();
		}
	});
}

test('a command after the end opens no connection to a Redis Cluster', async () => {
	const redis: ScriptedRedis = new ScriptedRedis(([name]) => {
		const [host, port] = address.split(':') as [string, string];
		return name === 'CLUSTER' ? array(array(':0\r\n', ':16383\r\n', array(bulk(host), `:${port}\r\n`))) : '+PONG\r\n';
	});
	const address = await redis.start();
	const cluster = new Cluster({ address, mode: 'cluster' }, { log: () => {} });
	try {
		assert.is(String(await cluster.sendCommand(['PING'], 5000)), 'PONG');
		cluster.close();
		await until('the end of the connections', () => redis.connectionCount === 0);
		const error = await cluster.sendCommand(['PING'], 5000).catch(failure => failure);
		assert.instance(error, ClusterError);
		assert.is(redis.commands.filter(([name]) => name === 'PING').length, 1);
	} finally {
		cluster.close();
		redis.close();
	}
});

test('a server that has become a read-only replica is left, because its name may lead to the new master', async () => {
	let isReplica = false;
	const redis = new ScriptedRedis(() =>
		isReplica ? "-READONLY You can't write against a read only replica.\r\n" : '+OK\r\n',
	);
	const logged: unknown[] = [];
	const log = (_level: string, _logger: string, message: string, fields?: { readonly [name: string]: unknown }) =>
		logged.push(fields?.cause ?? message);
	const cluster = new Cluster({ address: await redis.start() }, { log });
	const write = (): Promise<unknown> => cluster.sendCommand(['SET', 'a', 'b'], 5000).catch(failure => failure);
	try {
		assert.is(String(await write()), 'OK');
		isReplica = true;
		await until('the end of the connection', async () => {
			assert.instance(await write(), ClusterError);
			return logged.includes('this Redis server is a read-only replica');
		});
		isReplica = false;
		await until('the next connection', async () => String(await write()) === 'OK');
		assert.equal(logged, ['connected to Redis', 'this Redis server is a read-only replica', 'connected to Redis']);
	} finally {
		cluster.close();
		redis.close();
	}
});

/** Returns access to a Redis that gives the same reply to all scripts. */
function withReply(reply: RedisReply): RedisAccess {
	const redisKey = (name: string): string => name;
	return { redisKey, runScript: async () => reply, sendCommand: async () => reply } as unknown as RedisAccess;
}

for (const reply of [null, [], [Buffer.from('x')], [null], [1, 2], Buffer.from('OK')] as readonly RedisReply[]) {
	test(`the reply ${JSON.stringify(reply)} to a report of a rate limit is a failure and changes no count`, async () => {
		const shared = new SharedLimits(withReply(reply), KEY);
		const buffer = new SharedArrayBuffer(4 * limitTableWords(8, true));
		shared.onTableOpened('table', { zone: 'all', maxKeys: 8, isShared: true }, buffer);
		const table = new LimitTable(buffer, 8, true);
		const rate = { intervalMs: 1000, capacityMs: 10_000, maxDelayMs: 0 };
		const sharing = { ...rate, shared: { batchMs: 5000, waitMs: 50, onError: 'local' as const } };
		assert.ok(table.take('client', 0, sharing, 1) <= 0);
		await shared.reportUsage('table', table.placeOf('client'));
		assert.equal({ ...shared.counts }, { reports: 0, keys: 0, failures: 1 });
		// The next request is decided as without Redis.
		assert.ok(table.take('client', 0, sharing, 1, true) <= 0);
		await shared.close();
	});
}

test('the number of members remains a number after a reply that is not one', async () => {
	const members = new ClusterMembers(withReply(null), { version: () => 'test', generation: () => 1 });
	await members.start();
	assert.is(members.memberCount, 0);
	assert.equal(
		(await members.list()).map(({ id }) => id),
		[members.ownId],
	);
	await members.leave();
});

test.run();
