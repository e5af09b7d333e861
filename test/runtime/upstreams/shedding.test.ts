/** `shed` in a server with two threads: an overloaded upstream, what counts towards its limit, and what is reported. */
import {
	Agent,
	createServer,
	request as httpRequest,
	type IncomingMessage,
	type Server,
	type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAdmin } from '../../../admin/server.ts';
import type { Document } from '../../../compiler/document/document.ts';
import { waitForClock } from '../../harness.ts';
import { eventually, type TestServer, withServer } from '../running-server.ts';

const test = suite('load shedding');

const WORKERS = 8;
const SERVICE_MS = 40;
const CAPACITY_PER_SECOND = (WORKERS * 1000) / SERVICE_MS;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Runs an upstream on a free port until `use` has ended. */
async function withUpstream(answer: Answer, use: (address: string) => Promise<void>): Promise<void> {
	const server: Server = createServer(answer);
	server.on('upgrade', (_request, socket) => {
		socket.on('error', () => {});
		socket.on('end', () => socket.end());
		socket.resume();
		socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	try {
		await use(`127.0.0.1:${(server.address() as AddressInfo).port}`);
	} finally {
		server.closeAllConnections();
		server.close();
	}
}

/**
 * Returns an upstream that answers with a fixed number of workers, each of which needs {@link SERVICE_MS} for a request. Calls
 * `onQueued` with the number of requests that wait for a worker.
 */
function fixedCapacity(onQueued: (count: number) => void): Answer {
	const queue: ServerResponse[] = [];
	let busyCount = 0;
	const work = (): void => {
		while (busyCount < WORKERS && queue.length > 0) {
			const response = queue.shift()!;
			busyCount++;
			setTimeout(() => {
				busyCount--;
				response.end('done');
				work();
			}, SERVICE_MS);
		}
	};
	return (_request, response) => {
		queue.push(response);
		work();
		onQueued(queue.length);
	};
}

function proxying(to: readonly string[], pool: object): Document {
	return {
		settings: { metrics: {}, grace_period: 0 },
		upstreams: { app: { to, ...pool } },
		sites: [{ addresses: ['http://:0'], bind: ['127.0.0.1'], pipeline: [{ handler: 'proxy', pool: 'app' }] }],
	} as unknown as Document;
}

interface Sample {
	readonly status: number;
	readonly milliseconds: number;
}

/** Sends requests at a fixed rate, whether or not earlier ones have been answered. Resolves when all have been answered. */
async function sendAtRate(port: number, agent: Agent, perSecond: number, seconds: number): Promise<Sample[]> {
	const pending: Promise<Sample>[] = [];
	const startedAt = performance.now();
	while (pending.length < perSecond * seconds) {
		const dueCount = Math.min(perSecond * seconds, ((performance.now() - startedAt) / 1000) * perSecond);
		while (pending.length < dueCount) pending.push(timedRequest(port, agent));
		await waitForClock(5);
	}
	return Promise.all(pending);
}

function timedRequest(port: number, agent: Agent): Promise<Sample> {
	const sentAt = performance.now();
	return new Promise((resolve, reject) => {
		const request = httpRequest({ host: '127.0.0.1', port, agent }, response => {
			const milliseconds = performance.now() - sentAt;
			response.resume().on('end', () => resolve({ status: response.statusCode!, milliseconds }));
		});
		request.on('error', reject).end();
	});
}

function p99Ms(samples: readonly Sample[]): number {
	const sorted = samples.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length * 0.99)]!;
}

async function upstreamEntries({ runtime }: TestServer): Promise<{ readonly [name: string]: unknown }[]> {
	const deps = { settings: { listen: '127.0.0.1:0' }, log: () => {}, onStop: () => {} };
	const admin = await startAdmin(runtime, deps);
	try {
		return (await (await fetch(`http://${admin.address}/reverse_proxy/upstreams`)).json()) as {
			[name: string]: unknown;
		}[];
	} finally {
		await admin.close();
	}
}

