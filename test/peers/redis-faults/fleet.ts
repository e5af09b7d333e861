/**
 * Three machines that share a redis-server, and a fourth machine that serves the same configuration without Redis, in networks that
 * this process has made. A visitor sends requests to all of them.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, get, request } from 'node:http';
import path from 'node:path';
import { type ServerProcess, SVC, startServer, temporaryFolder, until } from '../../harness.ts';
import { NetworkMachine, OWN_ADDRESS, run } from './private-network.ts';
import type { Sample, VisitorPlan } from './visitor.ts';

const SECRET = { CLUSTER_KEY: randomBytes(32).toString('base64') };
const REDIS_NUMBER = 100;
const REDIS_PORT = 6379;
const RELAY_PORT = 6380;
const UPSTREAM_PORT = 9000;
/** Milliseconds within which a server must serve after its start. */
const START_LIMIT_MS = 120_000;
/** Number of pages in the caches. */
export const PAGE_COUNT = 10;

/** The values of `on_error`, which apply while Redis is unavailable. Each has a zone of shared limits. */
export const POLICIES = ['local', 'allow', 'deny'] as const;
export type Policy = (typeof POLICIES)[number];
/** The limit of each zone: requests per second, burst, batch, and maximum milliseconds of waiting for Redis. */
export const LIMIT = { perSecond: 15, burst: 10, batch: 2, waitMs: 100 } as const;

/**
 * Requests per second that the visitor sends to each machine, by path. Even a single machine gets more requests for a zone than the
 * zone admits.
 */
const RATES = {
	'/plain': 20,
	'/pages/': 20,
	'/limited/local': 25,
	'/limited/allow': 25,
	'/limited/deny': 25,
} as const;
export type VisitedPath = keyof typeof RATES;

export interface PurgeAnswer {
	readonly status: number;
	readonly purged?: number;
	readonly machines?: { readonly confirmed: readonly string[]; readonly unconfirmed: readonly string[] };
	readonly error?: { readonly code: string };
}

/** An upstream of pages that may be stored for an hour. Each response names the version of its page. */
class Application {
	readonly #versions = new Map<string, number>();
	readonly #server = createServer((incoming, response) => {
		response.setHeader('Cache-Control', 'max-age=3600').end(this.textOf(incoming.url!));
	});

	async start(): Promise<void> {
		this.#server.listen(UPSTREAM_PORT, OWN_ADDRESS);
		await once(this.#server, 'listening');
	}

	textOf(page: string): string {
		return `${page} version ${this.#versions.get(page) ?? 1};`;
	}

	change(page: string): void {
		this.#versions.set(page, (this.#versions.get(page) ?? 1) + 1);
	}

	close(): void {
		this.#server.close();
		this.#server.closeAllConnections();
	}
}

/** A redis-server on a machine of its own. It saves its data, so that a restart after a crash keeps it. */
export class FleetRedis {
	readonly machine: NetworkMachine;
	readonly #folder = temporaryFolder();
	#child: ChildProcess | undefined;

	private constructor(machine: NetworkMachine) {
		this.machine = machine;
	}

	static async start(): Promise<FleetRedis> {
		const redis = new FleetRedis(await NetworkMachine.create('redis', REDIS_NUMBER, ['back']));
		await redis.start();
		return redis;
	}

