/** Bytes that the system moves from socket to socket: all of them, in order, also where the reader is slow. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { useIoMode } from '../../../runtime/sockets/io-mode.ts';
import { SocketRelay } from '../../../runtime/sockets/socket-relay.ts';
import { pace, until } from '../../harness.ts';

// What is tested here exists in this mode only.
useIoMode('direct');

const relays = suite('socket relays');

const descriptor = (socket: Socket): number => (socket as unknown as { _handle: { fd: number } })._handle.fd;

/** Both ends of a connection; nothing is read from the first. */
async function pair(): Promise<[Socket, Socket]> {
	const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
	const [accepted] = (await once(server, 'connection')) as [Socket];
	if (client.connecting) await once(client, 'connect');
	server.close();
	return [accepted, client];
}

relays('what the reader does not take is given back, and the pipe is empty again', async () => {
	const relay = SocketRelay.open();
	// Not Linux, or a Node without foreign functions: then there is none.
	if (!relay) return;
	const [from, writer] = await pair();
	const [to, reader] = await pair();
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
		assert.is(relay.given + (relay.rest?.length ?? 0), relay.taken);
		moved += relay.taken;
		idle = relay.taken === 0 ? idle + 1 : 0;
		assert.ok(idle < 2000, `nothing comes after ${moved} bytes`);
		if (relay.rest) {
			withheld++;
			assert.ok(relay.rest.length <= 131_072);
			to.write(relay.rest);
			reader.resume();
			await until('it is written', () => to.writableLength === 0);
			reader.pause();
		}
		await pace(relay.taken === 0 ? 1 : 0);
	}
	reader.resume();
	await until('all bytes have come', () => size >= sent.length);
	assert.ok(Buffer.concat(got).equals(sent));
	assert.ok(withheld > 0, 'the reader was slow at least once');
	relay.close();
	assert.ok(relay.move(descriptor(from), descriptor(to), 1) && relay.taken === 0, 'a closed one moves nothing');
	for (const socket of [from, writer, to, reader]) socket.destroy();
});

relays('ends and what is no socket move nothing', async () => {
	const relay = SocketRelay.open();
	if (!relay) return;
	const [from, writer] = await pair();
	const [to, reader] = await pair();
	assert.ok(relay.move(descriptor(from), -1, 10) && relay.taken === 0);
	assert.not.ok(relay.hasMore(descriptor(from)));
	writer.end('last');
	await once(writer, 'finish');
	await until('the bytes are there', () => relay.hasMore(descriptor(from)));
	assert.ok(relay.move(descriptor(from), -1, 10));
	assert.equal([relay.taken, relay.given, String(relay.rest)], [4, 0, 'last']);
	assert.ok(relay.move(descriptor(from), descriptor(to), 10) && relay.taken === 0);
	assert.ok(relay.hasMore(descriptor(from)), 'the end');
	relay.close();
	for (const socket of [from, writer, to, reader]) socket.destroy();
});

relays.run();
