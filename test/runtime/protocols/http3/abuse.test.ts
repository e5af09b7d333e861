/**
 * Clients that abuse QUIC: gaps in the data, floods of resets, connection IDs and challenges, handshakes that never complete,
 * responses that are never read, and random bytes. Each attack costs the server little, and other clients are served during it.
 */

import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import * as assert from 'uvu/assert';
import { until } from '../../../harness.ts';
import { firstPackets } from './first-packets.ts';
import { ForgingClient } from './forging-client.ts';
import {
	certificate,
	type FrameServer,
	type FrameServerOptions,
	headers,
	openControlStream,
	REQUEST,
	response,
	serve,
} from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { initialPacket, varintOf } from './initial-packet.ts';
import { connect, type QuicClient } from './quic-client.ts';

const test = http3Suite('abuse of QUIC');
const open: { close(): void }[] = [];

test.after.each(() => {
	for (const one of open.splice(0).reverse()) one.close();
});

async function start(terms: FrameServerOptions = {}, body: string | Buffer = 'served'): Promise<FrameServer> {
	const server = await serve(x => {
		x.response.body = body;
	}, terms);
	open.push({ close: () => server.stop() });
	return server;
}

async function opened(server: FrameServer, host = '127.0.0.1'): Promise<QuicClient> {
	const client = await connect(server.port, { host });
	open.push(client);
	openControlStream(client);
	return client;
}

async function ask(client: QuicClient): Promise<void> {
	const stream = client.open().write(headers(), true);
	assert.is((await response(client, stream)).body, 'served');
	stream.stop();
}

async function forging(server: FrameServer): Promise<ForgingClient> {
	const client = await ForgingClient.connect(server.port, async real => {
		openControlStream(real);
		await ask(real);
	});
	open.push(client);
	return client;
}

const PING = Buffer.of(1);

/** Returns a CRYPTO frame (RFC 9000 §19.6). */
function cryptoFrame(offset: number, bytes: Buffer): Buffer {
	return Buffer.concat([Buffer.of(6), varintOf(offset), varintOf(bytes.length), bytes]);
}

function createRawClient(server: FrameServer) {
	const socket = createSocket('udp4');
	open.push({ close: () => socket.close() });
	const received = { bytes: 0, datagrams: [] as Buffer[] };
	socket.on('message', bytes => {
		received.bytes += bytes.length;
		received.datagrams.push(bytes);
	});
	const send = (packet: Buffer): Promise<void> =>
		new Promise(resolve => socket.send(packet, server.port, '127.0.0.1', () => resolve()));
	return { send, received };
}

test('gaps in the ClientHello are bounded, and the handshake ends in time', async () => {
	const server = await start({ handshakeLimit: 1000 });
	const other = await opened(server);
	const before = process.memoryUsage().rss;
	for (let made = 0; made < 20; made++) {
		const { send } = createRawClient(server);
		const [destination, source] = [randomBytes(8), randomBytes(8)];
		for (let i = 0; i < 40; i++) {
			// The first byte of the ClientHello is never sent.
			const frames = cryptoFrame(1 + i * 37, randomBytes(30));
			await send(initialPacket({ destination, source, packetNumber: i, frames }));
		}
	}
	await ask(other);
	await until('the end of the handshakes', () => server.endpoint.connectionCount === 1);
	assert.ok(process.memoryUsage().rss - before < 50_000_000);
	assert.ok(server.handshakes.filter(result => result === 'timeout').length >= 10, server.handshakes.join());
	await ask(other);
});

test('CRYPTO data far beyond a ClientHello is not kept', async () => {
	const server = await start();
	const { send, received } = createRawClient(server);
	for (const offset of [70_000, 1_000_000, 2 ** 29]) {
		await send(initialPacket({ frames: cryptoFrame(offset, randomBytes(600)) }));
	}
	await until('the refusals', () => server.refusals.length + server.handshakes.length === 3);
	assert.is(server.endpoint.connectionCount, 0);
	assert.ok(received.bytes <= 3 * 3 * 1200);
	await ask(await opened(server));
});

test('a client that does not answer gets at most three times what it has sent', async () => {
	const own = await certificate;
	// The server's certificate chain is so long that its first flight alone would exceed the limit.
	const server = await start({
		handshakeLimit: 2000,
		choose: () => ({ ...own, serial: 99, chain: own.chain.repeat(30) }),
	});
	// Each of these packets contains the whole ClientHello.
	const packets = (await firstPackets(20, { groups: 'X25519' })).slice(0, 3);
	const clients = packets.map(packet => ({ packet, ...createRawClient(server) }));
	await Promise.all(clients.map(({ packet, send }) => send(packet)));
	await until('replies', () => clients.every(({ received }) => received.bytes > 2 * 1200));
	// The handshakes end after their last retransmission.
	await until('the end of the handshakes', () => server.endpoint.connectionCount === 0);
	for (const { packet, received } of clients) {
		assert.ok(received.bytes <= 3 * packet.length, `${received.bytes} bytes`);
	}
	assert.equal(server.handshakes, ['timeout', 'timeout', 'timeout']);
});

