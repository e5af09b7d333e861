/**
 * A flood of first packets on a machine whose OpenSSL does not accept our address tokens. OpenSSL then sends Retry packets
 * itself, and the server drops the oldest handshakes whose clients have not proven their addresses.
 */
import * as assert from 'uvu/assert';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { until } from '../../../harness.ts';
import { firstPackets, sendFrom } from './first-packets.ts';
import { type FrameServer, type FrameServerOptions, headers, openControlStream, response, serve } from './frames.ts';
import { http3Suite } from './http3-suite.ts';
import { connect, QuicClient } from './quic-client.ts';

const test = http3Suite('a flood of first packets without tokens of ours');
const openResources: { close(): void }[] = [];

test.before(() => {
	quicThread()!.retryTokens!.recordResult(false);
});

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

test('who uses the address of another does not shut it out', async () => {
	const server = await start({ quicLimits: { maxHandshakesPerClient: 8, retryAbove: 1000 } });
	await sendFrom(await firstPackets(40), server.port, '127.0.0.1');
	await until('handshakes', () => server.refusals.filter(reason => reason === 'evicted').length === 32);
	assert.is(server.endpoint.connectionCount, 8);
	const client = await connect(server.port);
	openResources.push(client);
	openControlStream(client);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'served');
});

test('the oldest gives way at once, and none whose address is proven', async () => {
	const server = await start({ quicLimits: { maxHandshakes: 4, retryAbove: 1000 }, choose: () => 'wait' });
	// A client proves its address by answering a packet. In this test, the server waits for a certificate and sends no packets, so
	// that no client can prove its address.
	await sendFrom(await firstPackets(20), server.port, '127.0.0.9');
	await until('handshakes', () => server.refusals.filter(reason => reason === 'evicted').length === 16);
	assert.is(server.endpoint.connectionCount, 4);
});

test('a client that has to prove its address does so, and is served', async () => {
	let admitted = 0;
	const admit = () => {
		admitted++;
		return () => {};
	};
	const server = await start({ quicLimits: { retryAbove: 0 }, admit });
	await sendFrom(await firstPackets(20), server.port, '127.0.0.9');
	await until('handshakes', () => server.endpoint.connectionCount === 20);
	assert.is(admitted, 0);
	const client = await connect(server.port);
	openResources.push(client);
	openControlStream(client);
	assert.is((await response(client, client.open().write(headers(), true))).body, 'served');
	assert.is(admitted, 1);
});

test('handshakes that begin under pressure have a rate', async () => {
	const server = await start({ quicLimits: { retryAbove: 0, maxHandshakeRate: 10 } });
	await sendFrom(await firstPackets(40), server.port, '127.0.0.9');
	await until('refusals', () => server.refusals.includes('too_many_handshakes'));
	const client = await connect(server.port);
	client.close();
});

test('a refused handshake says why after a Retry, too', async () => {
	const server = await start({ quicLimits: { retryAbove: 0 }, choose: () => ({ alert: 112 }) });
	for (const groups of ['X25519', undefined]) {
		const client = new QuicClient(server.port, groups === undefined ? {} : { groups });
		openResources.push(client);
		assert.equal(await client.end(), { code: 0x100 + 112, transport: true, byServer: true });
	}
});

test.run();
