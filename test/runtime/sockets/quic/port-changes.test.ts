/** The rules by which a connection follows its client to another port, and the packet numbers on which they are based. */
import * as assert from 'uvu/assert';
import type { DatagramPath } from '../../../../runtime/sockets/quic/datagram-memory.ts';
import type { LossDetection } from '../../../../runtime/sockets/quic/loss-probes.ts';
import { findPacketNumbers, type PacketNumberReader } from '../../../../runtime/sockets/quic/packet-numbers.ts';
import { PortChanges } from '../../../../runtime/sockets/quic/port-changes.ts';
import {
	MAX_PORT_CHANGES,
	MAX_PORT_TRIES,
	PORT_CHANGE_PERIOD_MS,
	PORT_PROOF_MS,
	PORT_TRY_PERIOD_MS,
} from '../../../../runtime/sockets/quic/quic-limits.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { headers, response, serve } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';
import { connect } from '../../protocols/http3/quic-client.ts';

const test = http3Suite('rules of port changes');

const NO_DETECTION: LossDetection = { packetizer: 0n, ackManager: 0n };

/** A connection whose packet numbers are set by the test. */
class FakeConnection implements PacketNumberReader {
	received = 100n;
	acknowledged = 50n;
	sent = 60n;
	readonly home = pathTo(1000);
	readonly changes = new PortChanges(this, NO_DETECTION, this.home);

	highestReceived(): bigint {
		return this.received;
	}

	highestAcknowledged(): bigint {
		return this.acknowledged;
	}

	nextSent(): bigint {
		return this.sent;
	}

	/** Processes a datagram from a path, with a packet of this number. Returns the path that is used afterwards. */
	receive(path: DatagramPath, number: bigint, now: number): DatagramPath {
		this.changes.expect(path);
		if (number > this.received) this.received = number;
		return this.changes.update(now);
	}
}

function pathTo(port: number): DatagramPath {
	const peer = Buffer.alloc(16);
	peer.writeUInt16BE(port, 2);
	return { peer } as DatagramPath;
}

test('only a packet with the highest number changes the port', () => {
	const connection = new FakeConnection();
	const other = pathTo(2000);
	assert.is(connection.receive(other, 0n, 0), connection.home);
	assert.is(connection.receive(other, 100n, 0), connection.home);
	assert.is(connection.changes.dueAt, Infinity);
	assert.is(connection.receive(other, 101n, 0), other);
	assert.is(connection.changes.dueAt, PORT_PROOF_MS);
});

test('a packet that is processed later does not count for a datagram that was not processed', () => {
	const connection = new FakeConnection();
	connection.changes.expect(pathTo(2000));
	connection.changes.cancel();
	connection.received = 200n;
	assert.is(connection.changes.update(0), connection.home);
});

test('a port is proven by an acknowledgment of what was sent to it, and of nothing before', () => {
	const connection = new FakeConnection();
	const other = pathTo(2000);
	connection.receive(other, 101n, 0);
	connection.acknowledged = 59n;
	connection.changes.update(1);
	assert.is.not(connection.changes.dueAt, Infinity);
	connection.acknowledged = 60n;
	assert.is(connection.changes.update(2), other);
	assert.is(connection.changes.dueAt, Infinity);
	assert.is(connection.changes.update(PORT_PROOF_MS + 1), other);
});

test('without proof, the last proven port is used again', () => {
	const connection = new FakeConnection();
	connection.receive(pathTo(2000), 101n, 0);
	const third = pathTo(3000);
	assert.is(connection.receive(third, 102n, 10), third);
	assert.is(connection.changes.update(PORT_PROOF_MS), third);
	assert.is(connection.changes.update(PORT_PROOF_MS + 10), connection.home);
	assert.is(connection.changes.dueAt, Infinity);
});

test('a new packet from the proven port restores it at once, even if no more changes are permitted', () => {
	const connection = new FakeConnection();
	let number = connection.received;
	for (let i = 0; i < MAX_PORT_CHANGES; i++) {
		const other = pathTo(2000 + i);
		assert.is(connection.receive(other, ++number, 0), other);
		assert.is(connection.receive(pathTo(1000), ++number, 0), connection.home);
		assert.is(connection.changes.dueAt, Infinity);
	}
	assert.is(connection.receive(pathTo(4000), ++number, PORT_CHANGE_PERIOD_MS - 1), connection.home);
	const last = pathTo(4001);
	assert.is(connection.receive(last, ++number, PORT_CHANGE_PERIOD_MS), last);
});

test('the number of datagrams that are tried is limited', () => {
	const { changes } = new FakeConnection();
	for (let i = 0; i < MAX_PORT_TRIES; i++) assert.ok(changes.mayTry(5));
	assert.not.ok(changes.mayTry(5 + PORT_TRY_PERIOD_MS - 1));
	assert.ok(changes.mayTry(5 + PORT_TRY_PERIOD_MS));
});

test('the packet numbers of a connection grow with what it receives and sends', async () => {
	const server = await serve(x => {
		x.response.body = 'hello';
	});
	const { lossProbes } = quicThread()!;
	let detection: LossDetection | undefined;
	lossProbes!.detectionOf = channel => {
		detection = Object.getPrototypeOf(lossProbes).detectionOf.call(lossProbes, channel);
		return detection;
	};
	const client = await connect(server.port);
	try {
		const numbers = findPacketNumbers()!;
		let before = [-1n, -1n, -1n];
		for (let round = 0; round < 3; round++) {
			assert.is((await response(client, client.open().write(headers(), true))).body, 'hello');
			const after = [
				numbers.highestReceived(detection!),
				numbers.highestAcknowledged(detection!),
				numbers.nextSent(detection!),
			];
			for (const [i, number] of after.entries()) {
				// The client may acknowledge a response later.
				if (i !== 1) assert.ok(number > before[i]!, `${number} after ${before[i]}`);
				assert.ok(number < 1000n, `${number}`);
			}
			assert.ok(after[1]! < after[2]!);
			before = after;
		}
	} finally {
		Reflect.deleteProperty(lossProbes!, 'detectionOf');
		client.close();
		server.stop();
	}
});

test('packet numbers are read in known releases of OpenSSL only', () => {
	assert.ok(findPacketNumbers({ openssl: '3.5.4+quic' }));
	for (const openssl of ['3.6.0', '3.50.1', '4.0.0']) assert.is(findPacketNumbers({ openssl }), undefined, openssl);
});

test.run();
