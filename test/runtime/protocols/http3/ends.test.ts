/**
 * How connections end: everything that was sent arrives, even over lossy paths, and the failure of one connection affects no
 * other.
 */
import * as assert from 'uvu/assert';
import { H3_ERROR } from '../../../../runtime/protocols/http3/http3-codes.ts';
import type { QuicConnection } from '../../../../runtime/sockets/quic/quic-connection.ts';
import { until, waitForClock } from '../../../harness.ts';
import { type FrameServer, headers, openControlStream, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, type QuicClient } from './quic-client.ts';
import { type UdpRelay, udpRelay } from './udp-relay.ts';

const test = http3Suite('the end of HTTP/3 connections');
const openResources: { close(): void }[] = [];

async function start(handler: Parameters<typeof serve>[0]): Promise<FrameServer> {
	const server = await serve(handler);
	openResources.push({ close: () => server.stop() });
	return server;
}

async function relay(...terms: Parameters<typeof udpRelay>): Promise<UdpRelay> {
	const one = await udpRelay(...terms);
	openResources.push(one);
	return one;
}

async function client(port: number): Promise<QuicClient> {
	const one = await connect(port);
	openResources.push(one);
	openControlStream(one);
	return one;
}

test.after.each(() => {
	for (const one of openResources.splice(0).reverse()) one.close();
});

test('what is lost at the end is sent again before the connection is closed', async () => {
	const body = 'x'.repeat(12_000);
	const server = await start(x => {
		x.response.body = body;
	});
	let cut = false;
	let lostCount = 0;
	const path = await relay(server.port, {
		delay: 5,
		// While `cut` is true, the path loses all datagrams to the client.
		loses: toClient => cut && toClient && ++lostCount > 0,
	});
	const remoteClient = await client(path.port);
	assert.is((await response(remoteClient, remoteClient.open().write(headers(), true))).body, body);
	cut = true;
	const stream = remoteClient.open().write(headers(), true);
	await until('the exchange', () => server.finished.length === 2);
	server.protocol.drain();
	// Waits until the second GOAWAY has been sent, after which the connection may be closed.
	const startedAt = performance.now();
	await until('the time of the end, and repeats', () => performance.now() - startedAt > 1300 && lostCount > 10);
	assert.is(server.protocol.connections, 1, 'it was given up though nothing had arrived');
	cut = false;
	assert.is((await response(remoteClient, stream)).body, body);
	assert.equal(await remoteClient.end(), { code: H3_ERROR.none, transport: false, byServer: true });
	await until('the end', () => server.protocol.connections === 0);
});

test('a slow path that loses some datagrams delays a graceful end, and loses nothing', async () => {
	const body = 'y'.repeat(15_000);
	const server = await start(x => {
		x.response.body = body;
	});
	let count = 0;
	const path = await relay(server.port, { delay: 20, loses: () => ++count % 13 === 0 });
	const far = await client(path.port);
	const streams = Array.from({ length: 4 }, () => far.open().write(headers(), true));
	await until('the requests', () => server.exchanges.length === 4);
	server.protocol.drain();
	for (const stream of streams) assert.is((await response(far, stream)).body.length, body.length);
	assert.is((await far.end()).code, H3_ERROR.none);
	await until('the end', () => server.protocol.connections === 0);
});

test('with nothing on its way, a connection ends right after its last GOAWAY', async () => {
	const server = await start(x => {
		x.response.body = 'short';
	});
	const near = await client(server.port);
	await response(near, near.open().write(headers(), true));
	const startedAt = performance.now();
	server.protocol.drain();
	assert.is((await near.end()).code, H3_ERROR.none);
	const elapsedMs = performance.now() - startedAt;
	// One second passes between the two GOAWAY frames. If the server waited in vain for its data to be acknowledged, three or ten
	// seconds more would pass.
	assert.ok(elapsedMs < 3900, `${elapsedMs} ms`);
});

test('a client learns that a connection is closed that has been idle for a while', async () => {
	const server = await start(x => {
		x.response.body = 'short';
	});
	const idle = await client(server.port);
	await response(idle, idle.open().write(headers(), true));
	// Longer than three times the probe timeout, for which OpenSSL remembers that it is closing a connection.
	await waitForClock(1000);
	const [connection] = [...server.protocol.closable()];
	connection!.giveWay();
	assert.equal(await idle.end(), { code: H3_ERROR.none, transport: false, byServer: true });
});

test('a client that is gone does not hold up the end for long', async () => {
	const server = await start(x => {
		x.response.body = 'z'.repeat(100_000);
	});
	const gone = await client(server.port);
	gone.open().write(headers(), true);
	await until('the request', () => server.exchanges.length === 1);
	gone.destroy();
	server.protocol.drain();
	await until('the end', () => server.protocol.connections === 0);
	assert.is(server.endpoint.connectionCount, 0);
});

test('what one connection throws ends that connection only', async () => {
	const server = await start(x => {
		x.response.body = 'fine';
	});
	const clients = [];
	for (let i = 0; i < 6; i++) clients.push(await client(server.port));
	for (const one of clients) await response(one, one.open().write(headers(), true));
	// From here on, the protocol of the second connection throws when the events of all connections are handled.
	const connections = server.protocol.closable() as Iterable<unknown>;
	const [, bad] = [...connections] as QuicConnection[];
	Object.assign(bad as object, {
		onStreamOpened: () => {
			throw new Error('a defect');
		},
	});
	const streams = clients.map(one => one.open().write(headers(), true));
	const answers = await Promise.all(
		clients.map((one, i) => (i === 1 ? undefined : response(one, streams[i]!).then(({ body }) => body))),
	);
	assert.equal(answers, ['fine', undefined, 'fine', 'fine', 'fine', 'fine']);
	assert.is(server.failures.length, 1);
	assert.match(String(server.failures[0]), /a defect/);
	assert.ok(server.refusals.includes('internal_error'));
	assert.is(server.endpoint.connectionCount, 5);
});

test('the end of a connection within a choice of its certificate frees nothing under OpenSSL', async () => {
	const server = await serve(() => {}, {
		choose: () => {
			server.endpoint.drain();
			return { alert: 80 };
		},
	});
	openResources.push({ close: () => server.stop() });
	const { QuicClient: Client } = await import('./quic-client.ts');
	const one = new Client(server.port);
	openResources.push(one);
	await until('the refusal', () => server.refusals.length + server.handshakes.length > 0);
	assert.is(server.endpoint.connectionCount, 0);
});

test.run();
