/** Responses that the machines of a cluster share, over a real redis-server. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../harness.ts';
import { type Machine, withMachines } from './caching-machine.ts';
import type { RedisServer } from './redis-server.ts';

const sharing = suite('responses of all machines');

/** Limits on waiting that no request reaches, not even on a busy machine. */
const LONG_WAITS = { store: 'shared {\n\t\t\twait 1m\n\t\t}', site: 'collapse 5m', timeout: '10s' };

sharing('a machine answers with a response that another one has fetched, also after a restart', async () => {
	await withMachines(
		2,
		async ([first, second], redis, application) => {
			assert.is((await first!.ask('/page')).body, 'version 1');
			await until('the response in Redis', async () => redis.cli('keys', 'svc:cache:url:*').trim() !== '');
			const { body, cacheStatus } = await second!.ask('/page');
			assert.is(body, 'version 1');
			assert.match(cacheStatus, 'svc; hit; ttl=');
			assert.is(application.requestCount, 1);
			// The response is now in the memory of the second machine, too.
			assert.is((await second!.ask('/page')).body, 'version 1');
			// A machine that has just started has nothing in its memory.
			await second!.server!.stop();
			await second!.start();
			await until('the machine to have joined', async () => (await second!.cluster()).members?.length === 2);
			assert.is((await second!.ask('/page')).body, 'version 1');
			assert.is(application.requestCount, 1);
			await second!.server!.stop();
			const lines = readFileSync(`${second!.folder}/access.log`, 'utf8').trim().split('\n');
			const entries = lines.map(line => JSON.parse(line) as { readonly cache: string; readonly cache_tier?: string });
			// Entries of different threads may be in any order.
			const results = entries.map(entry => `${entry.cache} ${entry.cache_tier ?? 'memory'}`).sort();
			assert.equal(results, ['hit cluster', 'hit cluster', 'hit memory']);
		},
		LONG_WAITS,
	);
});

const STORED = 'svc_cluster_cache_stores_total{result="stored"}';
const WAITS = 'svc_cluster_cache_waits_total';
const CLIENTS = 1000;
const MACHINES = 10;
/** Lua code that counts the processes that wait for fetches. */
const COUNT_WAITERS = `local count = 0
for _, key in ipairs(redis.call('KEYS', 'svc:cache:*:waiters')) do count = count + redis.call('SCARD', key) end
return count`;

/** The channel on which Redis names keys that have expired, and the last message on it. */
const EXPIRY_CHANNEL = '__keyevent@0__:expired';
const LAST_NAME = 'the last name';

/** Starts to record leases that expire. The function that it resolves to stops that, and resolves to their number. */
async function recordExpiredLeases(redis: RedisServer): Promise<() => Promise<number>> {
	redis.cli('config', 'set', 'notify-keyspace-events', 'Ex');
	const listener = spawn('redis-cli', ['-p', String(redis.port), 'subscribe', EXPIRY_CHANNEL]);
	process.on('exit', () => listener.kill());
	let text = '';
	listener.stdout.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	await until('the subscription', () => text.includes(EXPIRY_CHANNEL));
	return async () => {
		redis.cli('publish', EXPIRY_CHANNEL, LAST_NAME);
		await until('all names', () => text.includes(LAST_NAME));
		listener.kill();
		return text.split('\n').filter(line => line.endsWith(':lease')).length;
	};
}

sharing('1,000 clients of 10 machines that ask for one cold URL cause one request to the application', async () => {
	await withMachines(
		MACHINES,
		async (machines, redis, application) => {
			const expiredLeases = await recordExpiredLeases(redis);
			const { promise: released, resolve: release } = Promise.withResolvers<void>();
			application.answer = async (_message, response) => {
				await released;
				application.sendPage(response);
			};
			const clients = Array.from({ length: CLIENTS }, (_each, i) => machines[i % MACHINES]!.ask('/cold'));
			// Redis is asked, because asking all machines for their metrics would keep a busy machine from serving.
			await until('9 machines to wait', () => Number(redis.cli('eval', COUNT_WAITERS, '0')) === MACHINES - 1);
			release();
			const replies = await Promise.all(clients);
			assert.equal(new Set(replies.map(({ status, body }) => `${status} ${body}`)), new Set(['200 version 1']));
			// If the computer stands still for three seconds, the lease expires, and another machine asks, too.
			const expired = await expiredLeases();
			assert.ok(
				application.requestCount <= 1 + expired,
				`${application.requestCount} requests, ${expired} expired leases`,
			);
		},
		LONG_WAITS,
	);
});

sharing(
	'a purge removes the response everywhere, and one that was requested before the purge does not come back',
	async () => {
		await withMachines(
			3,
			async (machines, _, application) => {
				const [first, second, third] = machines as [Machine, Machine, Machine];
				assert.is((await first.ask('/page')).body, 'version 1');
				await until('the response in Redis', async () => (await first.metric(STORED)) === 1);
				application.version = 2;
				assert.is((await first.purge({ tag: 'news' })).status, 200);
				// The second machine has never seen the response. It would get the one in Redis if the purge had not removed it.
				assert.is((await second.ask('/page')).body, 'version 2');
				assert.is(await second.metric('svc_cluster_cache_purged_total'), 1);

				// The first machine requests a response before a purge, and receives it after the purge.
				const { promise: released, resolve: release } = Promise.withResolvers<void>();
				const { promise: requested, resolve: onRequested } = Promise.withResolvers<void>();
				application.answer = async (_message, response) => {
					onRequested();
					await released;
					application.sendPage(response, 2);
				};
				const late = first.ask('/late');
				await requested;
				application.answer = (_message, response) => application.sendPage(response, 3);
				assert.is((await second.purge({ host: 'shop.test', path: '/late' })).body.machines?.confirmed.length, 2);
				release();
				assert.is((await late).body, 'version 2');
				for (const machine of [third, second, first]) assert.is((await machine.ask('/late')).body, 'version 3');
			},
			LONG_WAITS,
		);
	},
);