test('handshakes that never complete are forgotten', async () => {
	const server = await start({ handshakeLimit: 500, quicLimits: { retryAbove: 1000 } });
	const { send } = createRawClient(server);
	for (const packet of await firstPackets(60)) await send(packet);
	await until('handshakes', () => server.endpoint.connectionCount > 30);
	await until('their end', () => server.endpoint.connectionCount === 0);
	assert.ok(server.handshakes.filter(result => result === 'timeout').length > 30);
	await ask(await opened(server));
});

test('a flood of resets ends the connection, and no other', async () => {
	const server = await start();
	const [other, client] = [await opened(server), await opened(server)];
	for (let i = 0; i < 50_000 && client.closed === undefined; i++) {
		try {
			const stream = client.open().write(headers());
			stream.reset(0x10c);
			stream.stop();
		} catch {
			// The server has not raised its limit of streams yet, so the client waits.
			await new Promise(resolve => setTimeout(resolve, 1));
			client.look();
		}
	}
	assert.equal(client.closed, { code: 0x107, transport: false, byServer: true });
	assert.is(server.cut.length, 1);
	await ask(other);
});

test('connection IDs without end close the connection, or cost nothing', async () => {
	const server = await start();
	const other = await opened(server);
	const newId = (sequence: number, retire: number): Buffer =>
		Buffer.concat([Buffer.of(0x18), varintOf(sequence), varintOf(retire), Buffer.of(8), randomBytes(8 + 16)]);
	// The first client sends more connection IDs than are allowed. The second client replaces each of its IDs by the next one.
	for (const retires of [false, true]) {
		const client = await forging(server);
		const before = process.memoryUsage().rss;
		for (let i = 1; i <= 3000; i++) await client.send(newId(i, retires ? i : 0));
		await ask(other);
		if (!retires) await until('the end of the connection', () => server.endpoint.connectionCount === 1);
		assert.ok(process.memoryUsage().rss - before < 50_000_000);
		client.close();
		open.splice(open.indexOf(client), 1);
	}
});

test('a flood of path challenges is answered with no more bytes than it has', async () => {
	const server = await start();
	const other = await opened(server);
	const client = await forging(server);
	const frames = Buffer.concat(Array.from({ length: 100 }, () => Buffer.concat([Buffer.of(0x1a), randomBytes(8)])));
	let sent = 0;
	for (let i = 0; i < 300; i++) {
		await client.send(frames);
		sent += frames.length;
	}
	await ask(other);
	await until('replies', () => client.received.datagrams > 0);
	assert.ok(client.received.bytes <= 3 * sent, `${client.received.bytes} of ${sent}`);
	await ask(other);
});

test('frames that break a limit close their connection', async () => {
	const server = await start();
	const other = await opened(server);
	for (const frames of [
		// A frame for a stream beyond the limit of streams, and a frame with data beyond the flow-control window.
		Buffer.concat([Buffer.of(0x08), varintOf(4 * 5000), PING]),
		Buffer.concat([Buffer.of(0x0c), varintOf(0), varintOf(100_000_000), PING]),
		// MAX_STREAMS beyond 2^60, and an unknown frame.
		Buffer.concat([Buffer.of(0x12), Buffer.alloc(8, 0xff)]),
		Buffer.of(0x3f),
	]) {
		const client = await forging(server);
		assert.is(server.endpoint.connectionCount, 2);
		await client.send(frames);
		await until('the end of the connection', () => server.endpoint.connectionCount === 1);
		client.close();
		open.splice(open.indexOf(client), 1);
	}
	await ask(other);
	assert.equal(server.failures, []);
});

test('noise with the ID of a connection is discarded, and the connection goes on', async () => {
	const server = await start();
	const forged = await forging(server);
	const other = await opened(server);
	for (let i = 0; i < 5000; i++) {
		const size = 21 + (i % 1200);
		await forged.raw(Buffer.concat([Buffer.of(0x40 | (i & 0x3f)), forged.serverId, randomBytes(size)]));
	}
	await ask(other);
	assert.is(server.endpoint.connectionCount, 2);
	await forged.send(PING);
	await until('an acknowledgment', () => forged.received.datagrams > 0);
});

