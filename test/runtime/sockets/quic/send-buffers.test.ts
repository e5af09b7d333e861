/** The buffers that OpenSSL keeps for an idle QUIC connection are shrunk, and those that cannot be recognized are left alone. */
import * as assert from 'uvu/assert';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { findSendBufferShrinker, type SendBufferShrinker } from '../../../../runtime/sockets/quic/send-buffers.ts';
import { headers, response, serve } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';
import { connect, freeSession, type QuicClient } from '../../protocols/http3/quic-client.ts';

const test = http3Suite('send buffers of QUIC connections');

/** Records the sizes to which the buffers of connections are shrunk, until `restore` is called. */
function recordSizes(shrinker: SendBufferShrinker) {
	const sizes: { tls: (number | undefined)[]; stream: (number | undefined)[] } = { tls: [], stream: [] };
	const methods = Object.getPrototypeOf(shrinker) as SendBufferShrinker;
	Object.assign(shrinker, {
		shrinkTlsBuffer: (channel: bigint) => {
			sizes.tls.push(methods.shrinkTlsBuffer.call(shrinker, channel));
			return sizes.tls.at(-1);
		},
		shrinkStreamBuffer: (channel: bigint, id: number) => {
			sizes.stream.push(methods.shrinkStreamBuffer.call(shrinker, channel, id));
			return sizes.stream.at(-1);
		},
	});
	return {
		sizes,
		restore: () => {
			Reflect.deleteProperty(shrinker, 'shrinkTlsBuffer');
			Reflect.deleteProperty(shrinker, 'shrinkStreamBuffer');
		},
	};
}

test('every connection shrinks its buffers, and goes on to send tickets, SETTINGS and GOAWAY', async () => {
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	const { sizes, restore } = recordSizes(quicThread()!.sendBufferShrinker!);
	const clients: QuicClient[] = [];
	try {
		for (let i = 0; i < 3; i++) {
			const client = await connect(server.port);
			clients.push(client);
			assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
		}
		// Resumes the session of the first connection, which is possible only if that connection has received its ticket.
		const session = clients[0]!.session();
		const resumed = await connect(server.port, { session });
		freeSession(session);
		clients.push(resumed);
		assert.ok(resumed.resumed);
		await response(resumed, resumed.open().write(headers(), true));
		assert.equal(sizes, { tls: [1024, 1024, 1024, 1024], stream: [256, 256, 256, 256] });
		server.protocol.drain();
		for (const client of clients) assert.is((await client.end()).code, 0x100);
		assert.equal(server.failures, []);
	} finally {
		restore();
		for (const client of clients) client.close();
		server.stop();
	}
});

test('where the buffers are not recognized, nothing is written', () => {
	const { library } = quicThread()!;
	for (const fill of [0, 0x5a, 0xff]) {
		const memory = Buffer.allocUnsafeSlow(4096).fill(fill);
		const shrinker = findSendBufferShrinker()!;
		const address = library.addressOf(memory);
		shrinker.onConnectionCreated(address);
		assert.is(shrinker.shrinkTlsBuffer(address), undefined);
		assert.ok(memory.equals(Buffer.alloc(4096, fill)));
	}
});

test('pointers are used only if there is one group of them', () => {
	const { library } = quicThread()!;
	// What OpenSSL's description of an empty buffer of 16,384 bytes looks like: address, size, end, start.
	const description = Buffer.allocUnsafeSlow(32).fill(0);
	const descriptionPointer = library.addressOf(description);
	for (const [starts, expected] of [
		[[0], 512],
		[[1600], 512],
		[[0, 400], undefined],
		[[2040], undefined],
	] as const) {
		description.writeBigUInt64LE(descriptionPointer, 0);
		description.writeBigUInt64LE(16_384n, 8);
		const memory = Buffer.allocUnsafeSlow(4096).fill(0);
		for (const start of starts) for (let i = 0; i < 3; i++) memory.writeBigUInt64LE(descriptionPointer, start + i * 8);
		const shrinker = findSendBufferShrinker()!;
		const address = library.addressOf(memory);
		shrinker.onConnectionCreated(address);
		// A buffer that already has another size is not resized, so OpenSSL does not free this memory.
		description.writeBigUInt64LE(512n, 8);
		assert.is(shrinker.shrinkTlsBuffer(address), expected, `groups at ${starts.join(' and ')}`);
	}
});

test('buffers are shrunk in known releases of OpenSSL only', () => {
	assert.ok(findSendBufferShrinker({ openssl: '3.5.4+quic' }));
	for (const openssl of ['3.6.0', '3.50.1', '4.0.0'])
		assert.is(findSendBufferShrinker({ openssl }), undefined, openssl);
	assert.is(findSendBufferShrinker({ missing: 'ossl_quic_sstream_set_buffer_size' }), undefined);
});

test.run();
