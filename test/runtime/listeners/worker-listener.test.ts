/**
 * The listener of one thread: clients that disconnect before they are accepted, and descriptors that are not sockets.
 */
import { once } from 'node:events';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Admission } from '../../../runtime/listeners/admission.ts';
import { WorkerListener } from '../../../runtime/listeners/worker-listener.ts';
import type { ProtocolServer } from '../../../runtime/protocols/protocol.ts';
import { freePorts, pauseFor } from '../../harness.ts';

const EVENTS = { countRefusal() {}, hasRoom: () => true, countDisplaced() {}, askForRoom() {}, onAcceptFailed() {} };

function listenerOn(address: { port: number; descriptor?: number }) {
	const accepted: unknown[] = [];
	const protocol = {
		connections: 0,
		accept: (socket: { destroy(): void }) => {
			accepted.push(socket);
			socket.destroy();
		},
		drain() {},
		close() {},
	} as unknown as ProtocolServer;
	const whole = { key: 'k', scheme: 'http', host: '127.0.0.1', ...address } as never;
	return { listener: new WorkerListener(whole, protocol, EVENTS), accepted };
}

const listeners = suite('listeners of a thread');

listeners('a client that was reset before it was accepted is not counted', async () => {
	const [port] = (await freePorts(1)) as [number];
	const { listener, accepted } = listenerOn({ port });
	const counted: string[] = [];
	await listener.bind(false);
	listener.configure({}, {
		limitsConnections: true,
		retryAfter: '1',
		admit: (address: string) => {
			counted.push(address);
			return () => {};
		},
	} as unknown as Admission);
	const gone = connect(port, '127.0.0.1');
	const stays = connect(port, '127.0.0.1');
	try {
		await Promise.all([once(gone, 'connect'), once(stays, 'connect')]);
		gone.resetAndDestroy();
		// Both connections wait in the queue, like connections that arrive before the first settings.
		await pauseFor(50);
		listener.open();
		assert.equal(counted, ['127.0.0.1']);
		assert.is(accepted.length, 1);
	} finally {
		stays.destroy();
		listener.close();
	}
});

listeners('a connection that its client closed, without sending, before the listener opened is closed', async () => {
	const [port] = (await freePorts(1)) as [number];
	const { listener, accepted } = listenerOn({ port });
	await listener.bind(false);
	const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).resume();
	try {
		await once(client, 'connect');
		client.end();
		// The listener runs on this thread, so it reads the FIN only in a later turn of the event loop. 20 turns are more than
		// enough.
		await once(client, 'finish');
		for (let turns = 0; turns < 20; turns++) await new Promise(resolve => setImmediate(resolve));
		listener.open();
		await once(client, 'close');
		assert.is(accepted.length, 0, 'the connection must not reach a protocol, which would wait for its first byte');
	} finally {
		client.destroy();
		listener.close();
	}
});

listeners('a descriptor that is not a socket is refused, and no duplicate of it stays open', async () => {
	const file = openSync(process.execPath, 'r');
	try {
		const open = (): number => readdirSync('/proc/self/fd').length;
		const before = open();
		for (let i = 0; i < 3; i++) {
			const { listener } = listenerOn({ port: 0, descriptor: file });
			const error = await listener.bind(false).then(
				() => undefined,
				(error: NodeJS.ErrnoException) => error,
			);
			assert.is(error?.code, 'EINVAL');
		}
		assert.is(open(), before);
	} finally {
		closeSync(file);
	}
});

listeners.run();
