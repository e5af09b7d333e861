/**
 * `limit_concurrent` in a server with two threads. Together, the threads never exceed the limit; they keep the order of requests,
 * and free the slot of each request, however the request ends.
 */
import { randomInt } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { eventually, jsonInput, type TestServer, withServer } from '../running-server.ts';

const test = suite('concurrency-limited server');

interface HeldRequest {
	readonly path: string;
	readonly socket: Socket;
	readonly response: ServerResponse;
}

/** An upstream that holds each request until the test answers it. */
class HoldingUpstream {
	readonly held: HeldRequest[] = [];
	readonly arrived: string[] = [];
	/** The highest number of requests held at the same time. */
	maxHeld = 0;
	readonly #server: Server;

	constructor() {
		this.#server = createServer((request: IncomingMessage, response) => this.#hold(request, response));
		this.#server.on('upgrade', (request, socket) => {
			socket.on('error', () => {});
			socket.on('end', () => socket.end());
			socket.resume();
			socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
			this.arrived.push(request.url!);
		});
	}

	#hold({ url, socket }: IncomingMessage, response: ServerResponse): void {
		const one: HeldRequest = { path: url!, socket, response };
		this.held.push(one);
		this.arrived.push(url!);
		this.maxHeld = Math.max(this.maxHeld, this.held.length);
		response.on('close', () => this.#drop(one));
	}

	#drop(one: HeldRequest): void {
		const index = this.held.indexOf(one);
		if (index !== -1) this.held.splice(index, 1);
	}

	/** Answers a held request. First removes it from `held`, because the server may immediately send the next request. */
	answer(one: HeldRequest, body = 'done'): void {
		this.#drop(one);
		one.response.end(body);
	}

	async start(): Promise<string> {
		await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve));
		return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	stop(): void {
		this.#server.closeAllConnections();
		this.#server.close();
	}
}

const limited = (upstream: string, zone: object, more: object = {}): Document => ({
	settings: { metrics: {}, grace_period: 0 },
	sites: [
		{
			addresses: ['http://:0'],
			bind: ['127.0.0.1'],
			pipeline: [
				{ handler: 'limit_concurrent', zones: [{ name: 'all', key: 'static', ...zone }] },
				{ handler: 'proxy', upstreams: { to: [upstream] }, ...more },
			],
		},
	],
});

async function withUpstream(
	zone: object,
	run: (server: TestServer, upstream: HoldingUpstream, address: string) => Promise<void>,
): Promise<void> {
	const upstream = new HoldingUpstream();
	const address = await upstream.start();
	try {
		await withServer(limited(address, zone), {}, server => run(server, upstream, address));
	} finally {
		upstream.stop();
	}
}

async function metric({ runtime }: TestServer, name: string): Promise<number> {
	const line = new RegExp(`^svc_limit_concurrent_${name} (\\d+)$`, 'm').exec(await runtime.metrics());
	return line ? Number(line[1]) : 0;
}

const running = (server: TestServer): Promise<number> => metric(server, 'running{zone="all"}'.replace(/[{}]/g, '\\$&'));
const waiting = (server: TestServer): Promise<number> => metric(server, 'waiting{zone="all"}'.replace(/[{}]/g, '\\$&'));
const outcomes = (server: TestServer, outcome: string): Promise<number> =>
	metric(server, `requests_total\\{zone="all",outcome="${outcome}"\\}`);

