/**
 * Limits of listeners in a real server: which requests are accepted, queued or rejected, and how reloads of the configuration
 * change the limits.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import type { ServerSettings } from '../../../compiler/document/server-settings.ts';
import { openWire, statusOf } from '../protocols/http1/wire.ts';
import { eventually, jsonInput, type TestServer, withServer } from '../running-server.ts';

const overload = suite('overload');

/** Starts an upstream that holds back its responses until released. */
async function startHoldingUpstream(): Promise<{
	port: number;
	held: ServerResponse[];
	release(): void;
	stop(): Promise<void>;
}> {
	const heldResponses: ServerResponse[] = [];
	const server = createServer((_request: IncomingMessage, response: ServerResponse) => {
		heldResponses.push(response);
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	return {
		port: (server.address() as AddressInfo).port,
		held: heldResponses,
		release: () => {
			for (const response of heldResponses.splice(0)) response.end('done');
		},
		stop: async () => {
			server.closeAllConnections();
			await new Promise(resolve => server.close(resolve));
		},
	};
}

function documentOf(server: ServerSettings, upstream?: number): Document {
	return {
		settings: { metrics: {}, servers: [server] },
		sites: [
			{
				addresses: ['http://:0'],
				bind: ['127.0.0.1'],
				pipeline: upstream
					? [{ handler: 'proxy', upstreams: { to: [`127.0.0.1:${upstream}`] } }]
					: [{ handler: 'respond', body: 'hi' }],
			},
		],
	};
}

async function counter(server: TestServer, name: string): Promise<number> {
	const text = await server.runtime.metrics();
	const line = text.split('\n').find(found => found.startsWith(`${name} `));
	return Number(line?.slice(name.length + 1) ?? Number.NaN);
}

function request(port: number, path = '/'): Promise<{ status: number; retryAfter: string | null; after: number }> {
	const startedAt = performance.now();
	return fetch(`http://127.0.0.1:${port}${path}`, {
		headers: { connection: 'close' },
		signal: AbortSignal.timeout(10_000),
	}).then(async response => {
		await response.text();
		return {
			status: response.status,
			retryAfter: response.headers.get('retry-after'),
			after: performance.now() - startedAt,
		};
	});
}

overload('requests over the limit wait in a queue, and are refused when it is full or the wait is over', async () => {
	const upstream = await startHoldingUpstream();
	const limits = { requests: 2, queue: 2, queue_time: 1000, retry_after: 7000 };
	await withServer(documentOf({ limits }, upstream.port), {}, async server => {
		const { port } = server;
		const running = [request(port), request(port)];
		await eventually('two requests are in progress', () => upstream.held.length === 2);
		const waiting = [request(port), request(port)];
		await eventually('two requests wait', async () => (await counter(server, 'svc_overload_queue')) === 2);
		const refused = await request(port);
		assert.is(refused.status, 503);
		assert.is(refused.retryAfter, '7');
		for (const late of await Promise.all(waiting)) {
			assert.is(late.status, 503);
			assert.is(late.retryAfter, '7');
			assert.ok(late.after >= 990 && late.after < 20_000, `${late.after} ms`);
		}
		assert.is(upstream.held.length, 2);
		upstream.release();
		for (const answer of await Promise.all(running)) assert.is(answer.status, 200);
		assert.is(await counter(server, 'svc_overload_rejected_total{limit="queue"}'), 1);
		assert.is(await counter(server, 'svc_overload_rejected_total{limit="queue_time"}'), 2);
		assert.is(await counter(server, 'svc_overload_queued_total'), 2);
		assert.is(await counter(server, 'svc_overload_queue'), 0);
	});
	await upstream.stop();
});

overload('waiting requests get slots that become free on any thread', async () => {
	const upstream = await startHoldingUpstream();
	await withServer(documentOf({ limits: { requests: 1, queue_time: 5000 } }, upstream.port), {}, async ({ port }) => {
		const releaseOneByOne = async (): Promise<void> => {
			for (let served = 0; served < 6; served++) {
				await eventually('one request is in progress', () => upstream.held.length > 0);
				assert.is(upstream.held.length, 1);
				upstream.release();
			}
		};
		const requests = Array.from({ length: 6 }, () => request(port));
		const [answers] = await Promise.all([Promise.all(requests), releaseOneByOne()]);
		for (const answer of answers) assert.is(answer.status, 200);
	});
	await upstream.stop();
});

overload('a client that disconnects frees its place in the queue', async () => {
	const upstream = await startHoldingUpstream();
	const limits = { requests: 1, queue: 1, queue_time: 20_000 };
	await withServer(documentOf({ limits }, upstream.port), {}, async server => {
		const first = request(server.port);
		await eventually('one request is in progress', () => upstream.held.length === 1);
		const gone = await openWire(server.port);
		gone.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
		await eventually('one request waits', async () => (await counter(server, 'svc_overload_queue')) === 1);
		gone.socket.destroy();
		await eventually('no request waits', async () => (await counter(server, 'svc_overload_queue')) === 0);
		const second = request(server.port);
		await eventually('one request waits again', async () => (await counter(server, 'svc_overload_queue')) === 1);
		upstream.release();
		assert.is((await first).status, 200);
		await eventually('the second request runs', () => upstream.held.length === 1);
		upstream.release();
		assert.is((await second).status, 200);
	});
	await upstream.stop();
});

overload('a single client cannot exhaust the limits shared by all', async () => {
	const upstream = await startHoldingUpstream();
	const document = documentOf({ limits: { requests_per_client: 2 } }, upstream.port);
	const settings = { ...document.settings, trusted_proxies: ['127.0.0.1'] };
	await withServer({ ...document, settings }, {}, async ({ port }) => {
		const from = (address: string) =>
			fetch(`http://127.0.0.1:${port}/`, {
				headers: { connection: 'close', 'x-forwarded-for': address },
				signal: AbortSignal.timeout(10_000),
			}).then(response => response.status);
		const mine = [from('2001:db8::1'), from('2001:db8::2')];
		await eventually('two requests are in progress', () => upstream.held.length === 2);
		assert.is(await from('2001:db8:0:0:ffff::3'), 503);
		const others = [from('2001:db8:0:1::1'), from('192.0.2.1')];
		await eventually('four requests are in progress', () => upstream.held.length === 4);
		upstream.release();
		assert.equal(await Promise.all([...mine, ...others]), [200, 200, 200, 200]);
	});
	await upstream.stop();
});

overload('connections over the limit get 503 and are closed', async () => {
	const limits = { connections: 4, connections_per_client: 3 };
	await withServer(documentOf({ limits }), {}, async server => {
		const openSockets: Socket[] = [];
		for (let i = 0; i < 3; i++) {
			const socket = connect(server.port, '127.0.0.1');
			await once(socket, 'connect');
			socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
			await once(socket, 'data');
			openSockets.push(socket);
		}
		const fourth = await openWire(server.port);
		const text = await fourth.whole();
		assert.is(statusOf(text), 503);
		assert.match(text, '\r\nRetry-After: 1\r\n');
		assert.match(text, '\r\nConnection: close\r\n');
		const counted = () => counter(server, 'svc_overload_rejected_total{limit="connections_per_client"}');
		assert.is(await counted(), 1);
		openSockets[0]!.destroy();
		await eventually('a connection is accepted again', async () => (await server.get()).status === 200);
		for (const socket of openSockets) socket.destroy();
		await eventually(
			'the closed connections are counted',
			async () => (await counter(server, 'svc_connections')) === 0,
		);
	});
});

overload('a new connection displaces an idle one, whichever threads they belong to', async () => {
	await withServer(documentOf({ limits: { connections: 1 } }), { threads: 2 }, async ({ port }) => {
		// The system assigns connections to threads at random, so some of them come to the thread that has no idle one.
		for (let number = 1; number <= 20; number++) {
			const socket = connect(port, '127.0.0.1');
			socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
			const [answer] = (await once(socket, 'data')) as [Buffer];
			assert.match(answer.toString('latin1'), /^HTTP\/1.1 200 /, `connection ${number}`);
		}
	});
});

overload('a connection over the limit is refused if the connections of other threads are in use', async () => {
	const upstream = await startHoldingUpstream();
	await withServer(documentOf({ limits: { connections: 1 } }, upstream.port), { threads: 2 }, async server => {
		const busy = connect(server.port, '127.0.0.1');
		busy.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
		await eventually('the request is running', () => upstream.held.length === 1);
		const statuses = await Promise.all(
			Array.from({ length: 12 }, async () => {
				const socket = connect(server.port, '127.0.0.1');
				const [answer] = (await once(socket, 'data')) as [Buffer];
				return answer.toString('latin1').slice(9, 12);
			}),
		);
		assert.equal(statuses, Array(12).fill('503'));
		upstream.release();
		const [answer] = (await once(busy, 'data')) as [Buffer];
		assert.match(answer.toString('latin1'), /^HTTP\/1.1 200 /);
	});
	await upstream.stop();
});

overload('a load changes the limits of a running server, also for open connections', async () => {
	const bounds = { limits: { header_count: 5 }, max_header_size: 1024, timeouts: { idle: 300_000 } };
	await withServer(documentOf(bounds), {}, async server => {
		const wire = await openWire(server.port);
		const fields = 'A: b\r\n'.repeat(20);
		wire.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
		await wire.until(text => text.endsWith('hi'));
		assert.is(statusOf(await ask(server.port, fields)), 431);
		const generous = { limits: { header_count: 50, requests: 10 }, timeouts: { idle: 200 } };
		const { port } = server;
		const document = documentOf(generous);
		const site = { ...document.sites![0]!, addresses: ['http://:0'] };
		const outcome = await server.runtime.load(jsonInput({ ...document, sites: [site] }));
		assert.is(outcome.result, 'applied', JSON.stringify(outcome));
		assert.is(statusOf(await ask(port, fields)), 200);
		wire.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
		await wire.until(text => text.split('hi').length === 3);
		const startedAt = performance.now();
		await wire.whole(30_000);
		assert.ok(performance.now() - startedAt < 20_000, "the load's idle timeout did not apply");
	});
});

async function ask(port: number, fields: string): Promise<string> {
	const wire = await openWire(port);
	wire.send(`GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n`);
	return wire.whole();
}

overload.run();
