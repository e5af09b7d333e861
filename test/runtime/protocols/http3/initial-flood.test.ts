/**
 * A flood of first packets from clients that never continue. Other clients are served meanwhile, the addresses of the flood
 * are not charged for it, and memory is bounded.
 */
import { createSocket } from 'node:dgram';
import { Worker } from 'node:worker_threads';
import * as assert from 'uvu/assert';
import { until } from '../../../harness.ts';
import {
	type FrameServer,
	type FrameServerOptions,
	headers,
	openControlStream,
	pollerReady,
	response,
	serve,
} from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, QuicClient } from './quic-client.ts';

const test = http3Suite('a flood of first packets');
const open: { close(): void }[] = [];

test.after.each(() => {
	for (const one of open.splice(0).reverse()) one.close();
});

async function start(terms: FrameServerOptions): Promise<FrameServer> {
	const server = await serve(x => {
		x.response.body = 'served';
	}, terms);
	open.push({ close: () => server.stop() });
	return server;
}

/** Records the first datagram of each of `count` clients: a valid Initial packet that a server answers. */
async function firstPackets(count: number): Promise<Buffer[]> {
	await pollerReady();
	const socket = createSocket('udp4');
	await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve));
	const found: Buffer[] = [];
	const seen = new Set<string>();
	socket.on('message', bytes => {
		// Keeps one packet per client, identified by its 8-byte connection ID after the version and the length.
		const id = bytes.toString('latin1', 6, 14);
		if (bytes.length < 1200 || seen.has(id)) return;
		seen.add(id);
		found.push(bytes);
	});
	for (let made = 0; made < count; made += 20) {
		const clients = Array.from({ length: 20 }, () => new QuicClient(socket.address().port));
		await until('first packets', () => found.length >= made + 20);
		for (const client of clients) client.destroy();
	}
	socket.close();
	return found;
}

/** Sends each packet once from the given address. */
async function send(packets: readonly Buffer[], port: number, from: string): Promise<void> {
	const socket = createSocket('udp4');
	await new Promise<void>(resolve => socket.bind(0, from, resolve));
	for (const packet of packets) await new Promise(resolve => socket.send(packet, port, '127.0.0.1', resolve));
	socket.close();
}

const FLOOD = `
const { createSocket } = require('node:dgram');
const { parentPort, workerData } = require('node:worker_threads');
const { packets, port } = workerData;
const sockets = Array.from({ length: 200 }, (_, i) => {
	const socket = createSocket('udp4');
	socket.bind(0, '127.0.1.' + (i + 1));
	return socket;
});
let sent = 0;
let running = true;
parentPort.once('message', () => { running = false; });
const turn = () => {
	for (let i = 0; i < 200; i++, sent++) {
		sockets[(sent * 7) % sockets.length].send(packets[sent % packets.length], port, '127.0.0.1', () => {});
	}
	if (running) setImmediate(turn);
	else {
		parentPort.postMessage(sent);
		for (const socket of sockets) socket.close();
	}
};
setTimeout(turn, 50);
`;

test('requests of others succeed meanwhile, and new connections after it', async () => {
	let admitted = 0;
	const server = await start({
		quicLimits: { maxHandshakes: 128, retryAbove: 32 },
		admit: () => {
			admitted++;
			return () => {};
		},
	});
	const packets = await firstPackets(300);
	const client = await connect(server.port);
	open.push(client);
	openControlStream(client);
	const ask = async (one: QuicClient): Promise<number> => {
		const from = performance.now();
		const stream = one.open().write(headers(), true);
		assert.is((await response(one, stream)).body, 'served');
		stream.stop();
		return performance.now() - from;
	};
	await ask(client);
	const before = process.memoryUsage().rss;
	const flood = new Worker(FLOOD, { eval: true, workerData: { packets, port: server.port } });
	const took: number[] = [];
	await until('the flood', () => server.turnedAway.includes('evicted'));
	const end = performance.now() + 1000;
	while (performance.now() < end || took.length < 50) {
		took.push(await ask(client));
	}
	const sent = await new Promise<number>(resolve => {
		flood.once('message', resolve);
		flood.postMessage('stop');
	});
	await flood.terminate();
	const grown = process.memoryUsage().rss - before;
	took.sort((a, b) => a - b);
	const p99 = took[Math.floor(took.length * 0.99)]!;
	const evicted = server.turnedAway.filter(reason => reason === 'evicted').length;
	if (process.env.FIGURES) console.log({ sent, asked: took.length, p99, grown, admitted, evicted });
	assert.ok(p99 < 5000, `p99 of ${took.length} requests: ${p99} ms`);
	assert.ok(grown < 250_000_000, `${grown} bytes more`);
	assert.ok(server.endpoint.connections <= 128 + 1, `${server.endpoint.connections} handshakes`);
	// The addresses of the flood are not charged for it.
	assert.is(admitted, 1);
	const fresh = await connect(server.port);
	open.push(fresh);
	openControlStream(fresh);
	await ask(fresh);
});

test('who uses the address of another does not shut it out', async () => {
	const server = await start({ quicLimits: { maxHandshakesPerClient: 8, retryAbove: 1000 } });
	await send(await firstPackets(40), server.port, '127.0.0.1');
	await until('handshakes', () => server.turnedAway.filter(reason => reason === 'evicted').length === 32);
	assert.is(server.endpoint.connections, 8);
	const client = await connect(server.port);
	open.push(client);
	openControlStream(client);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'served');
});

test('the oldest gives way at once, and none whose address is proven', async () => {
	const server = await start({ quicLimits: { maxHandshakes: 4, retryAbove: 1000 }, choose: () => 'wait' });
	// A client proves its address by answering. These get nothing to answer while the server waits for a certificate.
	await send(await firstPackets(20), server.port, '127.0.0.9');
	await until('handshakes', () => server.turnedAway.filter(reason => reason === 'evicted').length === 16);
	assert.is(server.endpoint.connections, 4);
});

test('a client that has to prove its address does so, and is served', async () => {
	let admitted = 0;
	const admit = () => {
		admitted++;
		return () => {};
	};
	const server = await start({ quicLimits: { retryAbove: 0 }, admit });
	await send(await firstPackets(20), server.port, '127.0.0.9');
	await until('handshakes', () => server.endpoint.connections === 20);
	assert.is(admitted, 0);
	const client = await connect(server.port);
	open.push(client);
	openControlStream(client);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'served');
	assert.is(admitted, 1);
});

test('handshakes that begin under pressure have a rate', async () => {
	const server = await start({ quicLimits: { retryAbove: 0, maxHandshakeRate: 10 } });
	await send(await firstPackets(40), server.port, '127.0.0.9');
	await until('refusals', () => server.turnedAway.includes('too_many_handshakes'));
	const client = await connect(server.port);
	client.close();
});

test('a refused handshake says why after a Retry, too', async () => {
	const server = await start({ quicLimits: { retryAbove: 0 }, choose: () => ({ alert: 112 }) });
	for (const groups of ['X25519', undefined]) {
		const client = new QuicClient(server.port, groups === undefined ? {} : { groups });
		open.push(client);
		assert.equal(await client.end(), { code: 0x100 + 112, transport: true, byServer: true });
	}
});

test.run();
