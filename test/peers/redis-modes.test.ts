/**
 * Two machines whose Redis is a master with Sentinels or a Redis Cluster: cached responses, TLS session tickets and published
 * configurations are shared, requests succeed during a failover, and afterwards everything is shared as before.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { connect } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keySlot } from '../../runtime/cluster/key-slot.ts';
import type { RolloutSummary } from '../../runtime/cluster/rollout-summary.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, runCommand, type ServerProcess, startServer, temporaryFolder, until } from '../harness.ts';
import { Application } from './caching-machine.ts';
import { NodeGroup } from './redis-node-group.ts';
import { SENTINEL_PASSWORD, SentinelGroup } from './redis-sentinel-group.ts';

const test = suite('machines with several Redis servers');
const secrets = { CLUSTER_KEY: randomBytes(32).toString('base64'), SENTINEL_PASSWORD, NO_COLOR: '1' };
const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['tickets.test'] });
const folder = temporaryFolder();
writeFileSync(path.join(folder, 'certificate.pem'), certificate);
writeFileSync(path.join(folder, 'key.pem'), key);

/** Milliseconds within which a machine must serve, even if this computer is busy. */
const START_LIMIT_MS = 60_000;

/** Several Redis servers, of which one can be replaced by another. */
interface RedisGroup {
	readonly configuration: { readonly addresses: string; readonly lines: readonly string[] };
	/** Kills the server that has the keys of the machines. Resolves once another one has taken its place. */
	failover(): Promise<unknown>;
	close(): Promise<void>;
}

/** Returns the configuration of all machines, whose first site answers with `text`. `options` are additional global options. */
function configurationOf({ configuration }: RedisGroup, upstream: number, text: string, options: string = ''): string {
	return `{
	threads 1
	metrics
	auto_https disable_redirects
	${options}
	cluster ${configuration.addresses} {
		${configuration.lines.join('\n\t\t')}
		key {$CLUSTER_KEY}
		timeout 10s
	}
	cache {
		shared {
			wait 1m
		}
	}
}
http://text.test {
	bind unix/{env.MACHINE_FOLDER}/text.sock
	respond "${text}"
}
http://shop.test {
	bind unix/{env.MACHINE_FOLDER}/shop.sock
	cache
	reverse_proxy 127.0.0.1:${upstream}
}
https://tickets.test {
	bind unix/{env.MACHINE_FOLDER}/tickets.sock
	tls ${folder}/certificate.pem ${folder}/key.pem
	respond "{http.request.tls.resumed}"
}
`;
}

/** A server process that listens on Unix sockets in a folder of its own. */
class Machine {
	readonly #folder = temporaryFolder();
	readonly #file = path.join(this.#folder, 'Configfile');
	readonly #admin: number;
	#server: ServerProcess | undefined;