sharing('a successful POST removes the response from Redis, before its answer', async () => {
	await withMachines(
		2,
		async (machines, _, application) => {
			const [first, second] = machines as [Machine, Machine];
			await first.ask('/page');
			await until('the response in Redis', async () => (await first.metric(STORED)) === 1);
			application.version = 2;
			assert.is((await second.ask('/page', {}, 'POST')).status, 200);
			assert.is((await second.ask('/page')).body, 'version 2');
		},
		LONG_WAITS,
	);
});

sharing('responses that may not be shared release the waiting machines at once, and stay out of Redis', async () => {
	await withMachines(
		2,
		async (machines, redis, application) => {
			const [first, second] = machines as [Machine, Machine];
			const { promise: released, resolve: release } = Promise.withResolvers<void>();
			application.answer = async (_message, response) => {
				await released;
				response.setHeader('Cache-Control', 'private').end('for one client');
			};
			const replies = [first.ask('/mine'), second.ask('/mine')];
			await until('one machine to wait', async () => {
				const waits = await Promise.all(machines.map(machine => machine.metric(WAITS)));
				return waits.reduce((a, b) => a + b) === 1;
			});
			const releasedAt = performance.now();
			release();
			assert.equal(
				(await Promise.all(replies)).map(({ body }) => body),
				['for one client', 'for one client'],
			);
			// Without the release, the waiting machine would have waited for a minute.
			assert.ok(performance.now() - releasedAt < 30_000);
			// Requests with credentials are answered from Redis, but wait for no other request and store nothing.
			application.answer = (_message, response) =>
				void response.setHeader('Cache-Control', 'public, max-age=60').end('for all');
			await first.ask('/member', { Authorization: 'Basic YTpi' });
			application.answer = (_message, response) =>
				void response.setHeader('Cache-Control', 'max-age=60').setHeader('Set-Cookie', 'a=b').end('with a cookie');
			await first.ask('/cookie');
			assert.is(
				redis
					.cli('keys', 'svc:cache:*')
					.split('\n')
					.filter(name => /^svc:cache:[^:]+$/.test(name)).length,
				0,
			);
		},
		LONG_WAITS,
	);
});

sharing('variants, HEAD and ranges are answered from Redis as from the memory', async () => {
	await withMachines(
		2,
		async (machines, _, application) => {
			const [first, second] = machines as [Machine, Machine];
			const body = 'x'.repeat(50_000);
			application.answer = (message, response) => {
				response.setHeader('Cache-Control', 'max-age=60').setHeader('Vary', 'Accept-Language').setHeader('ETag', '"e"');
				response.end(`${message.headers['accept-language']} ${body}`);
			};
			const [english, german] = [{ 'Accept-Language': 'en' }, { 'Accept-Language': 'de' }];
			await first.ask('/text', english);
			// The lease of the first variant may be ending now, because clients have a response before Redis has it.
			await first.ask('/text', german);
			await until('both variants in Redis', async () => (await first.metric(STORED)) === 2);
			assert.is((await second.ask('/text', english, 'HEAD')).status, 200);
			assert.is((await second.ask('/text', { ...german, Range: 'bytes=0-3' })).body, 'de x');
			assert.is((await second.ask('/text', { ...english, 'If-None-Match': '"e"' })).status, 304);
			assert.is((await second.ask('/text', german)).body, `de ${body}`);
			assert.is(application.requestCount, 2);
			// Redis does not have this third variant, so the machine asks the application.
			assert.is((await second.ask('/text', { 'Accept-Language': 'fr' })).body, `fr ${body}`);
			assert.is(application.requestCount, 3);
		},
		LONG_WAITS,
	);
});

sharing('Redis deletes every response, and reveals neither URLs nor contents', async () => {
	await withMachines(
		1,
		async ([machine], redis, application) => {
			application.answer = (_message, response) =>
				void response.setHeader('Cache-Control', 'max-age=86400').end('a secret '.repeat(1000));
			await machine!.ask('/private-path?token=abc');
			await until('the response in Redis', async () => (await machine!.metric(STORED)) === 1);
			const names = redis.cli('keys', 'svc:cache:*').trim().split('\n');
			assert.ok(names.length >= 2);
			for (const name of names) {
				const lifetimeMs = Number(redis.cli('pttl', name));
				assert.ok(lifetimeMs > 0 && lifetimeMs <= 600_000, `${name} expires in ${lifetimeMs} ms`);
			}
			const dump = readFileSync(redis.dump(), 'latin1');
			for (const text of ['private-path', 'token=abc', 'a secret', 'shop.test'])
				assert.not.ok(dump.includes(text), text);
			// The body has 9,000 bytes of a repeated text, and must be compressed in Redis.
			assert.ok(Number(redis.cli('memory', 'usage', names.find(name => /^svc:cache:[^:]+$/.test(name))!)) < 2500);
		},
		{ ...LONG_WAITS, store: 'shared {\n\t\t\tkeep 10m\n\t\t}' },
	);
});

sharing.run();
