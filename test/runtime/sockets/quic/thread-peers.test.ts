/** Threads find each other's connections in shared memory, and pass datagrams to each other. */
import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import type { RelayedDatagram } from '../../../../runtime/sockets/quic/datagram-relay.ts';
import { PacketHeader } from '../../../../runtime/sockets/quic/packet-header.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { PEER_CHANNEL_SLOTS, PEER_ROW_SLOTS, ThreadPeers } from '../../../../runtime/sockets/quic/thread-peers.ts';
import { until } from '../../../harness.ts';
import { pollerReady } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';

const test = http3Suite('connections of other threads');

const ROWS = 3;
const openPeers: ThreadPeers[] = [];

test.before(pollerReady);

test.after.each(() => {
	for (const peers of openPeers.splice(0)) peers.close();
});

function createMemory(): SharedArrayBuffer {
	return new SharedArrayBuffer(4 * ROWS * (PEER_ROW_SLOTS + PEER_CHANNEL_SLOTS));
}

/** A thread that records the IDs of the datagrams that others pass to it. */
function join(memory: SharedArrayBuffer, row: number): { peers: ThreadPeers; received: string[] } {
	const peers = new ThreadPeers(quicThread()!.library, memory, ROWS, row);
	openPeers.push(peers);
	const received: string[] = [];
	peers.endpoints.add({
		takeFromPeer(id, { name, payload }) {
			received.push(`${id} ${name} ${payload.length}`);
			return true;
		},
	});
	return { peers, received };
}

function idOf(high: number, low: number): string {
	const bytes = Buffer.alloc(8);
	bytes.writeInt32BE(high, 0);
	bytes.writeInt32BE(low, 4);
	return bytes.toString('latin1');
}

/** Returns a datagram for the connection with an ID, with a short or a long header. */
function datagramTo(id: string, isLong = false): Buffer {
	const name = Buffer.from(id, 'latin1');
	if (!isLong) return Buffer.concat([Buffer.of(0x40), name, Buffer.alloc(20)]);
	return Buffer.concat([Buffer.of(0xe0, 0, 0, 0, 1, 8), name, Buffer.of(0), Buffer.alloc(20)]);
}

/** Passes on a datagram that a thread has read. */
function pass(peers: ThreadPeers, payload: Buffer): boolean {
	const header = new PacketHeader();
	header.read(payload, 0, payload.length);
	const relayed: RelayedDatagram = { name: Buffer.from('peer'), control: Buffer.alloc(0), payload };
	return peers.pass(header, () => relayed);
}

test('a datagram reaches the thread that has its connection, and no other', async () => {
	const memory = createMemory();
	const threads = Array.from({ length: ROWS }, (_, row) => join(memory, row));
	const ids = threads.map((_, row) => idOf(-5 + row, 1_000_000 + row));
	for (const [row, { peers }] of threads.entries()) peers.add(ids[row]!);
	assert.ok(pass(threads[0]!.peers, datagramTo(ids[1]!)));
	assert.ok(pass(threads[0]!.peers, datagramTo(ids[2]!)));
	assert.ok(pass(threads[1]!.peers, datagramTo(ids[2]!, true)));
	// A thread may have several sockets.
	assert.ok(pass(threads[0]!.peers, datagramTo(ids[0]!)));
	for (const id of [idOf(-4, 7), idOf(0, 0)]) assert.not.ok(pass(threads[0]!.peers, datagramTo(id)), 'unknown');
	await until('the datagrams', () => threads.every(({ received }, row) => received.length === Math.max(1, row)));
	assert.equal(threads[1]!.received, [`${ids[1]} peer 29`]);
	assert.equal(new Set(threads[2]!.received), new Set([`${ids[2]} peer 29`, `${ids[2]} peer 35`]));
	assert.equal(threads[0]!.received, [`${ids[0]} peer 29`]);
});

test('connections that have ended are not found', () => {
	const memory = createMemory();
	const [first, second] = [join(memory, 0), join(memory, 1)];
	const ids = Array.from({ length: 20 }, (_, i) => idOf(0x100, i));
	for (const id of ids) first.peers.add(id);
	// A bucket holds eight IDs. The others are not found by other threads.
	const found = (): number => ids.filter(id => pass(second.peers, datagramTo(id))).length;
	assert.is(found(), 8);
	for (const id of ids) first.peers.remove(id);
	assert.is(found(), 0);
	first.peers.add(ids[19]!);
	assert.is(found(), 1);
});

test('a datagram is passed on once', async () => {
	const memory = createMemory();
	const [first, second] = [join(memory, 0), join(memory, 1)];
	const id = idOf(3, 4);
	second.peers.add(id);
	let isPassedBack: boolean | undefined;
	second.peers.endpoints.clear();
	second.peers.endpoints.add({
		takeFromPeer(_id, { payload }) {
			isPassedBack = pass(second.peers, payload);
			return true;
		},
	});
	assert.ok(pass(first.peers, datagramTo(id)));
	await until('the datagram', () => isPassedBack !== undefined);
	assert.is(isPassedBack, false);
	assert.is(first.received.length, 0);
});

test('the next thread of a row uses the same channel', async () => {
	const memory = createMemory();
	const first = join(memory, 0);
	join(memory, 1).peers.close();
	const descriptorCount = (): number => readdirSync('/proc/self/fd').length;
	const before = descriptorCount();
	for (let round = 0; round < 3; round++) {
		const next = join(memory, 1);
		const id = idOf(round, 1);
		next.peers.add(id);
		assert.ok(pass(first.peers, datagramTo(id)));
		await until('the datagram', () => next.received.length === 1);
		next.peers.close();
	}
	// One descriptor is the channel to the row, which the first thread keeps open.
	await until('no more descriptors', () => descriptorCount() <= before + 1);
});

test.run();
