/** The router of QUIC datagrams, its deadline heap, and the parsing of packets. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Deadline, DeadlineHeap } from '../../../../runtime/sockets/quic/deadline-heap.ts';
import { createVersionNegotiation, PacketHeader } from '../../../../runtime/sockets/quic/packet-header.ts';
import { findQuicLibrary } from '../../../../runtime/sockets/quic/quic-library.ts';
import { offersHttp3 } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { parseServerName } from '../../../../runtime/sockets/quic/quic-tls.ts';
import { DatagramRouter, type RouteTarget } from '../../../../runtime/sockets/quic/router.ts';
import { readSocketAddress, writeSocketAddress } from '../../../../runtime/sockets/socket-address.ts';

const test = suite('the QUIC router');

/** Returns a long-header packet. `type` 0 is an Initial packet. */
function longPacket(type: number, version: number, destination: number[], source: number[], length = 1200): Buffer {
	const packet = Buffer.alloc(length);
	packet[0] = 0xc0 | (type << 4);
	packet.writeUInt32BE(version, 1);
	packet.set([destination.length, ...destination, source.length, ...source], 5);
	return packet;
}

function short(destination: number[], length = 40): Buffer {
	const packet = Buffer.alloc(length);
	packet[0] = 0x40;
	packet.set(destination, 1);
	return packet;
}

const ID = [1, 2, 3, 4, 5, 6, 7, 8];
const OTHER = [8, 7, 6, 5, 4, 3, 2, 1];
const text = (id: number[]) => Buffer.from(id).toString('latin1');
const target = (): RouteTarget => ({ registeredIds: new Set() });
const ask = (router: DatagramRouter<RouteTarget>, bytes: Buffer, now = 0) => router.route(bytes, 0, bytes.length, now);

test('only an Initial packet of the full size starts a connection', () => {
	const router = new DatagramRouter<RouteTarget>();
	assert.is(ask(router, longPacket(0, 1, ID, OTHER)), 'new');
	assert.is(router.header.destinationId, text(ID));
	assert.is(ask(router, longPacket(0, 1, ID, OTHER, 1199)), 'drop');
	assert.is(ask(router, longPacket(0, 1, ID.slice(1), OTHER)), 'drop');
	assert.is(ask(router, longPacket(2, 1, ID, OTHER)), 'drop');
	assert.is(ask(router, short(ID)), 'drop');
});

test('datagrams reach the connection whose id they carry, until the connection is forgotten', () => {
	const router = new DatagramRouter<RouteTarget>();
	const connection = target();
	router.register(text(ID), connection);
	const answer = longPacket(0, 1, OTHER, [9, 9, 9, 9, 9, 9, 9, 9]);
	router.registerFromPacket(answer, 0, answer.length, connection);
	assert.is(ask(router, short(ID)), connection);
	assert.is(ask(router, short([9, 9, 9, 9, 9, 9, 9, 9])), connection);
	assert.is(ask(router, longPacket(2, 1, ID, OTHER, 100)), connection);
	assert.is(router.size, 2);
	router.forgetTarget(connection);
	assert.is(router.size, 0);
	assert.is(ask(router, short(ID)), 'drop');
});

test('IDs that differ only in a few bits, and have equal hashes, belong to different connections', () => {
	const router = new DatagramRouter<RouteTarget>();
	const [first, second, third] = [target(), target(), target()];
	// The hash combines the two halves of an ID, so equal changes of both do not change it.
	const changed = [1, 2, 3, 5, 5, 6, 7, 9];
	const answer = (id: number[]) => longPacket(0, 1, OTHER, id);
	assert.is(router.registerFromPacket(answer(ID), 0, 1200, first), text(ID));
	assert.is(router.registerFromPacket(answer(changed), 0, 1200, second), text(changed));
	assert.is(ask(router, short(ID)), first);
	assert.is(router.header.destinationId, text(ID));
	assert.is(ask(router, short(changed)), second);
	assert.is(router.header.destinationId, text(changed));
	assert.is(ask(router, short([1, 2, 3, 6, 5, 6, 7, 10])), 'drop');
	router.registerFromPacket(answer(ID), 0, 1200, third);
	assert.is(ask(router, short(ID)), first);
	router.forgetTarget(first);
	assert.is(ask(router, short(ID)), 'drop');
	assert.is(ask(router, short(changed)), second);
	router.forgetTarget(second);
	assert.is(ask(router, short(changed)), 'drop');
	const high = [255, 254, 128, 0, 255, 255, 0, 127];
	router.registerFromPacket(answer(high), 0, 1200, third);
	assert.is(ask(router, short(high)), third);
	assert.is(router.header.destinationId, text(high));
});

test('a connection cannot take over the id of another', () => {
	const router = new DatagramRouter<RouteTarget>();
	const [first, second] = [target(), target()];
	router.register(text(ID), first);
	router.register(text(ID), second);
	assert.is(ask(router, short(ID)), first);
	router.forgetTarget(second);
	assert.is(ask(router, short(ID)), first);
});

test('the number of ids per connection is limited', () => {
	const router = new DatagramRouter<RouteTarget>();
	const connection = target();
	for (let i = 0; i < 100; i++) router.register(text([i, ...ID.slice(1)]), connection);
	assert.is(router.size, 8);
});

