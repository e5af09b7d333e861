/** The store in a real redis-server: the contract of all stores, encryption, fencing, and every kind of failure of the server. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ClusterError } from '../../runtime/cluster/cluster-error.ts';
import { openRedisStore } from '../../runtime/storage/redis-store.ts';
import type { Store } from '../../runtime/storage/store.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, temporaryFolder, until, waitForPort } from '../harness.ts';
import { addStoreCases, assertRefuses } from '../runtime/storage/store-contract.ts';
import { RedisServer } from './redis-server.ts';

const redis = suite('redis store');
const server = await RedisServer.start();
const keys = [randomBytes(32).toString('base64')];
const open: (() => void)[] = [];

function storeAt(prefix: string, more: { keys?: string[]; at?: RedisServer } = {}): Store {
	const cluster = (more.at ?? server).cluster({ keys: more.keys ?? keys, prefix });
	open.push(() => cluster.close());
	return openRedisStore(cluster);
}

let prefixes = 0;
addStoreCases(redis, async () => {
	const prefix = `contract${++prefixes}`;
	return () => storeAt(prefix);
});

redis('a dump contains no value, and only the configured key opens one', async () => {
	const secret = '-----BEGIN PRIVATE KEY----- canary-of-the-key';
	const store = storeAt('sealed');
	await store.write('certificates/a/a.key', secret);
	const dump = readFileSync(server.dump(), 'latin1');
	assert.ok(dump.includes('certificates/a/a.key'));
	assert.not.match(dump, /canary|PRIVATE KEY/);
	for (const key of server.cli('--raw', 'keys', 'sealed:store:*').trim().split('\n')) {
		assert.not.match(server.cli('--raw', 'hgetall', key), /canary|PRIVATE KEY/);
	}
	const other = randomBytes(32).toString('base64');
	await assertRefuses('store/unreadable', storeAt('sealed', { keys: [other] }).read('certificates/a/a.key'));
	// The previous key still decrypts what was encrypted with it.
	const both = storeAt('sealed', { keys: [other, ...keys] });
	assert.is((await both.read('certificates/a/a.key'))!.toString(), secret);
	await both.write('certificates/a/a.key', secret);
	assert.is((await storeAt('sealed', { keys: [other] }).read('certificates/a/a.key'))!.toString(), secret);
	await assertRefuses('store/unreadable', store.read('certificates/a/a.key'));
});

redis('values that were exchanged, altered or truncated in Redis are not returned', async () => {
	const store = storeAt('altered');
	await store.write('a.key', 'the key of a');
	await store.write('b.key', 'the key of b');
	server.cli('copy', 'altered:store:a.key', 'altered:store:b.key', 'replace');
	await assertRefuses('store/unreadable', store.read('b.key'));
	for (const value of ['', '\\x01', 'x'.repeat(60)]) {
		server.cli('hset', 'altered:store:a.key', 'value', value);
		await assertRefuses('store/unreadable', store.read('a.key'));
	}
});

redis('Redis refuses what a process writes under a lock that another one has taken since', async () => {
	const [one, other] = [storeAt('fence'), storeAt('fence')];
	const old = await one.lock('name');
	const writer = one.fenced(old);
	await writer.write('a', 'from the first holder');
	// The first holder has not noticed yet that its lock has expired.
	server.cli('del', 'fence:lock:name');
	const next = await other.lock('name');
	assert.not(old.lost.aborted);
	await assertRefuses('store/lock-lost', writer.write('a', 'too late'));
	await assertRefuses('store/lock-lost', writer.remove('a'));
	assert.is((await other.read('a'))!.toString(), 'from the first holder');
	await other.fenced(next).write('a', 'from the second holder');
	// The first holder learns that its lock has expired when it renews the lock. Its release does not free the second holder's lock.
	await until('the lock is lost', () => old.lost.aborted);
	await old.release();
	assert.is(await one.tryLock('name'), undefined);
	await next.release();
});

redis('a lock survives the loss of all data, and its token never becomes smaller', async () => {
	const [one, other] = [storeAt('loss'), storeAt('loss')];
	const lock = await one.lock('name');
	const token = BigInt(server.cli('get', 'loss:lock_token:name'));
	server.cli('flushall');
	await one.fenced(lock).write('a', 'b');
	await until('the lock is renewed', async () => server.cli('exists', 'loss:lock:name').trim() === '1');
	assert.is(await other.tryLock('name'), undefined);
	await lock.release();
	server.cli('flushall');
	const next = await other.lock('name');
	assert.ok(BigInt(server.cli('get', 'loss:lock_token:name')) > token);
	await next.release();
});

redis('commands fail within their limit when Redis is killed or frozen, and work again afterwards', async () => {
	const own = await RedisServer.start();
	const log: string[] = [];
	const cluster = own.cluster({ keys, timeout: 150 }, (message, cause) => log.push(`${message}: ${cause}`));
	open.push(() => cluster.close());
	const failed = async (): Promise<string> => {
		const begin = performance.now();
		const error = await cluster.sendCommand(['PING']).then(
			() => undefined,
			reason => reason,
		);
		const elapsedMs = performance.now() - begin;
		assert.instance(error, ClusterError);
		assert.is(error.code, 'cluster/unavailable');
		assert.ok(elapsedMs < 1500, `${elapsedMs} ms`);
		return error.message;
	};
	const works = (): Promise<boolean> =>
		cluster.sendCommand(['PING']).then(
			reply => String(reply) === 'PONG',
			() => false,
		);
	await until('connected', works);
	own.signal('SIGSTOP');
	assert.is(await failed(), 'no answer within 150 ms');
	// The client soon replaces the silent connection. Until the new connection opens, commands fail immediately.
	await until('given up', async () => !cluster.isConnected || (await works()));
	own.signal('SIGCONT');
	await until('connected again', works);
	await own.kill();
	await until('noticed', () => !cluster.isConnected);
	await failed();
	await own.start();
	await until('connected to the restarted server', works);
	assert.equal(
		log.map(line => line.replace(/: (?:no answer|no connection|connection).*/, '')),
		['connected to Redis: undefined', 'Redis is unavailable; the server continues without it'].flatMap((_, at, all) =>
			at === 0 ? [...all, ...all, all[0]!] : [],
		),
	);
	await own.kill();
});