	constructor(admin: number, group: RedisGroup, upstream: number) {
		this.#admin = admin;
		writeFileSync(this.#file, configurationOf(group, upstream, 'own file', `admin 127.0.0.1:${admin}`));
	}

	async start(): Promise<void> {
		const env = { ...secrets, MACHINE_FOLDER: this.#folder, XDG_STATE_HOME: this.#folder, XDG_DATA_HOME: this.#folder };
		const server = startServer(['run', '--cluster', '-c', this.#file], { env });
		this.#server = server;
		const end = performance.now() + START_LIMIT_MS;
		await until('the server to serve', () => {
			if (server.child.exitCode !== null || performance.now() > end) throw new Error(server.output());
			return server.output().includes('"msg":"serving"');
		});
	}

	async stop(): Promise<void> {
		await this.#server?.stop();
	}

	/** Requests a page of a site. Returns the status and the body. */
	async ask(site: 'text' | 'shop', page: string = '/', method: string = 'GET'): Promise<string> {
		const socketPath = path.join(this.#folder, `${site}.sock`);
		const headers = { host: `${site}.test` };
		const message = request({ socketPath, path: page, method, headers, agent: false }).end();
		const [response] = (await once(message, 'response')) as [IncomingMessage];
		let body = '';
		for await (const chunk of response) body += chunk;
		return `${response.statusCode} ${body}`;
	}

	/** Makes a request over TLS. Returns whether the session was resumed, and the client's newest session. */
	async handshake(session?: Buffer): Promise<{ readonly isResumed: boolean; readonly session: Buffer }> {
		const socket = connect({
			path: path.join(this.#folder, 'tickets.sock'),
			servername: 'tickets.test',
			rejectUnauthorized: false,
			...(session ? { session } : {}),
		});
		let newestSession = session;
		socket.on('session', given => {
			newestSession = given;
		});
		await once(socket, 'secureConnect');
		const isResumed = socket.isSessionReused();
		socket.write('GET / HTTP/1.1\r\nHost: tickets.test\r\nConnection: close\r\n\r\n');
		let text = '';
		for await (const chunk of socket) text += chunk;
		assert.ok(text.endsWith(String(isResumed)), text);
		return { isResumed, session: newestSession! };
	}

	/** Returns the value of a metric of this machine; 0 if the machine does not report the metric. */
	async metric(name: string): Promise<number> {
		const text = await (await fetch(`http://127.0.0.1:${this.#admin}/metrics`)).text();
		const line = text.split('\n').find(one => one.startsWith(`${name} `));
		return line === undefined ? 0 : Number(line.slice(name.length + 1));
	}

	/** Removes a page from the caches of all machines. Returns the status of the answer, and the number of machines that confirmed. */
	async purge(page: string): Promise<{ readonly status: number; readonly confirmed: number | undefined }> {
		const response = await fetch(`http://127.0.0.1:${this.#admin}/cache/purge`, {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body: JSON.stringify({ host: 'shop.test', path: page }),
		});
		const { machines } = (await response.json()) as { readonly machines?: { readonly confirmed: readonly string[] } };
		return { status: response.status, confirmed: machines?.confirmed.length };
	}
}

/** Two machines with their application, and the folder from which an operator publishes. */
class Fleet {
	readonly machines: readonly [Machine, Machine];
	readonly application: Application;
	readonly #group: RedisGroup;
	readonly #upstream: number;
	readonly #folder = temporaryFolder();

	constructor(group: RedisGroup, application: Application, upstream: number, admins: readonly number[]) {
		this.#group = group;
		this.application = application;
		this.#upstream = upstream;
		this.machines = admins.map(admin => new Machine(admin, group, upstream)) as unknown as [Machine, Machine];
	}

	/** Publishes a configuration whose first site answers with a text, and waits until all machines serve it. */
	async publish(text: string): Promise<void> {
		writeFileSync(path.join(this.#folder, 'Configfile'), configurationOf(this.#group, this.#upstream, text));
		const output = await this.#run(0, 'publish', '--canary', '50%', '--observe', '1s', '--wait');
		assert.match(output, 'All machines serve it.');
		for (const machine of this.machines) assert.is(await machine.ask('text'), `200 ${text}`);
		const status = JSON.parse(await this.#run(0, 'rollout', 'status', '--format', 'json')) as RolloutSummary;
		assert.is(status.phase, 'completed');
		assert.is(status.machines.length, this.machines.length);
	}

	/**
	 * Checks that a response that one machine has fetched is served by the other one, that a purge removes it from both, and that a
	 * POST removes it from Redis.
	 */
	async assertSharesResponses(page: string): Promise<void> {
		const { machines, application } = this;
		const [first, second] = machines;
		const storedBefore = await first.metric(STORED);
		const requestsBefore = application.requestCount;
		assert.is(await first.ask('shop', page), `200 version ${application.version}`);
		await until('the response in Redis', async () => (await first.metric(STORED)) > storedBefore);
		assert.is(await second.ask('shop', page), `200 version ${application.version}`);
		assert.is(application.requestCount, requestsBefore + 1);
		application.version++;
		assert.equal(await second.purge(page), { status: 200, confirmed: 1 });
		assert.is(await first.ask('shop', page), `200 version ${application.version}`);
		await until('the new response in Redis', async () => (await first.metric(STORED)) > storedBefore + 1);
		application.version++;
		await second.ask('shop', page, 'POST');
		assert.is(await second.ask('shop', page), `200 version ${application.version}`);
	}

	/** Checks that one machine fetches a response for which clients of both machines wait. */
	async assertFetchesOnce(page: string): Promise<void> {
		const { machines, application } = this;
		const [waitsBefore, requestsBefore] = [await this.#waitCount(), application.requestCount];
		const { promise: released, resolve: release } = Promise.withResolvers<void>();
		application.answer = async (_message, response) => {
			await released;
			application.sendPage(response);
		};
		const answers = machines.map(machine => machine.ask('shop', page));
		await until('one machine to wait', async () => (await this.#waitCount()) > waitsBefore);
		release();
		for (const answer of await Promise.all(answers)) assert.is(answer, `200 version ${application.version}`);
		assert.is(application.requestCount, requestsBefore + 1);
	}

	/** Checks that each of the two machines resumes the TLS sessions that the other one began. Returns a session. */
	async assertSharesTickets(): Promise<Buffer> {
		const [first, second] = this.machines;
		const begun = await first.handshake();
		assert.not(begun.isResumed);
		const resumed = await second.handshake(begun.session);
		assert.ok(resumed.isResumed, 'at the second machine');
		assert.ok((await first.handshake(resumed.session)).isResumed, 'back at the first machine');
		return resumed.session;
	}

	/** Sends requests to all sites of all machines while `action` runs. Returns the errors and the unexpected answers. */
	async failuresDuring(action: () => Promise<unknown>): Promise<string[]> {
		let isActing = true;
		const failures: string[] = [];
		const load = this.machines.map(async machine => {
			for (let i = 0; isActing; i++) {
				// Each page is new to the caches of both machines, so that each request would need Redis.
				const answers = await Promise.all([machine.ask('text'), machine.ask('shop', `/new${i}`)]).catch(String);
				if (!Array.isArray(answers) || !answers.every(answer => answer.startsWith('200 ')))
					failures.push(String(answers));
			}
		});
		try {
			await action();
		} finally {
			isActing = false;
			await Promise.all(load);
		}
		return failures;
	}

	async #waitCount(): Promise<number> {
		const counts = await Promise.all(this.machines.map(machine => machine.metric(WAITS)));
		return counts.reduce((sum, count) => sum + count);
	}

	async #run(expectedStatus: number, ...args: readonly string[]): Promise<string> {
		const { status, stdout, stderr } = await runCommand(args, { cwd: this.#folder, env: secrets });
		assert.is(status, expectedStatus, stdout + stderr);
		return stdout;
	}
}

const STORED = 'svc_cluster_cache_stores_total{result="stored"}';
const WAITS = 'svc_cluster_cache_waits_total';
const CONNECTED = 'svc_cluster_connected';
const AVAILABLE = 'svc_cluster_cache_available';
const MEMBERS = 'svc_cluster_members';

/** The group of Redis servers of each mode. */
const groups: { readonly [mode: string]: () => Promise<RedisGroup> } = {
	'a master with Sentinels': () => SentinelGroup.start(),
	'a Redis Cluster': async () => {
		const nodes = await NodeGroup.start({ replicas: 1, nodeTimeoutMs: 3000 });
		return {
			configuration: nodes.configuration,
			failover: () => nodes.failover(keySlot('{svc}:members')),
			close: () => nodes.close(),
		};
	},
};

for (const [mode, startGroup] of Object.entries(groups)) {
	test(`responses, session tickets and publications are shared through ${mode}, also after a failover`, async () => {
		const group = await startGroup();
		const application = new Application();
		const fleet = new Fleet(group, application, await application.start(), await freePorts(2));
		const { machines } = fleet;
		const untilAll = (what: string, metric: string, value: number): Promise<void> =>
			until(what, async () => {
				const values = await Promise.all(machines.map(machine => machine.metric(metric)));
				return values.every(one => one === value);
			});
		try {
			for (const machine of machines) await machine.start();
			await untilAll('both machines to be members', MEMBERS, machines.length);
			await fleet.assertSharesResponses('/before');
			await fleet.assertFetchesOnce('/cold-before');
			const session = await fleet.assertSharesTickets();
			await fleet.publish('published before');

			assert.equal(await fleet.failuresDuring(() => group.failover()), []);

			await untilAll('both machines to be connected again', CONNECTED, 1);
			await untilAll('responses to be shared again', AVAILABLE, 1);
			await untilAll('both machines to be members again', MEMBERS, machines.length);
			await until('a purge on both machines', async () => (await machines[0].purge('/new0')).confirmed === 1);
			await fleet.assertSharesResponses('/after');
			await fleet.assertFetchesOnce('/cold-after');
			for (const machine of machines) assert.ok((await machine.handshake(session)).isResumed, 'a session from before');
			await fleet.assertSharesTickets();
			await fleet.publish('published after');
		} finally {
			for (const machine of machines) await machine.stop();
			await group.close();
			application.close();
		}
	});
}

test.run();