async function metric({ runtime }: TestServer, name: string): Promise<number | undefined> {
	const text = await runtime.metrics();
	const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
	return value === undefined ? undefined : Number(value);
}

/** Opens a connection, writes a text, and returns a function that returns what has arrived. */
function rawClient(port: number, text: string): { readonly socket: Socket; readonly received: () => string } {
	let received = '';
	const socket = connect(port, '127.0.0.1', () => socket.write(text));
	socket.setEncoding('latin1');
	socket.on('data', piece => {
		received += piece;
	});
	socket.on('error', () => {});
	return { socket, received: () => received };
}

const messagesOf = ({ log }: TestServer): unknown[] =>
	log.entries.filter(({ logger }) => logger === 'http.reverse_proxy.shed').map(({ msg }) => msg);

test('at three times the capacity, answered requests are nearly as fast as without load, and others are refused', async () => {
	const agent = new Agent({ keepAlive: true });
	try {
		let unprotected: Sample[] = [];
		let longestQueue = 0;
		const onQueued = (count: number): void => {
			longestQueue = Math.max(longestQueue, count);
		};
		await withUpstream(fixedCapacity(onQueued), async address => {
			await withServer(proxying([address], {}), {}, async ({ port }) => {
				unprotected = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
			});
		});
		const unprotectedQueue = longestQueue;
		await withUpstream(fixedCapacity(onQueued), async address => {
			await withServer(proxying([address], { shed: {} }), {}, async server => {
				const { port } = server;
				const quiet = await sendAtRate(port, agent, CAPACITY_PER_SECOND / 4, 1);
				const beginning = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
				longestQueue = 0;
				const overloaded = await sendAtRate(port, agent, CAPACITY_PER_SECOND * 3, 2);
				const answered = overloaded.filter(({ status }) => status === 200);
				const refused = overloaded.filter(({ status }) => status === 503);
				const facts = {
					quietMs: p99Ms(quiet),
					unprotectedMs: p99Ms(unprotected),
					answeredMs: p99Ms(answered),
					refusedMs: p99Ms(refused),
					answered: answered.length,
					refused: refused.length,
					unprotectedQueue,
					queue: longestQueue,
				};
				const text = JSON.stringify(facts);
				assert.ok(quiet.every(({ status }) => status === 200));
				assert.is(answered.length + refused.length, overloaded.length, text);
				// A busy machine delays timers of the test, too, so latencies are only compared with each other.
				assert.ok(facts.queue < facts.unprotectedQueue / 5, text);
				assert.ok(facts.unprotectedMs > facts.answeredMs * 5, text);
				assert.ok(answered.length > overloaded.length / 10, text);
				const refusedCount = [...beginning, ...overloaded].filter(({ status }) => status === 503).length;
				assert.is(await metric(server, 'svc_upstream_shed_requests_total'), refusedCount);
				const [entry] = await upstreamEntries(server);
				assert.is(entry!.shedding, true);
				assert.ok((entry!.concurrency_limit as number) < 50, JSON.stringify(entry));
				// Only the change is logged, and not each of the requests.
				assert.equal(messagesOf(server), ['upstreams are overloaded: requests are refused']);
			});
		});
	} finally {
		agent.destroy();
	}
});

test('a request above the limit is answered at once, without reaching the upstream', async () => {
	const held: ServerResponse[] = [];
	await withUpstream(
		(_request, response) => void held.push(response),
		async address => {
			const pool = { shed: { min: 1, max: 2, status: 429 }, retry_duration: 60_000 };
			await withServer(proxying([address], pool), {}, async server => {
				const first = server.get();
				const second = server.get();
				await eventually('both requests arrive', () => held.length === 2);
				const refused = await server.get();
				assert.is(refused.status, 429);
				assert.is(refused.headers.get('retry-after'), '1');
				assert.is(held.length, 2);
				held[0]!.end('one');
				assert.is((await Promise.race([first, second])).body, 'one');
				const third = server.get();
				await eventually('the third request arrives', () => held.length === 3);
				for (const response of held) response.end('rest');
				assert.equal(
					(await Promise.all([first, second, third])).map(({ status }) => status),
					[200, 200, 200],
				);
				await eventually('the refusal is logged', () => messagesOf(server).length === 1);
				const entries = server.log.entries.filter(({ logger }) => logger === 'http.reverse_proxy.shed');
				assert.is(entries[0]!.level, 'warn');
				assert.is(entries[0]!.pool, 'app');
				assert.equal(entries[0]!.limits, [2]);
			});
		},
	);
});

