/**
 * Purges reach all machines of a cluster, over a real redis-server. They also reach machines that were cut off, and the disks of
 * machines that were stopped.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cluster as clusterEndpoint } from '../../admin/cluster.ts';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { RedisServer } from './redis-server.ts';

const purging = suite('purges of all machines');
const secrets = { CLUSTER_KEY: randomBytes(32).toString('base64') };

/** Number of sequential purges. The effect of each purge is checked on every machine. */
const PURGE_COUNT = Number(process.env.SVC_PURGE_COUNT ?? 200);

/** An upstream whose responses can be cached. Each response names the version of the content. */
class Application {
	version = 1;
	readonly #server = createServer((_, response) => {
		response.setHeader('Cache-Control', 'max-age=3600').setHeader('Cache-Tag', 'news').end(`version ${this.version}`);
	});

	async start(): Promise<number> {
		this.#server.listen(0, '127.0.0.1');
		await once(this.#server, 'listening');
		return (this.#server.address() as AddressInfo).port;
	}

	close(): void {
		this.#server.close();
		this.#server.closeAllConnections();
	}
}

class Machine {
	readonly folder: string = temporaryFolder();
	readonly #port: number;
	readonly #admin: number;
	server: ServerProcess | undefined;

	constructor(ports: readonly [number, number], redis: string, upstream: number, disk: boolean) {
		[this.#port, this.#admin] = ports;
		const cache = disk ? `cache {\n\t\tdisk ${this.folder}/cache 10MiB\n\t}` : 'cache';
		writeFileSync(
			path.join(this.folder, 'Configfile'),
			`{
	admin 127.0.0.1:${this.#admin}
	threads 2
	default_bind 127.0.0.1
	metrics
	cluster redis://${redis} {
		key {$CLUSTER_KEY}
	}
	${cache}
}
http://:${this.#port} {
	cache
	reverse_proxy 127.0.0.1:${upstream}
	metrics /metrics
}
`,
		);
	}

	async start(): Promise<void> {
		const env = { ...secrets, XDG_STATE_HOME: this.folder, XDG_DATA_HOME: this.folder };
		this.server = await serve([path.join(this.folder, 'Configfile')], this.#port, { env });
	}

	/** Requests a page at a host name that all machines share. Returns the version in the response. */
	async get(): Promise<string> {
		const text = await rawExchange(this.#port, 'GET /page HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n');
		return /version \d+/.exec(text)?.[0] ?? text;
	}

	async purge(selection: object): Promise<{ status: number; body: PurgeAnswer }> {
		const response = await this.#ask('/cache/purge', selection);
		return { status: response.status, body: (await response.json()) as PurgeAnswer };
	}

	async cluster(): Promise<ClusterAnswer> {
		return (await (await this.#ask('/cluster')).json()) as ClusterAnswer;
	}

	async metric(name: string): Promise<number> {
		const text = await (await this.#ask('/metrics')).text();
		const line = text.split('\n').find(one => one.startsWith(`${name} `));
		return Number(line?.slice(name.length + 1));
	}

	#ask(target: string, body?: object): Promise<Response> {
		const init = body && {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body: JSON.stringify(body),
		};
		return fetch(`http://127.0.0.1:${this.#admin}${target}`, init);
	}
}

interface PurgeAnswer {
	readonly purged?: number;
	readonly machines?: { readonly confirmed: readonly string[]; readonly unconfirmed: readonly string[] };
	readonly error?: { readonly code: string; readonly message: string };
}

interface ClusterAnswer {
	readonly connected: boolean;
	readonly self: string;
	readonly members?: readonly { readonly id: string; readonly pid: number; readonly generation: number }[];
}

/** Runs `count` machines with one Redis and one application. */
async function withMachines(
	count: number,
	test: (machines: readonly Machine[], redis: RedisServer, application: Application) => Promise<void>,
	disk = false,
): Promise<void> {
	const redis = await RedisServer.start();
	const application = new Application();
	const upstream = await application.start();
	const ports = await freePorts(2 * count);
	const machines = Array.from(
		{ length: count },
		(_, i) => new Machine([ports[2 * i]!, ports[2 * i + 1]!], redis.address, upstream, disk),
	);
	try {
		await Promise.all(machines.map(machine => machine.start()));
		await until('all are members', async () => {
			const known = await Promise.all(machines.map(machine => machine.cluster()));
			return known.every(({ members }) => members?.length === count);
		});
		await test(machines, redis, application);
	} finally {
		await Promise.all(machines.map(({ server }) => server?.stop()));
		await redis.kill();
		application.close();
	}
}

const answers = (machines: readonly Machine[]): Promise<string[]> => Promise.all(machines.map(one => one.get()));

purging('take effect on every machine before the answer, which names them', async () => {
	await withMachines(3, async (machines, redis, application) => {
		const [first, second, third] = machines as [Machine, Machine, Machine];
		assert.equal(await answers(machines), ['version 1', 'version 1', 'version 1']);
		for (const selection of [
			{ host: 'shop.test', path: '/page' },
			{ host: 'shop.test', prefix: '/' },
			{ tag: 'news' },
		]) {
			const stale = `version ${application.version++}`;
			assert.equal(await answers(machines), [stale, stale, stale]);
			const { status, body } = await second.purge(selection);
			assert.is(status, 200);
			assert.is(body.purged, 1);
			assert.is(body.machines?.confirmed.length, 2);
			assert.equal(body.machines?.unconfirmed, []);
			const fresh = `version ${application.version}`;
			assert.equal(await answers(machines), [fresh, fresh, fresh]);
		}
		const { self, members, connected } = await first.cluster();
		assert.ok(connected);
		assert.equal(members!.map(({ pid }) => pid).sort(), machines.map(({ server }) => server!.child.pid).sort());
		assert.ok(members!.some(({ id }) => id === self));
		// Checks the answer against the schema in the OpenAPI description. Other tests check this schema only with a server that has
		// no cluster.
		const { operationsByMethod: methods } = clusterEndpoint;
		const validate = new Ajv2020({ strict: false }).compile(methods.GET!.answer!.schema as object);
		assert.ok(validate(await first.cluster()), JSON.stringify(validate.errors));
		assert.is(await third.metric('svc_cluster_members'), 3);
		assert.is(await third.metric('svc_cluster_purges_total{direction="received"}'), 3);
		assert.is(await second.metric('svc_cluster_purges_total{direction="sent"}'), 3);
		assert.is(await third.metric('svc_cluster_complete_purges_total'), 0);
		// URLs may contain secrets, so they are encrypted like everything else.
		assert.not.match(redis.cli('xrange', 'svc:purges', '-', '+'), 'shop.test');
	});
});

purging('name the machine that does not answer, which purges as soon as it can', async () => {
	await withMachines(3, async (machines, _, application) => {
		const [first, second, third] = machines as [Machine, Machine, Machine];
		await answers(machines);
		const { self: frozen } = await third.cluster();
		third.server!.child.kill('SIGSTOP');
		application.version++;
		const { status, body } = await first.purge({ tag: 'news' });
		assert.is(status, 200);
		assert.equal(body.machines?.unconfirmed, [frozen]);
		assert.is(body.machines?.confirmed.length, 1);
		assert.equal(await answers([first, second]), ['version 2', 'version 2']);
		third.server!.child.kill('SIGCONT');
		await until('the third machine to purge', async () => (await third.get()) === 'version 2');
		// A purge does not wait for a machine that has ended.
		await third.server!.stop();
		const after = await first.purge({ tag: 'news' });
		assert.is(after.body.machines?.confirmed.length, 1);
		assert.equal(after.body.machines?.unconfirmed, []);
	});
});

purging('name a process that is no longer a member because it does not announce itself, but may serve', async () => {
	await withMachines(2, async (machines, redis, application) => {
		const [first, second] = machines as [Machine, Machine];
		await answers(machines);
		const { self: frozen } = await second.cluster();
		second.server!.child.kill('SIGSTOP');
		// Makes it look as if the frozen process had not announced itself for a long time.
		redis.cli('zadd', 'svc:members', '1', frozen);
		for (const isMoved of [false, true]) {
			if (isMoved) {
				const isMissing = (): boolean => redis.cli('zscore', 'svc:members:missing', frozen).trim() !== '';
				await until('a heartbeat of the first machine', isMissing);
			}
			application.version++;
			const { status, body } = await first.purge({ tag: 'news' });
			assert.is(status, 200);
			assert.equal(body.machines, { confirmed: [], unconfirmed: [frozen] });
		}
		second.server!.child.kill('SIGCONT');
		await until('the second machine to purge', async () => (await second.get()) === 'version 3');
		await until('both to be members', async () => (await first.cluster()).members?.length === 2);
		const after = await first.purge({ tag: 'news' });
		assert.equal(after.body.machines, { confirmed: [frozen], unconfirmed: [] });
	});
});

purging(`are ${PURGE_COUNT} times in effect on four machines as soon as they are answered`, async () => {
	await withMachines(4, async (machines, _, application) => {
		let confirmed = 0;
		const elapsed: number[] = [];
		for (let round = 0; round < PURGE_COUNT; round++) {
			const stale = `version ${application.version}`;
			assert.equal(new Set(await answers(machines)), new Set([stale]));
			application.version++;
			const start = performance.now();
			const { status, body } = await machines[round % machines.length]!.purge({ host: 'shop.test', path: '/page' });
			elapsed.push(performance.now() - start);
			assert.is(status, 200);
			const fresh = await answers(machines);
			const isFresh = fresh.every(text => text === `version ${application.version}`);
			if (body.machines!.unconfirmed.length === 0) {
				confirmed++;
				assert.ok(isFresh, `purge ${round}, confirmed by all machines: ${fresh.join(', ')}`);
			} else await until('all machines to purge', async () => new Set(await answers(machines)).size === 1);
		}
		elapsed.sort((a, b) => a - b);
		const [median, p99] = [0.5, 0.99].map(share => elapsed[Math.floor(elapsed.length * share)]!.toFixed(1));
		console.log(
			`${confirmed} of ${PURGE_COUNT} purges were confirmed by all machines, after ${median} ms, p99 ${p99} ms`,
		);
		assert.ok(confirmed >= PURGE_COUNT * 0.99);
	});
});

purging('without Redis take effect here, say so, and reach the others afterwards', async () => {
	await withMachines(2, async (machines, redis, application) => {
		const [first, second] = machines as [Machine, Machine];
		await answers(machines);
		redis.signal('SIGSTOP');
		application.version++;
		const { status, body } = await first.purge({ tag: 'news' });
		assert.is(status, 503);
		assert.is(body.error?.code, 'purge_not_shared');
		assert.equal(await answers(machines), ['version 2', 'version 1']);
		redis.signal('SIGCONT');
		await until('the other machine to purge', async () => (await second.get()) === 'version 2');
	});
});

purging('purge everything after Redis has lost the purges', async () => {
	await withMachines(2, async (machines, redis, application) => {
		const [first, second] = machines as [Machine, Machine];
		await first.purge({ tag: 'other' });
		await answers(machines);
		application.version++;
		await redis.kill();
		await redis.start();
		await until('both machines to purge', async () => (await answers(machines)).every(text => text === 'version 2'));
		await until('both to be members', async () => (await first.cluster()).members?.length === 2);
		application.version++;
		assert.is((await second.purge({ tag: 'news' })).status, 200);
		await until('fresh responses', async () => (await answers(machines)).every(text => text === 'version 3'));
	});
});

purging('reach the disk of a machine that was stopped in the meantime', async () => {
	await withMachines(
		2,
		async (machines, _, application) => {
			const [first, second] = machines as [Machine, Machine];
			await first.purge({ tag: 'other' });
			await answers(machines);
			await until('the responses on disk', async () => (await second.metric('svc_cache_disk_entries')) === 1);
			await second.server!.stop();
			// The response on the disk is still valid, so it is served after a restart, once the disk is open.
			await second.start();
			await until('the disk to be open', async () => (await second.metric('svc_cache_disk_entries')) === 1);
			application.version++;
			assert.is(await second.get(), 'version 1');
			assert.is(await second.metric('svc_cluster_complete_purges_total'), 0);
			await second.server!.stop();
			assert.is((await first.purge({ host: 'shop.test', path: '/page' })).status, 200);
			await second.start();
			await until('the purge', async () => (await second.get()) === 'version 2');
			assert.is(await second.metric('svc_cluster_complete_purges_total'), 0);
		},
		true,
	);
});

purging.run();