test('version negotiation is neither answered nor amplified', async () => {
	const server = await start();
	const { send, received } = createRawClient(server);
	const long = (version: number): Buffer => {
		const head = Buffer.concat([Buffer.of(0xc0, 0, 0, 0, 0, 8), randomBytes(8), Buffer.of(8), randomBytes(8)]);
		head.writeUInt32BE(version >>> 0, 1);
		return Buffer.concat([head, randomBytes(1200)]);
	};
	for (let i = 0; i < 200; i++) await send(long(0));
	await until('the packets', () => server.refusals.filter(reason => reason === 'noise').length >= 200);
	assert.is(received.datagrams.length, 0);
	for (let i = 0; i < 500; i++) await send(long(0x1a2a3a4a));
	await until('the packets', () => server.refusals.filter(reason => reason === 'noise').length >= 400);
	assert.ok(received.datagrams.length <= 200, `${received.datagrams.length} replies`);
	for (const reply of received.datagrams) assert.ok(reply.length < 60);
	await ask(await opened(server));
});

test('a thousand requests wait at the same time', async () => {
	let release = (): void => {};
	const gate = new Promise<void>(resolve => {
		release = resolve;
	});
	const server = await serve(async x => {
		await gate;
		x.response.body = 'served';
	});
	open.push({ close: () => server.stop() });
	const clients = await Promise.all(Array.from({ length: 10 }, () => opened(server)));
	const streams = clients.flatMap(client =>
		Array.from({ length: 100 }, () => ({ client, stream: client.open().write(headers(), true) })),
	);
	await until('a thousand requests', () => server.exchanges.length === 1000);
	release();
	const bodies = await Promise.all(streams.map(async ({ client, stream }) => (await response(client, stream)).body));
	assert.is(bodies.filter(body => body === 'served').length, 1000);
});

test('clients that do not read hold up their own responses only, within a bound', async () => {
	const large = Buffer.alloc(8_000_000, 'x');
	const server = await serve(x => {
		x.response.body = x.request.path === '/large' ? large : 'served';
	});
	open.push({ close: () => server.stop() });
	const before = process.memoryUsage().rss;
	const clients = await Promise.all(Array.from({ length: 15 }, () => opened(server)));
	for (const client of clients) {
		for (let i = 0; i < 10; i++)
			client
				.open()
				.write(
					headers(REQUEST.map(([name, value]) => [name, name === ':path' ? '/large' : value])),
					true,
				).paused = true;
	}
	await until('the requests', () => server.exchanges.length === 150);
	const other = await opened(server);
	for (let i = 0; i < 5; i++) await ask(other);
	// Each connection may take 1 MiB in the server, and as much in the client, which is in the same process.
	const grown = process.memoryUsage().rss - before;
	assert.ok(grown < 150_000_000, `${grown} bytes`);
});

test('everything works over IPv6, with and without Retry', async () => {
	for (const retryAbove of [64, 0]) {
		const server = await start({ address: '::1', quicLimits: { retryAbove } });
		await ask(await opened(server, '::1'));
		assert.is(server.refusals.includes('retry'), retryAbove === 0);
	}
	// Connects an IPv4 client and an IPv6 client to a dual-stack socket.
	const both = await start({ address: '::', quicLimits: { retryAbove: 0 } });
	await ask(await opened(both));
	await ask(await opened(both, '::1'));
});

/** Number of bytes that a packet of a forging client has in addition to its frames. */
const AROUND_FRAMES = 13 + 16;

/** Returns frames, padded so that their datagram has the given length. */
function datagramOf(length: number, frames: Buffer): Buffer {
	return Buffer.concat([frames, Buffer.alloc(length - AROUND_FRAMES - frames.length)]);
}

test('datagrams that are longer than a client may send are read whole, in any order, up to the length of an Ethernet frame', async () => {
	const server = await start();
	const client = await forging(server);
	const request = headers();
	const lengths = [1200, 1201, 1472, 600, 1201, 1300, 1200];
	const count = 60;
	for (let i = 1; i <= count; i++) {
		const stream = Buffer.concat([Buffer.of(0x0b), varintOf(4 * i), varintOf(request.length), request]);
		await client.send(datagramOf(lengths[i % lengths.length]!, stream));
	}
	await until('all requests', () => server.exchanges.length === 1 + count);
	const close = Buffer.of(0x1c, 0, 0, 0);
	await client.send(datagramOf(1473, close));
	client.received = { bytes: 0, datagrams: 0 };
	await client.send(PING);
	await until('an acknowledgment after a datagram that is too long', () => client.received.datagrams > 0);
	assert.is(server.counts.connections, 1);
	assert.equal(server.failures, []);
	await client.send(datagramOf(1472, close));
	await until('the end of the connection', () => server.counts.connections === 0);
});

test.run();
