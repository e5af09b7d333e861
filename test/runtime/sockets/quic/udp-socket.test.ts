/** UDP sockets on a system that refuses segmentation offload, with or without giving the reason. */
import { createSocket } from 'node:dgram';
import * as assert from 'uvu/assert';
import { type DatagramPath, SENT_DATAGRAM_BYTES } from '../../../../runtime/sockets/quic/datagram-memory.ts';
import type { QuicLibrary } from '../../../../runtime/sockets/quic/quic-library.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import { UdpSocket } from '../../../../runtime/sockets/quic/udp-socket.ts';
import { freePorts, until } from '../../../harness.ts';
import { pollerReady } from '../../protocols/http3/frames.ts';
import { http3Suite } from '../../protocols/http3/http3-suite.ts';

const test = http3Suite('UDP sockets');

test('a path that refuses long writes gets single datagrams, each once; other paths are not concerned', async () => {
	await pollerReady();
	const { library, datagramMemory: datagrams } = quicThread()!;
	const refusing = new Set<bigint>();
	let calls = 0;
	let long = 0;
	const functions = {
		...library.functions,
		sendmmsg(fd: number, at: bigint, count: number, flags: number): number {
			calls++;
			const offset = Number(at - datagrams.outgoingHeaderPointers[0]!);
			const isLong = datagrams.outgoingHeaders.readBigUInt64LE(offset + 24) > 1n;
			if (isLong) long++;
			// As in the kernel, the call fails if the first message cannot be sent.
			if (isLong && refusing.has(datagrams.outgoingHeaders.readBigUInt64LE(offset))) return -1;
			return library.functions.sendmmsg(fd, at, isLong ? 1 : count, flags) as number;
		},
	} as QuicLibrary['functions'];
	const [port] = (await freePorts(1)) as [number];
	const bound = Object.assign(Object.create(library) as QuicLibrary, {
		functions,
		addressOf: library.addressOf.bind(library),
	});
	const socket = new UdpSocket(bound, datagrams, { address: '127.0.0.1', port, only6: false, shared: false });
	const paths: DatagramPath[] = [];
	socket.open({
		onDatagram: (_bytes, _start, _end, name) => void paths.push(socket.pathOf(name)),
		onDatagramsRead() {},
	});
	const got: string[][] = [[], []];
	const peers = [createSocket('udp4'), createSocket('udp4')];
	for (const [i, peer] of peers.entries()) {
		peer.on('message', bytes => got[i]!.push(bytes.toString()));
		peer.send('hello', port, '127.0.0.1');
		await until('the path', () => paths.length === i + 1);
	}
	const send = (path: DatagramPath): void => {
		assert.ok(socket.makeRoom() >= 6);
		assert.is(datagrams.waitingCount, 0);
		for (let i = 0; i < 6; i++)
			datagrams.outgoingLengths[i] = datagrams.outgoingPayloads.write(`n${i}`, i * SENT_DATAGRAM_BYTES);
		socket.appendWaiting(path, 6);
		socket.flush();
	};
	const all = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'];
	refusing.add(paths[0]!.peerPointer);
	send(paths[0]!);
	await until('all of them', () => got[0]!.length >= 6);
	assert.equal(got[0], all);
	assert.is(socket.lostCount, 0);
	assert.is(long, 1);
	// For a while, no segmentation is attempted for datagrams to this address.
	send(paths[0]!);
	assert.is(long, 1);
	calls = 0;
	send(paths[1]!);
	assert.is(long, 2, 'the other path lost its long writes');
	assert.is(calls, 1);
	await until('all of them', () => got[1]!.length >= 6);
	assert.equal(got[1], all);
	// When this time has passed, segmentation is attempted again.
	refusing.clear();
	paths[0]!.withoutGsoUntil = performance.now();
	send(paths[0]!);
	assert.is(long, 3);
	await until('all of them', () => got[0]!.length >= 18);
	socket.close();
	for (const peer of peers) peer.close();
});

test.run();