redis('a full Redis refuses writes and still reads', async () => {
	const own = await RedisServer.start();
	const store = storeAt('full', { at: own });
	await store.write('a', 'b');
	own.cli('config', 'set', 'maxmemory', '1');
	const error = await store.write('c', randomBytes(1000)).catch(reason => reason);
	assert.is(error.message, '`c` cannot be written to Redis: Redis is out of memory.');
	assert.is((await store.read('a'))!.toString(), 'b');
	await own.kill();
});

redis('TLS with a client certificate, an ACL user and a database', async () => {
	const folder = temporaryFolder();
	const authority = await TestAuthority.make();
	const pair = await authority.issue({ names: ['redis.test'] });
	const file = (name: string, text: string): string => {
		writeFileSync(path.join(folder, name), text, { mode: 0o600 });
		return path.join(folder, name);
	};
	mkdirSync(folder, { recursive: true });
	const [ca, cert, key] = [
		file('ca.pem', authority.pem),
		file('cert.pem', pair.certificate),
		file('key.pem', pair.key),
	];
	const acl = file(
		'users.acl',
		'user default off\nuser svc on >canary-of-the-password ~app:* +@all -@admin -@dangerous\n',
	);
	const [plain, port] = (await freePorts(2)) as [number, number];
	const own = await RedisServer.start(
		[
			...['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', ca],
			...['--aclfile', acl],
		],
		plain,
	);
	await waitForPort(port);
	const tls = { ca, server_name: 'redis.test', client: { cert, key } };
	const settings = {
		address: `localhost:${port}`.replace('localhost', '127.0.0.1'),
		tls,
		database: 3,
		prefix: 'app',
		keys,
	};
	const good = own.cluster({ ...settings, user: 'svc', password: 'canary-of-the-password' });
	open.push(() => good.close());
	const store = openRedisStore(good);
	await store.write('a', 'b');
	assert.is((await store.read('a'))!.toString(), 'b');
	const causes = async (more: object): Promise<string> => {
		const logged: unknown[] = [];
		const bad = own.cluster({ ...settings, ...more }, (_message, cause) => logged.push(cause));
		const error = await bad.sendCommand(['GET', 'app:x'], 5000).catch(reason => reason);
		bad.close();
		assert.not.match(JSON.stringify([logged, error.message]), /canary/);
		return error.message;
	};
	assert.is(await causes({ user: 'svc', password: 'canary-that-is-wrong' }), 'Redis rejects the user or password');
	assert.is(
		await causes({ user: 'svc', password: 'canary-of-the-password', prefix: 'x', tls: { ca } }),
		'the certificate of Redis has another name',
	);
	assert.match(
		await causes({ tls: { ...tls, ca: path.join(folder, 'none.pem') } }),
		/none\.pem cannot be read: ENOENT$/,
	);
	const outside = own.cluster({ ...settings, user: 'svc', password: 'canary-of-the-password', prefix: 'other' });
	open.push(() => outside.close());
	const error = await openRedisStore(outside)
		.read('a')
		.catch(reason => reason);
	assert.is(error.message, '`a` in the store cannot be read from Redis: the Redis user lacks a permission.');
	await own.kill();
});

redis.after(async () => {
	for (const close of open) close();
	await server.kill();
});

redis.run();