	async start(): Promise<void> {
		const options = ['--port', String(REDIS_PORT), '--protected-mode', 'no', '--save', '', '--appendonly', 'yes'];
		const [command, ...args] = this.machine.command('redis-server', ...options, '--dir', this.#folder);
		this.#child = spawn(command, args, { stdio: 'ignore' });
		await until('Redis answers', () =>
			this.cli('ping').then(
				answer => answer.trim() === 'PONG',
				() => false,
			),
		);
	}

	/** Kills the process, as a crash would. */
	async kill(): Promise<void> {
		const child = this.#child!;
		child.kill('SIGKILL');
		if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
	}

	deleteData(): void {
		rmSync(path.join(this.#folder, 'appendonlydir'), { recursive: true });
	}

	/** Suspends or continues the execution of the process. Its connections stay open. */
	signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
		this.#child!.kill(signal);
	}

	cli(...args: readonly string[]): Promise<string> {
		return run(...this.machine.command('redis-cli', '-p', String(REDIS_PORT), ...args));
	}
}

/** A machine in the test's networks, on which one server runs. */
export class FleetMachine {
	readonly network: NetworkMachine;
	readonly #folder = temporaryFolder();
	readonly #redisAddress: string | undefined;
	server: ServerProcess | undefined;
	/** The machine's ID in the cluster. */
	id = '';

	constructor(network: NetworkMachine, redisAddress: string | undefined) {
		this.network = network;
		this.#redisAddress = redisAddress;
	}

	/** The address at which the machine serves, on port 80. */
	get address(): string {
		return this.network.addressIn('front');
	}

	async start(): Promise<void> {
		const file = path.join(this.#folder, 'Configfile');
		writeFileSync(file, this.#configuration('first'));
		const [command, ...args] = this.network.command(SVC, 'run', file);
		const env = { ...SECRET, NO_COLOR: '1', XDG_STATE_HOME: this.#folder, XDG_DATA_HOME: this.#folder };
		this.server = startServer(args, { command, env });
		await this.#untilItServes();
		if (this.#redisAddress === undefined) return;
		await until(`${this.network.name} has joined`, async () => (await this.cluster()).connected);
		this.id = (await this.cluster()).self;
	}

	/** Waits longer than `until` does, because on a busy machine it takes long to start four servers at once. */
	async #untilItServes(): Promise<void> {
		const { child, output } = this.server!;
		const end = performance.now() + START_LIMIT_MS;
		while (!/"serving"|\tserving/.test(output())) {
			if (child.exitCode !== null || performance.now() > end)
				throw new Error(`${this.network.name} does not serve:\n${output()}`);
			await once(child.stderr!, 'data');
		}
	}

	/** Loads a configuration that answers requests for `/plain` with `text`, and is otherwise unchanged. */
	async reload(text: string): Promise<void> {
		const { status, body } = await this.#ask('POST', '/load', this.#configuration(text), 'text/configfile');
		if (status !== 200) throw new Error(`the reload failed: ${status} ${body}`);
	}

	async purge(page: string): Promise<PurgeAnswer> {
		const selection = JSON.stringify({ host: 'shop.test', path: page });
		const { status, body } = await this.#ask('POST', '/cache/purge', selection, 'application/json');
		return { ...JSON.parse(body), status };
	}

	async cluster(): Promise<{ connected: boolean; self: string; members?: readonly { id: string }[] }> {
		return JSON.parse((await this.#ask('GET', '/cluster')).body);
	}

	/** Returns the sum of the samples whose names begin with `name`. */
	async metric(name: string): Promise<number> {
		let sum = 0;
		for (const line of (await this.#ask('GET', '/metrics')).body.split('\n'))
			if (line.startsWith(name)) sum += Number(line.split(' ').at(-1));
		return sum;
	}

	/** Requests a path over HTTP. Resolves to the body of the response. */
	get(target: string): Promise<string> {
		return new Promise((resolve, reject) => {
			get({ host: this.address, path: target, headers: { host: 'shop.test' }, agent: false }, async response => {
				resolve((await response.setEncoding('utf8').toArray()).join(''));
			}).on('error', reject);
		});
	}

	async #ask(method: string, target: string, body = '', type = ''): Promise<{ status: number; body: string }> {
		return new Promise((resolve, reject) => {
			const headers = { host: 'localhost', ...(type && { 'content-type': type }) };
			const socketPath = path.join(this.#folder, 'admin');
			request({ socketPath, method, path: target, headers, agent: false }, async response => {
				const text = (await response.setEncoding('utf8').toArray()).join('');
				resolve({ status: response.statusCode!, body: text });
			})
				.on('error', reject)
				.end(body);
		});
	}

	#configuration(text: string): string {
		const redis = this.#redisAddress;
		const cluster = redis === undefined ? '' : `cluster redis://${redis} {\n\t\tkey {$CLUSTER_KEY}\n\t}`;
		const zones = POLICIES.map(policy => {
			const { perSecond, burst, batch, waitMs } = LIMIT;
			const shared =
				redis === undefined
					? ''
					: `shared {\n\t\t\tbatch ${batch}\n\t\t\twait ${waitMs}ms\n\t\t\ton_error ${policy}\n\t\t}`;
			return `rate_limit /limited/${policy} ${policy} ${perSecond} per 1s {\n\t\tburst ${burst}\n\t\t${shared}\n\t}`;
		});
		return `{
	admin unix/${this.#folder}/admin
	threads 1
	metrics
	cache
	${cluster}
}
http://:80 {
	respond /plain "${text}"
	${zones.join('\n\t')}
	respond /limited/* "admitted"
	cache
	reverse_proxy ${OWN_ADDRESS}:${UPSTREAM_PORT}
}
`;
	}
}

export class Fleet {
	readonly redis: FleetRedis;
	/** The machines of the cluster. */
	readonly machines: readonly FleetMachine[];
	/** The machine without Redis, with which the others are compared. */
	readonly control: FleetMachine;
	readonly application: Application = new Application();
	readonly #visitor = fork(path.join(import.meta.dirname, 'visitor.ts'));
	#relay: ChildProcess | undefined;

	private constructor(redis: FleetRedis, machines: readonly FleetMachine[], control: FleetMachine) {
		this.redis = redis;
		this.machines = machines;
		this.control = control;
	}

	/**
	 * Starts a fleet. Once every machine has stored every page, the visitor begins to send requests.
	 * @param isRelayed True if the machines reach Redis through a relay, which can delay the bytes.
	 */
	static async start(isRelayed: boolean): Promise<Fleet> {
		const redis = await FleetRedis.start();
		const port = isRelayed ? RELAY_PORT : REDIS_PORT;
		const redisAddress = `${redis.machine.addressIn('back')}:${port}`;
		const machines = await Promise.all(
			[1, 2, 3].map(async number => {
				const network = await NetworkMachine.create(`machine${number}`, number, ['front', 'back']);
				return new FleetMachine(network, redisAddress);
			}),
		);
		const control = new FleetMachine(await NetworkMachine.create('control', 4, ['front']), undefined);
		const fleet = new Fleet(redis, machines, control);
		await fleet.#start(isRelayed);
		return fleet;
	}

	async #start(isRelayed: boolean): Promise<void> {
		if (isRelayed) await this.#startRelay();
		await this.application.start();
		const all = [...this.machines, this.control];
		await Promise.all(all.map(machine => machine.start()));
		await this.#untilAllAreMembers();
		for (const page of pages()) await Promise.all(all.map(machine => machine.get(page)));
		const plan: VisitorPlan = { machines: all.map(({ address }) => address), rates: RATES, pageCount: PAGE_COUNT };
		this.#visitor.send(plan);
	}

	/** Delays the bytes between the machines and Redis in both directions. */
	delayRedis(milliseconds: number): void {
		this.#relay!.send(milliseconds);
	}

	/** Returns the requests that have ended since the previous call. */
	async takeSamples(): Promise<Sample[]> {
		this.#visitor.send('take');
		const [samples] = await once(this.#visitor, 'message');
		return samples;
	}

	/** Waits until every machine of the cluster is connected and knows all others. */
	async #untilAllAreMembers(): Promise<void> {
		await until('all are members', async () => {
			const reports = await Promise.all(this.machines.map(machine => machine.cluster()));
			return reports.every(({ connected, members }) => connected && members?.length === this.machines.length);
		});
	}

	async close(): Promise<void> {
		this.#visitor.kill('SIGKILL');
		this.redis.signal('SIGCONT');
		const all = [...this.machines, this.control];
		await Promise.all(all.map(({ server }) => server?.stop()));
		await this.redis.kill();
		this.#relay?.kill('SIGKILL');
		this.application.close();
		for (const machine of [...all.map(({ network }) => network), this.redis.machine]) await machine.close();
	}

	async #startRelay(): Promise<void> {
		const args = [String(RELAY_PORT), '127.0.0.1', String(REDIS_PORT)];
		const relay = path.join(import.meta.dirname, 'relay.ts');
		const [command, ...commandArgs] = this.redis.machine.command(process.execPath, relay, ...args);
		this.#relay = spawn(command, commandArgs, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
		await once(this.#relay, 'message');
	}
}

/** Returns the paths of all pages. */
export function pages(): string[] {
	return Array.from({ length: PAGE_COUNT }, (_, index) => `/pages/${index}`);
}
