/**
 * A flood of first packets from clients that never continue. During the flood, other clients are served, no handshakes are
 * charged to the addresses of the flood, and no state is kept for its packets.
 */
import { createSocket } from 'node:dgram';
import * as assert from 'uvu/assert';
import { PacketHeader } from '../../../../runtime/sockets/quic/packet-header.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { MAX_RETRY_BYTES, makeRetryTokens } from '../../../../runtime/sockets/quic/retry-tokens.ts';
import { writeSocketAddress } from '../../../../runtime/sockets/socket-address.ts';
import { until } from '../../../harness.ts';
import { affordableRate, firstPackets, sendFrom, startFlood } from './first-packets.ts';
import { type FrameServer, type FrameServerOptions, headers, openControlStream, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { initialPacket } from './initial-packet.ts';
import { connect, QuicClient } from './quic-client.ts';

const test = http3Suite('a flood of first packets');
const openResources: { close(): void }[] = [];

test.after.each(() => {
	for (const one of openResources.splice(0).reverse()) one.close();
});

async function start(terms: FrameServerOptions): Promise<FrameServer> {
	const server = await serve(x => {
		x.response.body = 'served';
	}, terms);
	openResources.push({ close: () => server.stop() });
	return server;
}

/** Connects and sends one request. Returns the milliseconds from the start of the connection to the end of the response. */
async function visit(server: FrameServer): Promise<number> {
	const startedAt = performance.now();
	const client = await connect(server.port);
	try {
		openControlStream(client);
		assert.is((await response(client, client.open().write(headers(), true))).body, 'served');
		return performance.now() - startedAt;
	} finally {
		client.close();
	}
}

const countOf = (server: FrameServer, reason: string): number => server.refusals.filter(one => one === reason).length;

test('requests and new connections of others succeed meanwhile', async () => {
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
	openResources.push(client);
	openControlStream(client);
	const ask = async (one: QuicClient): Promise<number> => {
		const startedAt = performance.now();
		const stream = one.open().write(headers(), true);
		assert.is((await response(one, stream)).body, 'served');
		stream.stop();
		return performance.now() - startedAt;
	};
	await ask(client);
	const before = process.memoryUsage().rss;
	const from = Array.from({ length: 200 }, (_, i) => `127.0.1.${i + 1}`);
	const stop = startFlood({ packets, port: server.port, rate: affordableRate(20_000), from });
	// If the test fails, a flood that goes on would keep this process alive.
	openResources.push({ close: () => void stop() });
	const took: number[] = [];
	const visits: number[] = [];
	await until('the flood', () => server.refusals.includes('retry'));
	const end = performance.now() + 1000;
	while (performance.now() < end || took.length < 50) {
		took.push(await ask(client));
		if (visits.length < took.length / 10) visits.push(await visit(server));
	}
	const sent = await stop();
	const grown = process.memoryUsage().rss - before;
	for (const times of [took, visits]) times.sort((a, b) => a - b);
	const p99 = took[Math.floor(took.length * 0.99)]!;
	const slowest = visits.at(-1)!;
	if (process.env.FIGURES) console.log({ sent, asked: took.length, p99, visits: visits.length, slowest, grown });
	assert.ok(p99 < 5000, `p99 of ${took.length} requests: ${p99} ms`);
	assert.ok(grown < 150_000_000, `${grown} bytes more`);
	assert.ok(server.endpoint.connectionCount <= 32 + 2, `${server.endpoint.connectionCount} handshakes`);
	// Only real clients have been charged for handshakes, not the addresses of the flood.
	assert.is(admitted, 1 + visits.length);
	await visit(server);
});

test('a flood from one address keeps a few handshakes, and others need not prove their addresses', async () => {
	const server = await start({});
	const packets = await firstPackets(100);
	for (let i = 0; i < 3; i++) await sendFrom(packets, server.port, '127.0.0.9');
	await until('Retry packets', () => countOf(server, 'retry') + countOf(server, 'client_rate') > 200);
	assert.ok(server.endpoint.connectionCount <= 32, `${server.endpoint.connectionCount} handshakes`);
	const before = countOf(server, 'retry');
	for (let i = 0; i < 3; i++) await visit(server);
	assert.is(countOf(server, 'retry'), before);
});

test('who uses the address of another does not shut it out', async () => {
	const server = await start({ quicLimits: { maxHandshakesPerClient: 8, retryAbove: 1000 } });
	await sendFrom(await firstPackets(40), server.port, '127.0.0.1');
	await until('handshakes', () => countOf(server, 'retry') >= 32);
	assert.is(server.endpoint.connectionCount, 8);
	await visit(server);
});

test('packets of one client beyond a rate are discarded, and those of others are not', async () => {
	const server = await start({ quicLimits: { maxClientInitialRate: 100 } });
	await sendFrom(await firstPackets(80), server.port, '127.0.0.9');
	await until('refusals', () => countOf(server, 'client_rate') > 0);
	await visit(server);
	// Now the flood has the same address as the client. The client is served all the same, because most of its packets carry a
	// token.
	await sendFrom(await firstPackets(80), server.port, '127.0.0.1');
	await visit(server);
});

test('a client that has to prove its address does so, and is served; no state is kept for the others', async () => {
	let admitted = 0;
	const admit = () => {
		admitted++;
		return () => {};
	};
	const server = await start({ quicLimits: { retryAbove: 0 }, admit });
	await sendFrom(await firstPackets(20), server.port, '127.0.0.9');
	await until('Retry packets', () => countOf(server, 'retry') === 20);
	assert.is(server.endpoint.connectionCount, 0);
	assert.is(admitted, 0);
	await visit(server);
	assert.is(admitted, 1);
});

test('Retry packets have a rate', async () => {
	const server = await start({ quicLimits: { retryAbove: 0, maxRetryRate: 100 } });
	await sendFrom(await firstPackets(40), server.port, '127.0.0.9');
	await until('refusals', () => countOf(server, 'too_many_handshakes') > 0);
	await visit(server);
});

test('handshakes of proven clients have a rate, and one client gets a quarter of it', async () => {
	const server = await start({ quicLimits: { retryAbove: 0, maxHandshakeRate: 40 } });
	const clients = Array.from({ length: 12 }, () => new QuicClient(server.port));
	openResources.push(...clients);
	await until('a refusal', () => countOf(server, 'client_limit') > 0);
	await until('a connection', () => clients.some(client => client.connected));
});

test('a refused handshake says why after a Retry, too', async () => {
	const server = await start({ quicLimits: { retryAbove: 0 }, choose: () => ({ alert: 112 }) });
	for (const groups of ['X25519', undefined]) {
		const client = new QuicClient(server.port, groups === undefined ? {} : { groups });
		openResources.push(client);
		assert.equal(await client.end(), { code: 0x100 + 112, transport: true, byServer: true });
	}
});

/** Sends a datagram repeatedly, as a client does. Returns the first reply. */
async function firstReply(port: number, packet: Buffer): Promise<Buffer> {
	const socket = createSocket('udp4');
	const replies: Buffer[] = [];
	socket.on('message', bytes => replies.push(bytes));
	const send = (): void => socket.send(packet, port, '127.0.0.1');
	const again = setInterval(send, 500);
	try {
		send();
		await until('a reply', () => replies.length > 0);
		return replies[0]!;
	} finally {
		clearInterval(again);
		socket.close();
	}
}

test('a foreign token is as good as none', async () => {
	const frames = Buffer.of(1);
	for (const token of [Buffer.alloc(1), Buffer.alloc(68, 7), Buffer.alloc(300, 1)]) {
		const calm = await start({});
		assert.is((await firstReply(calm.port, initialPacket({ frames, token })))[0]! & 0xf0, 0xc0, 'an acknowledgment');
		const loaded = await start({ quicLimits: { retryAbove: 0 } });
		assert.is((await firstReply(loaded.port, initialPacket({ frames, token })))[0]! & 0xf0, 0xf0, 'a Retry');
		assert.is(loaded.endpoint.connectionCount, 0);
	}
});

test('a token is for one client and connection ID, and a few seconds', () => {
	const tokens = quicThread()!.retryTokens!;
	const address = (text: string): Buffer => Buffer.concat([writeSocketAddress(text, 4433)!, Buffer.alloc(12)]);
	for (const [own, others] of [
		['192.0.2.1', ['192.0.2.2', '::1', '::ffff:192.0.2.1']],
		['2001:db8::1', ['2001:db8::2', '192.0.2.1']],
	] as const) {
		const sent = initialPacket({ frames: Buffer.of(1) });
		const header = new PacketHeader();
		assert.is(header.read(sent, 0, sent.length), 'initial');
		assert.is(header.tokenEnd, header.tokenStart);
		const packet = Buffer.alloc(MAX_RETRY_BYTES);
		const length = tokens.writeRetry(header, address(own), 0, packet, 0);
		assert.ok(length <= MAX_RETRY_BYTES);
		const sourceAt = 6 + packet[5]!;
		assert.is(packet.toString('latin1', 6, sourceAt), header.sourceId, 'the destination is the source of the client');
		const id = packet.subarray(sourceAt + 1, sourceAt + 9);
		const token = Buffer.from(packet.subarray(sourceAt + 9, length - 16));

		const accepts = (from: string, destination: Buffer, shown: Buffer): boolean => {
			const back = initialPacket({ frames: Buffer.of(1), destination, token: shown });
			const read = new PacketHeader();
			assert.is(read.read(back, 0, back.length), 'initial');
			return tokens.acceptsToken(back, read, address(from), 0);
		};
		assert.ok(accepts(own, id, token));
		for (const other of others) assert.not.ok(accepts(other, id, token), other);
		assert.not.ok(accepts(own, Buffer.alloc(8, 9), token));
		for (const at of [0, 12, 20, token.length - 1]) {
			const changed = Buffer.from(token);
			changed[at]! ^= 1;
			assert.not.ok(accepts(own, id, changed), `byte ${at}`);
		}
		assert.not.ok(accepts(own, id, token.subarray(0, 30)));
		const { now } = Date;
		try {
			Date.now = () => now() + 7000;
			assert.ok(accepts(own, id, token));
			Date.now = () => now() + 9000;
			assert.not.ok(accepts(own, id, token));
			Date.now = () => now() - 1000;
			assert.not.ok(accepts(own, id, token));
		} finally {
			Date.now = now;
		}
	}
});

test('a token is accepted by other threads and processes that have the same secret', () => {
	const [one, same, other] = [makeRetryTokens()!, makeRetryTokens()!, makeRetryTokens()!];
	one.useSecret(Buffer.alloc(48, 1));
	same.useSecret(Buffer.alloc(48, 1));
	other.useSecret(Buffer.alloc(48, 2));
	const name = Buffer.concat([writeSocketAddress('192.0.2.1', 4433)!, Buffer.alloc(12)]);
	const sent = initialPacket({ frames: Buffer.of(1) });
	const header = new PacketHeader();
	assert.is(header.read(sent, 0, sent.length), 'initial');
	const packet = Buffer.alloc(MAX_RETRY_BYTES);
	const length = one.writeRetry(header, name, 0, packet, 0);
	const sourceAt = 6 + packet[5]!;
	const destination = packet.subarray(sourceAt + 1, sourceAt + 9);
	const token = Buffer.from(packet.subarray(sourceAt + 9, length - 16));
	const back = initialPacket({ frames: Buffer.of(1), destination, token });
	const read = new PacketHeader();
	assert.is(read.read(back, 0, back.length), 'initial');
	assert.equal(
		[one, same, other].map(tokens => tokens.acceptsToken(back, read, name, 0)),
		[true, true, false],
	);
});

test.run();
