/** Responses that the machines of a cluster share, while a real redis-server does not answer, ends, or is full. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until, untilOutput } from '../harness.ts';
import { type Application, type Machine, type PageReply, withMachines } from './caching-machine.ts';
import type { RedisServer } from './redis-server.ts';

const faults = suite('responses of all machines without Redis');

const CLIENTS_PER_MACHINE = 4;
const PAGES = 20;
/** Milliseconds that a request may wait for Redis, and for another machine. */
const BOUND_MS = 4000;
const LINES = { store: 'shared {\n\t\t\twait 4s\n\t\t}', site: 'stale if_error 1h', timeout: '4s' };
const AVAILABLE = 'svc_cluster_cache_available';
const WAITS = 'svc_cluster_cache_waits_total';
const UNAVAILABLE = 'svc_cluster_cache_lookups_total{result="unavailable"}';

/** Sends requests for random pages to all machines, one at a time from each client, until it is stopped. */
class Load {
	readonly replies: PageReply[] = [];
	#isStopped = false;
	readonly #clients: Promise<void>[];
	/** For each client, when it sent the request that is not answered yet, by `performance.now()`. */
	readonly #sentAt: number[] = [];

	constructor(machines: readonly Machine[]) {
		const machineOfClient = machines.flatMap(machine => Array.from({ length: CLIENTS_PER_MACHINE }, () => machine));
		this.#clients = machineOfClient.map(async (machine, client) => {
			while (!this.#isStopped) {
				this.#sentAt[client] = performance.now();
				this.replies.push(await machine.ask(`/page${Math.floor(Math.random() * PAGES)}`));
			}
		});
	}

	/** Resolves after six further replies per client, on average. */
	async whenUsed(): Promise<void> {
		const wanted = this.replies.length + 6 * this.#clients.length;
		await until('replies', () => this.replies.length >= wanted);
	}

	/** Resolves once the requests that are in progress have been answered. */
	async whenAnswered(): Promise<void> {
		const now = performance.now();
		await until('replies to the requests in progress', () => this.#sentAt.every(sentAt => sentAt > now));
	}

	async stop(): Promise<readonly PageReply[]> {
		this.#isStopped = true;
		await Promise.all(this.#clients);
		return this.replies;
	}
}

/** Makes pages stale after a second, so that a machine often needs the cluster. */
function servePages(application: Application): void {
	application.answer = (message, response) => {
		response.setHeader('Cache-Control', 'max-age=1').end(`page of ${message.url}`);
	};
}

async function withFault(
	beginFault: (redis: RedisServer) => void | Promise<void>,
	endFault: (redis: RedisServer) => void | Promise<void>,
): Promise<void> {
	await withMachines(
		2,
		async (machines, redis, application) => {
			servePages(application);
			const load = new Load(machines);
			try {
				await load.whenUsed();
				await beginFault(redis);
				await until('both machines to notice', async () => {
					const readings = await Promise.all(machines.map(machine => machine.metric(AVAILABLE)));
					return readings.every(available => available === 0);
				});
				// Requests that began before may be waiting for Redis, and other requests for them.
				await load.whenAnswered();
				const answeredAt = performance.now();
				await load.whenUsed();
				for (const machine of machines) assert.ok((await machine.metric(UNAVAILABLE)) > 0);
				// Now that the machines have noticed the fault, no request waits for Redis.
				assert.equal(
					load.replies.filter(({ sentAt, ms }) => sentAt >= answeredAt && ms >= BOUND_MS),
					[],
				);
				const replies = await load.stop();
				assert.equal(
					replies.filter(({ status, body }) => status !== 200 || !body.startsWith('page of /page')),
					[],
				);
				// A request may wait for Redis, then for another machine, and then for the application.
				assert.ok(Math.max(...replies.map(({ ms }) => ms)) < 3 * BOUND_MS);
				for (const machine of machines) {
					const messages = machine.server!.output().split('\n');
					assert.is(messages.filter(text => text.includes('responses are not shared')).length, 1);
				}
			} finally {
				// If an assertion fails, requests that the end of the machines would interrupt must not hide it.
				await load.stop();
			}

			// Stale responses are served by the rules of the machine's own cache.
			const stale = await machines[0]!.ask('/stale');
			application.answer = (_message, response) => void response.writeHead(500).end('failed');
			await until('the response to be stale', async () => {
				const { status, body, cacheStatus } = await machines[0]!.ask('/stale');
				assert.is(status, 200);
				assert.is(body, stale.body);
				return cacheStatus.includes('ttl=-');
			});

			await endFault(redis);
			servePages(application);
			await until('responses to be shared again', async () => {
				const readings = await Promise.all(machines.map(machine => machine.metric(AVAILABLE)));
				return readings.every(available => available === 1);
			});
		},
		LINES,
	);
}

faults('a Redis that is frozen under load fails no request, and delays requests by its bound at most', async () => {
	await withFault(
		redis => redis.signal('SIGSTOP'),
		redis => redis.signal('SIGCONT'),
	);
});

faults('a Redis that is killed under load fails no request, and delays requests by its bound at most', async () => {
	await withFault(
		redis => redis.kill(),
		redis => redis.start(),
	);
});

faults('a Redis that is full does without new responses', async () => {
	await withMachines(
		2,
		async (machines, redis, application) => {
			servePages(application);
			redis.cli('config', 'set', 'maxmemory', '1');
			for (const machine of machines) {
				const { status, ms } = await machine.ask('/page');
				assert.is(status, 200);
				assert.ok(ms < BOUND_MS);
			}
			assert.is(application.requestCount, 2);
			await untilOutput(machines[0]!.server!, 'Redis is out of memory');
			redis.cli('config', 'set', 'maxmemory', '0');
			await machines[0]!.ask('/other');
			await until('the response in Redis', async () => redis.cli('keys', 'svc:cache:url:*').trim() !== '');
			assert.is((await machines[1]!.ask('/other')).status, 200);
		},
		LINES,
	);
});

faults('a machine that is killed while it fetches is replaced by a waiting one', async () => {
	await withMachines(
		2,
		async (machines, _, application) => {
			const [first, second] = machines as [Machine, Machine];
			const { promise: requested, resolve: onRequested } = Promise.withResolvers<void>();
			application.answer = () => onRequested();
			const lost = first.ask('/page').catch(() => 'lost');
			await requested;
			servePages(application);
			const reply = second.ask('/page');
			await until('the second machine to wait', async () => (await second.metric(WAITS)) === 1);
			first.server!.child.kill('SIGKILL');
			assert.is(await lost, 'lost');
			assert.is((await reply).body, 'page of /page');
			assert.is(application.requestCount, 2);
		},
		{ store: 'shared {\n\t\t\twait 1m\n\t\t}', timeout: '10s' },
	);
});

faults('a fetch that does not end is waited for only once, and no longer than `wait`', async () => {
	await withMachines(
		3,
		async (machines, _, application) => {
			const [first, second, third] = machines as [Machine, Machine, Machine];
			const { promise: requested, resolve: onRequested } = Promise.withResolvers<void>();
			application.answer = () => onRequested();
			first.ask('/page').catch(() => {});
			await requested;
			application.answer = (_message, response) => void response.setHeader('Cache-Control', 'no-store').end('own');
			assert.is((await second.ask('/page')).body, 'own');
			assert.ok((await second.metric(WAITS)) >= 1);
			assert.is((await third.ask('/page')).body, 'own');
			assert.is(await third.metric(WAITS), 0);
			assert.is(application.requestCount, 3);
		},
		// Long enough for the second request to arrive within it on a busy machine.
		{ store: 'shared {\n\t\t\twait 5s\n\t\t}', timeout: '10s' },
	);
});

faults.run();