test('the requests of one upstream at its limit go to another', async () => {
	const held: ServerResponse[] = [];
	await withUpstream(
		(_request, response) => void held.push(response),
		async slow => {
			await withUpstream(
				(_request, response) => void response.end('other'),
				async other => {
					const pool = { shed: { min: 1, max: 1 }, balance: { policy: 'first' } };
					await withServer(proxying([slow, other], pool), {}, async ({ get }) => {
						const waiting = get();
						await eventually('the first request arrives', () => held.length === 1);
						assert.is((await get()).body, 'other');
						held[0]!.end('slow');
						assert.is((await waiting).body, 'slow');
					});
				},
			);
		},
	);
});

test('WebSockets, responses after their heads, and bodies that clients still send do not count', async () => {
	const unfinished: ServerResponse[] = [];
	let uploadCount = 0;
	const answer: Answer = (request, response) => {
		if (request.method === 'POST') {
			uploadCount++;
			request.resume().on('end', () => response.end('stored'));
		} else if (request.url === '/stream') {
			response.write('begun');
			unfinished.push(response);
		} else response.end('ok');
	};
	await withUpstream(answer, async address => {
		await withServer(proxying([address], { shed: { min: 1, max: 1 } }), {}, async server => {
			const { port, get } = server;
			const socket = rawClient(
				port,
				'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
			);
			await eventually('the upgrade is answered', () => socket.received().includes('101'));
			const stream = rawClient(port, 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
			await eventually('the stream begins', () => stream.received().includes('begun'));
			const upload = rawClient(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
			await eventually('the upload arrives', () => uploadCount === 1);
			const [entry] = await upstreamEntries(server);
			assert.is(entry!.num_requests, 3);
			assert.is((await get()).body, 'ok');
			upload.socket.write('67890');
			await eventually('the upload is answered', () => upload.received().includes('stored'));
			assert.is((await get()).body, 'ok');
			for (const { socket: client } of [socket, stream, upload]) client.destroy();
		});
	});
});

test('an upload counts from its end until it is answered', async () => {
	const held: ServerResponse[] = [];
	let uploadCount = 0;
	await withUpstream(
		(request, response) => {
			uploadCount++;
			request.resume().on('end', () => held.push(response));
		},
		async address => {
			await withServer(proxying([address], { shed: { min: 1, max: 1 } }), {}, async ({ port, get }) => {
				const upload = rawClient(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
				await eventually('the upload begins', () => uploadCount === 1);
				assert.is(held.length, 0);
				upload.socket.write('67890');
				await eventually('the upload is complete', () => held.length === 1);
				assert.is((await get()).status, 503);
				held[0]!.end('stored');
				await eventually('the upload is answered', () => upload.received().includes('stored'));
				const next = get();
				await eventually('the next request arrives', () => held.length === 2);
				held[1]!.end('ok');
				assert.is((await next).status, 200);
				upload.socket.destroy();
			});
		},
	);
});

test('a request that its client or a time-out has ended no longer counts', async () => {
	let arrivedCount = 0;
	await withUpstream(
		() => {
			arrivedCount++;
		},
		async address => {
			const pool = { shed: { min: 1, max: 1 }, response_header_timeout: 100 };
			await withServer(proxying([address], pool), {}, async ({ port, get }) => {
				assert.is((await get()).status, 504);
				const client = rawClient(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
				await eventually('the second request arrives', () => arrivedCount === 2);
				client.socket.destroy();
				await eventually('another request is sent', async () => (await get()).status === 504);
			});
		},
	);
});

test.run();
