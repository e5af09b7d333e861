/** Machines of a cluster that cache the responses of one application, for tests with a real redis-server. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { RedisServer } from './redis-server.ts';

const secrets = { CLUSTER_KEY: randomBytes(32).toString('base64') };

/** An upstream whose responses can be cached. Each response names the version of the content. */
export class Application {
	version = 1;
	/** Number of requests so far. */
	requestCount = 0;
	/** Answers a request; the default is a page that is fresh for an hour and has the tag `news`. */
	answer: (message: IncomingMessage, response: ServerResponse) => void = (_, response) => this.sendPage(response);
	readonly #server = createServer((message, response) => {
		this.requestCount++;
		this.answer(message, response);
	});

	sendPage(response: ServerResponse, version: number = this.version): void {
		response.setHeader('Cache-Control', 'max-age=3600').setHeader('Cache-Tag', 'news').end(`version ${version}`);
	}

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

export interface PurgeAnswer {
	readonly purged?: number;
	readonly machines?: { readonly confirmed: readonly string[]; readonly unconfirmed: readonly string[] };
	readonly error?: { readonly code: string; readonly message: string };
}

export interface ClusterReply {
	readonly connected: boolean;
	readonly self: string;
	readonly members?: readonly { readonly id: string; readonly pid: number; readonly generation: number }[];
}

/** A response as a client sees it. */
export interface PageReply {
	readonly status: number;
	readonly body: string;
	readonly cacheStatus: string;
	/** When the request was sent, by `performance.now()`. */
	readonly sentAt: number;
	/** Milliseconds from the request to the end of the response. */
	readonly ms: number;
}

/** What a test writes into the configuration of its machines. */
export interface CacheLines {
	/** The block of the global option `cache`, with `FOLDER` in place of the machine's folder. */
	readonly store?: string;
	/** The block of the site's directive `cache`. */
	readonly site?: string;
	/** Maximum time that a request waits for Redis. */
	readonly timeout?: string;
}

export class Machine {
	readonly folder: string = temporaryFolder();
	readonly port: number;
	readonly #admin: number;
	server: ServerProcess | undefined;

	constructor(
		[port, admin]: readonly [number, number],
		redis: string,
		upstream: number,
		{ store = '', site = '', timeout = '200ms' }: CacheLines,
	) {
		this.port = port;
		this.#admin = admin;
		writeFileSync(
			path.join(this.folder, 'Configfile'),
			`{
	admin 127.0.0.1:${this.#admin}
	threads 2
	default_bind 127.0.0.1
	http_port ${this.port}
	metrics
	cluster redis://${redis} {
		key {$CLUSTER_KEY}
		timeout ${timeout}
	}
	cache {
		${store.replaceAll('FOLDER', this.folder)}
	}
}
http://shop.test {
	log {
		output file ${this.folder}/access.log
	}
	cache {
		${site}
	}
	reverse_proxy 127.0.0.1:${upstream}
}
`,
		);
	}

	async start(): Promise<void> {
		const env = { ...secrets, XDG_STATE_HOME: this.folder, XDG_DATA_HOME: this.folder };
		this.server = await serve([path.join(this.folder, 'Configfile')], this.port, { env });
	}

	/** Requests a page at a host name that all machines share. Returns the version in the response. */
	async get(): Promise<string> {
		const text = await rawExchange(this.port, 'GET /page HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n');
		return /version \d+/.exec(text)?.[0] ?? text;
	}

	/** Sends a request to the host name that all machines share. */
	async ask(target: string, headers: { [name: string]: string } = {}, method: string = 'GET'): Promise<PageReply> {
		const sentAt = performance.now();
		const message = request({
			...{ host: '127.0.0.1', port: this.port, path: target, method, agent: false },
			headers: { Host: 'shop.test', ...headers },
		}).end();
		const [response] = (await once(message, 'response')) as [IncomingMessage];
		const chunks: Buffer[] = [];
		for await (const chunk of response) chunks.push(chunk as Buffer);
		return {
			status: response.statusCode!,
			body: Buffer.concat(chunks).toString('latin1'),
			cacheStatus: String(response.headers['cache-status'] ?? ''),
			sentAt,
			ms: performance.now() - sentAt,
		};
	}

	async purge(selection: object): Promise<{ status: number; body: PurgeAnswer }> {
		const response = await this.#askAdmin('/cache/purge', selection);
		return { status: response.status, body: (await response.json()) as PurgeAnswer };
	}

	async cluster(): Promise<ClusterReply> {
		return (await (await this.#askAdmin('/cluster')).json()) as ClusterReply;
	}

	/** Returns the value of a metric of this machine; NaN if the machine does not report the metric. */
	async metric(name: string): Promise<number> {
		const text = await (await this.#askAdmin('/metrics')).text();
		const line = text.split('\n').find(one => one.startsWith(`${name} `));
		return line === undefined ? Number.NaN : Number(line.slice(name.length + 1));
	}

	#askAdmin(target: string, body?: object): Promise<Response> {
		const init = body && {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body: JSON.stringify(body),
		};
		return fetch(`http://127.0.0.1:${this.#admin}${target}`, init);
	}
}

/** Runs `count` machines with one Redis and one application. */
export async function withMachines(
	count: number,
	test: (machines: readonly Machine[], redis: RedisServer, application: Application) => Promise<void>,
	lines: CacheLines = {},
): Promise<void> {
	const redis = await RedisServer.start();
	const application = new Application();
	const upstream = await application.start();
	const ports = await freePorts(2 * count);
	const machines = Array.from(
		{ length: count },
		(_, i) => new Machine([ports[2 * i]!, ports[2 * i + 1]!], redis.address, upstream, lines),
	);
	try {
		// One after the other, because many starts at once would take too long on a small machine.
		for (const machine of machines) await machine.start();
		await untilJoined(machines);
		await test(machines, redis, application);
	} finally {
		await Promise.all(machines.map(({ server }) => server?.stop()));
		await redis.kill();
		application.close();
	}
}

/** Waits until the running machines have joined the cluster. */
export async function untilJoined(machines: readonly Machine[]): Promise<void> {
	await until('all are members', async () => {
		const replies = await Promise.all(machines.map(machine => machine.cluster()));
		return replies.every(({ members }) => members?.length === machines.length);
	});
}