test('version negotiation is rate-limited', () => {
	const router = new DatagramRouter<RouteTarget>();
	const unknown = longPacket(0, 0xbabababa, ID, OTHER);
	let answeredCount = 0;
	for (let i = 0; i < 1000; i++) if (ask(router, unknown, 5000) === 'negotiate') answeredCount++;
	assert.is(answeredCount, 100);
	assert.is(ask(router, unknown, 6001), 'negotiate');
	assert.is(ask(router, longPacket(0, 0xbabababa, ID, OTHER, 1000), 9000), 'drop');
	assert.is(ask(router, longPacket(0, 0, ID, OTHER), 9000), 'drop');
});

test('a version negotiation packet swaps the ids and offers version 1', () => {
	const header = new PacketHeader();
	const packet = longPacket(0, 5, ID, [9, 9]);
	header.read(packet, 0, packet.length);
	const answer = createVersionNegotiation(header, 0x5a);
	assert.equal([...answer.subarray(0, 1 + 4 + 1 + 2 + 1 + 8)], [0xda, 0, 0, 0, 0, 2, 9, 9, 8, ...ID]);
	assert.is(answer.readUInt32BE(17), 1);
});

test('random bytes are dropped', () => {
	const header = new PacketHeader();
	const router = new DatagramRouter<RouteTarget>();
	let seed = 7;
	const random = (): number => {
		seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
		return seed >>> 16;
	};
	for (let i = 0; i < 100_000; i++) {
		const bytes = Buffer.alloc(random() % 64);
		for (let at = 0; at < bytes.length; at++) bytes[at] = random();
		header.read(bytes, 0, bytes.length);
		const verdict = ask(router, bytes, i);
		assert.ok(verdict === 'drop');
		router.registerFromPacket(bytes, 0, bytes.length, {
			registeredIds: new Set(Array.from({ length: 8 }, (_, id) => String(id))),
		});
	}
	assert.is(router.size, 0);
});

test('deadlines are returned in order, however they are changed', () => {
	const heap = new DeadlineHeap<Deadline>();
	const members = Array.from({ length: 200 }, () => ({ dueAt: Infinity, heapIndex: -1 }));
	let seed = 3;
	const random = (): number => {
		seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
		return seed >>> 16;
	};
	for (let i = 0; i < 5000; i++) {
		const member = members[random() % members.length]!;
		const what = random() % 4;
		if (what === 0) heap.delete(member);
		else heap.setDeadline(member, what === 1 ? Infinity : random());
	}
	const left = members.filter(({ heapIndex }) => heapIndex >= 0);
	assert.is(heap.size, left.length);
	let last = -1;
	for (let count = left.length; count > 0; count--) {
		assert.is(heap.takeDue(last - 1), undefined);
		const next = heap.takeDue(Number.MAX_VALUE)!;
		assert.ok(next.dueAt >= last);
		last = next.dueAt;
	}
	assert.is(heap.earliestDueAt, Infinity);
});

test("socket addresses survive a round trip through the system's format", () => {
	for (const [address, port] of [
		['127.0.0.1', 443],
		['2001:db8::1', 8443],
		['::', 1],
		['::1', 65_535],
		['fe80:0:0:1::5', 2],
	] as const) {
		assert.equal(readSocketAddress(writeSocketAddress(address, port)!, 0), {
			address: address === 'fe80:0:0:1::5' ? 'fe80:0:0:1::5' : address,
			port,
		});
	}
	assert.is(readSocketAddress(writeSocketAddress('::ffff:10.0.0.7', 5)!, 0).address, '10.0.0.7');
	assert.is(writeSocketAddress('localhost', 1), undefined);
});

test('the server name and the h3 protocol are read from a ClientHello', () => {
	const name = Buffer.from('Example.COM.');
	const extension = Buffer.concat([Buffer.of(0, name.length + 3, 0, 0, name.length), name]);
	assert.is(parseServerName(extension), 'example.com');
	assert.is(parseServerName(extension.subarray(0, 8)), '');
	assert.is(parseServerName(Buffer.alloc(0)), '');
	assert.ok(offersHttp3(Buffer.from('\x02h2\x02h3')));
	assert.not.ok(offersHttp3(Buffer.from('\x02h2\x03h33')));
	assert.not.ok(offersHttp3(Buffer.from('\x04\x02h3x')));
	assert.not.ok(offersHttp3(Buffer.of(2, 0x68)));
});

test('without the required OpenSSL functions or version, HTTP/3 is unavailable, and the reason is given', () => {
	assert.ok(findQuicLibrary().library);
	assert.match(findQuicLibrary({ missing: 'SSL_new_listener' }).missing ?? '', /a function of OpenSSL .* is missing/);
	assert.match(
		findQuicLibrary({ openssl: '3.0.14' }).missing ?? '',
		/it needs OpenSSL 3\.5 or a later 3\.x, and Node has 3\.0\.14/,
	);
	assert.match(findQuicLibrary({ openssl: '4.0.0' }).missing ?? '', /OpenSSL 3\.5/);
});

test.run();