/** Sends a request on a connection of its own. */
function sendRequest({ port }: TestServer, path: string): Socket {
	const client = connect(port, '127.0.0.1', () => client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`));
	client.on('error', () => {});
	return client;
}

test('threads admit no more than the limit together, and admit waiting requests in the order of arrival', async () => {
	await withUpstream({ requests: 3, queue: 20, timeout: 60_000 }, async (server, upstream) => {
		const answers: Promise<{ status: number }>[] = [];
		for (let i = 0; i < 15; i++) {
			answers.push(server.get(`/${i}`));
			const seen = i + 1;
			await eventually(
				'the request has arrived',
				async () => (await running(server)) + (await waiting(server)) === seen,
			);
			// Requests of two threads could overtake each other on their way to the upstream.
			await eventually('the running requests are at the upstream', () => upstream.arrived.length === Math.min(seen, 3));
		}
		assert.is(upstream.held.length, 3);
		for (let i = 0; i < 15; i++) {
			const arrived = Math.min(15, i + 3);
			await eventually('the next requests run', () => upstream.arrived.length === arrived);
			upstream.answer(upstream.held.find(({ path }) => path === `/${i}`)!);
		}
		for (const { status } of await Promise.all(answers)) assert.is(status, 200);
		assert.equal(
			upstream.arrived,
			Array.from({ length: 15 }, (_, i) => `/${i}`),
		);
		assert.is(upstream.maxHeld, 3);
		await eventually('all places are free', async () => (await running(server)) === 0);
		assert.is(await outcomes(server, 'admitted'), 3);
		assert.is(await outcomes(server, 'queued'), 12);
	});
});

test('a request beyond the queue, or one that has waited too long, is refused with Retry-After', async () => {
	await withUpstream({ requests: 1, queue: 1, timeout: 300, status: 429 }, async (server, upstream) => {
		const first = server.get('/first');
		await eventually('the first one runs', () => upstream.held.length === 1);
		const second = server.get('/second');
		await eventually('the second one waits', async () => (await waiting(server)) === 1);
		const third = await server.get('/third');
		assert.is(third.status, 429);
		assert.is(third.headers.get('Retry-After'), '1');
		assert.is((await second).status, 429);
		upstream.answer(upstream.held[0]!);
		assert.is((await first).status, 200);
		assert.equal(upstream.arrived, ['/first']);
		assert.is(await outcomes(server, 'refused'), 1);
		assert.is(await outcomes(server, 'timed_out'), 1);
		assert.is(await waiting(server), 0);
	});
});

test('a client that disconnects frees its place, and leaves the queue', async () => {
	await withUpstream({ requests: 1, queue: 5, timeout: 60_000 }, async (server, upstream) => {
		const first = sendRequest(server, '/first');
		await eventually('the first one runs', () => upstream.held.length === 1);
		const second = sendRequest(server, '/second');
		await eventually('the second one waits', async () => (await waiting(server)) === 1);
		const third = server.get('/third');
		await eventually('the third one waits', async () => (await waiting(server)) === 2);
		second.destroy();
		await eventually('the second one has left', async () => (await waiting(server)) === 1);
		first.destroy();
		await eventually('the third one runs', () => upstream.arrived.at(-1) === '/third');
		upstream.answer(upstream.held.find(({ path }) => path === '/third')!);
		assert.is((await third).status, 200);
		assert.equal(upstream.arrived, ['/first', '/third']);
		await eventually('all places are free', async () => (await running(server)) === 0);
		assert.is(await outcomes(server, 'left'), 1);
	});
});

test('an upstream that fails, a response that is cut short and a WebSocket free their places', async () => {
	await withUpstream({ requests: 1 }, async (server, upstream) => {
		const failed = server.get('/failed');
		await eventually('the request runs', () => upstream.held.length === 1);
		upstream.held[0]!.socket.destroy();
		assert.is((await failed).status, 502);
		await eventually('its place is free', async () => (await running(server)) === 0);

		const cut = sendRequest(server, '/cut');
		const whenClosed = new Promise(resolve => cut.once('close', resolve));
		// The upstream may not have noticed yet that the connection of the failed request is closed.
		await eventually('the request runs', () => upstream.held.map(one => one.path).join() === '/cut');
		const half = new Promise<void>(resolve => {
			let text = '';
			cut.on('data', data => {
				text += data.toString('latin1');
				if (text.includes('half')) resolve();
			});
		});
		upstream.held[0]!.response.write('half');
		await half;
		assert.is(await running(server), 1);
		upstream.held[0]!.socket.destroy();
		await whenClosed;
		await eventually('its place is free', async () => (await running(server)) === 0);

		const client = connect(server.port, '127.0.0.1', () =>
			client.write(
				'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
			),
		);
		await new Promise(resolve => client.once('data', resolve));
		assert.is((await server.get('/refused')).status, 503);
		client.destroy();
		await eventually('its place is free', async () => (await running(server)) === 0);
		assert.is(await metric(server, 'waiting\\{zone="all"\\}'), 0);
	});
});

test('running and waiting requests outlast reloads with other limits, and a thread that dies frees its places', async () => {
	await withUpstream({ requests: 2, queue: 50, timeout: 60_000 }, async (server, upstream, address) => {
		const early = Array.from({ length: 6 }, (_, i) => server.get(`/early${i}`).catch(() => undefined));
		await eventually('two run', async () => (await running(server)) === 2 && (await waiting(server)) === 4);
		await server.runtime.load(
			jsonInput(limited(address, { requests: 1, queue: 50, timeout: 60_000 }, { flush_interval: 1 })),
		);
		const late = Array.from({ length: 2 }, (_, i) => server.get(`/late${i}`).catch(() => undefined));
		await eventually('later ones wait with them', async () => (await waiting(server)) === 6);
		assert.is(await running(server), 2);
		await server.runtime.terminateWorker(0);
		const drained = async (): Promise<boolean> => {
			for (const one of [...upstream.held]) upstream.answer(one);
			return (await running(server)) + (await waiting(server)) === 0;
		};
		await eventually('the rest has been answered', drained);
		await Promise.all([...early, ...late]);
		assert.ok(upstream.maxHeld <= 2);
		const after = server.get('/after');
		await eventually('a new one runs', () => upstream.arrived.at(-1) === '/after');
		upstream.answer(upstream.held.at(-1)!);
		assert.is((await after).status, 200);
	});
});

test('a thousand random endings over two threads with reloads never exceed the limit and leave no place taken', async () => {
	const limit = 4;
	const zone = { requests: limit, queue: 30, timeout: 150 };
	await withUpstream(zone, async (server, upstream, address) => {
		const endings = new Map<string, number>();
		const count = (ending: string): void => void endings.set(ending, (endings.get(ending) ?? 0) + 1);
		let remaining = 1000;
		const client = async (): Promise<void> => {
			while (remaining-- > 0) {
				if (remaining % 250 === 0)
					await server.runtime.load(jsonInput(limited(address, zone, { flush_interval: 1 + (remaining % 7) })));
				const socket = sendRequest(server, `/${remaining}`);
				const whenEnded = new Promise<string>(resolve => {
					socket.once('data', data => resolve(data.toString('latin1', 9, 12)));
					socket.once('close', () => resolve('closed'));
				});
				if (randomInt(5) === 0) socket.end();
				if (randomInt(8) === 0) setTimeout(() => socket.destroy(), randomInt(40));
				count(await whenEnded);
				socket.destroy();
			}
		};
		let isOver = false;
		const answering = async (): Promise<void> => {
			while (!isOver) {
				const one = upstream.held[randomInt(Math.max(1, upstream.held.length))];
				if (one && randomInt(10) === 0) one.socket.destroy();
				else if (one) upstream.answer(one);
				await new Promise(resolve => setTimeout(resolve, randomInt(4)));
			}
		};
		const answers = answering();
		await Promise.all(Array.from({ length: 40 }, client));
		await eventually('all places are free', async () => (await running(server)) + (await waiting(server)) === 0);
		isOver = true;
		await answers;
		// A new request may arrive before the upstream notices that the client of another request has left.
		assert.ok((endings.get('200') ?? 0) > 100, JSON.stringify([...endings]));
		assert.ok((endings.get('503') ?? 0) > 0, JSON.stringify([...endings]));
		const sum = await Promise.all(
			['admitted', 'queued', 'refused', 'timed_out', 'left'].map(outcome => outcomes(server, outcome)),
		);
		assert.ok(sum.reduce((a, b) => a + b) <= 1000);
	});
});

test.run();
