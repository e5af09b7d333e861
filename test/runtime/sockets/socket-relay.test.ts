/** Bytes that the kernel moves from one socket to another: all of them arrive, in order, even if the reader is slow. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { SocketRelay } from '../../../runtime/sockets/socket-relay.ts';
import { pauseFor, until } from '../../harness.ts';

// Relays exist only in the I/O mode `direct`.
setIoMode('direct');

const relays = suite('socket relays');

const descriptor = (socket: Socket): number => (socket as unknown as { _handle: { fd: number } })._handle.fd;

/** Creates a connection and returns both of its ends. The first end is paused. */
async function connectedPair(): Promise<[Socket, Socket]> {
	const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
	const [accepted] = (await once(server, 'connection')) as [Socket];
	if (client.connecting) await once(client, 'connect');
	server.close();
	return [accepted, client];
}

relays('bytes that the reader does not accept are returned, and the pipe is empty afterwards', async () => {
	const relay = SocketRelay.open();
	// Relays need Linux and foreign functions.
	if (!relay) return;
	const [from, writer] = await connectedPair();
	const [to, reader] = await connectedPair();
	reader.pause();
	const sent = Buffer.alloc(20_000_000);
	for (let i = 0; i < sent.length; i += 4) sent.writeUInt32LE(Math.imul(i, 2654435761) >>> 0, i);
	writer.write(sent);
	const got: Buffer[] = [];
	let size = 0;
	let withheld = 0;
	reader.on('data', (bytes: Buffer) => {
		got.push(bytes);
		size += bytes.length;
	});
	reader.pause();
	for (let moved = 0, idle = 0; moved < sent.length; ) {
		assert.ok(relay.move(descriptor(from), descriptor(to), sent.length - moved));
		assert.is(relay.sentBytes + (relay.remainder?.length ?? 0), relay.takenBytes);
		moved += relay.takenBytes;
		idle = relay.takenBytes === 0 ? idle + 1 : 0;
		assert.ok(idle < 2000, `no more bytes after ${moved} bytes`);
		if (relay.remainder) {
			withheld++;
			assert.ok(relay.remainder.length <= 131_072);
			to.write(relay.remainder);
			reader.resume();
			await until('the rest is written', () => to.writableLength === 0);
			reader.pause();
		}
		await pauseFor(relay.takenBytes === 0 ? 1 : 0);
	}
	reader.resume();
	await until('all bytes have arrived', () => size >= sent.length);
	assert.ok(Buffer.concat(got).equals(sent));
	assert.ok(withheld > 0, 'the reader never fell behind');
	relay.close();
	assert.ok(relay.move(descriptor(from), descriptor(to), 1) && relay.takenBytes === 0, 'a closed relay moved bytes');
	for (const socket of [from, writer, to, reader]) socket.destroy();
});

relays('nothing is moved from an ended socket or to an invalid descriptor', async () => {
	const relay = SocketRelay.open();
	if (!relay) return;
	const [from, writer] = await connectedPair();
	const [to, reader] = await connectedPair();
	assert.ok(relay.move(descriptor(from), -1, 10) && relay.takenBytes === 0);
	assert.not.ok(relay.hasMore(descriptor(from)));
	writer.end('last');
	await once(writer, 'finish');
	await until('the bytes have arrived', () => relay.hasMore(descriptor(from)));
	assert.ok(relay.move(descriptor(from), -1, 10));
	assert.equal([relay.takenBytes, relay.sentBytes, String(relay.remainder)], [4, 0, 'last']);
	assert.ok(relay.move(descriptor(from), descriptor(to), 10) && relay.takenBytes === 0);
	assert.ok(relay.hasMore(descriptor(from)), 'the end');
	relay.close();
	for (const socket of [from, writer, to, reader]) socket.destroy();
});

relays.run();
