/**
 * A worker thread that sends datagrams from many addresses at a given rate. When it gets a message, it stops and answers with the
 * number of datagrams sent.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { foreignFunctions, loadForeignFunctions } from '../../../../runtime/sockets/foreign-functions.ts';
import { writeSocketAddress } from '../../../../runtime/sockets/socket-address.ts';

/** The instructions to the worker. */
export interface FloodOrder {
	readonly packets: readonly Uint8Array[];
	readonly port: number;
	/** Number of datagrams per second. */
	readonly rate: number;
	/** IPv4 addresses to send from, one after the other. */
	readonly from: readonly string[];
}

const define = (result: string, ...takes: string[]) => ({ return: result, arguments: takes });
const ffi = foreignFunctions()!;
const f = loadForeignFunctions(ffi, {
	socket: define('int32', 'int32', 'int32', 'int32'),
	bind: define('int32', 'int32', 'pointer', 'uint32'),
	connect: define('int32', 'int32', 'pointer', 'uint32'),
	close: define('int32', 'int32'),
	sendmmsg: define('int32', 'int32', 'pointer', 'uint32', 'int32'),
});
const { packets, port, rate, from } = workerData as FloodOrder;
const BATCH = 16;
const MESSAGE = 64;
const AF_INET = 2;
const SOCK_DGRAM_NONBLOCK = 2 | 0o4000 | 0o2000000;

function pinned(bytes: Uint8Array): Buffer {
	const copy = Buffer.allocUnsafeSlow(bytes.length);
	copy.set(bytes);
	return copy;
}

const kept = packets.map(pinned);
const parts = Buffer.allocUnsafeSlow(kept.length * 16);
const messages = Buffer.allocUnsafeSlow(kept.length * MESSAGE).fill(0);
const messagesAt = ffi.getRawPointer(messages) as bigint;
/**
 * Memory whose addresses are passed to the kernel. A function must refer to it, because it would otherwise be garbage-collected.
 */
const memory = [parts, messages];
for (const [i, packet] of kept.entries()) {
	parts.writeBigUInt64LE(ffi.getRawPointer(packet), i * 16);
	parts.writeBigUInt64LE(BigInt(packet.length), i * 16 + 8);
	messages.writeBigUInt64LE(ffi.getRawPointer(parts) + BigInt(i * 16), i * MESSAGE + 16);
	messages.writeBigUInt64LE(1n, i * MESSAGE + 24);
}
const target = pinned(writeSocketAddress('127.0.0.1', port)!);
const sockets = from.map(address => {
	const fd = f.socket(AF_INET, SOCK_DGRAM_NONBLOCK, 0) as number;
	const own = pinned(writeSocketAddress(address, 0)!);
	f.bind(fd, ffi.getRawPointer(own), own.length);
	f.connect(fd, ffi.getRawPointer(target), target.length);
	return fd;
});

let sent = 0;
let running = true;
parentPort!.once('message', () => {
	running = false;
});
const startedAt = performance.now();
let turns = 0;
/**
 * Maximum milliseconds of one turn. Without it, a sender that is slower than the rate would make each turn longer than the turn
 * before, and would read the message that stops it only after minutes.
 */
const MAX_TURN_MS = 20;

function turn(): void {
	const turnStart = performance.now();
	const due = ((turnStart - startedAt) * rate) / 1000;
	while (sent < due && memory.length > 0 && performance.now() - turnStart < MAX_TURN_MS) {
		const at = (turns * BATCH) % (kept.length - (kept.length % BATCH));
		f.sendmmsg(sockets[turns % sockets.length]!, messagesAt + BigInt(at * MESSAGE), BATCH, 0);
		// Datagrams that the kernel did not accept count as sent, because a flood does not repeat them.
		sent += BATCH;
		turns++;
	}
	if (running) setTimeout(turn, 1);
	else {
		for (const fd of sockets) f.close(fd);
		parentPort!.postMessage(sent);
	}
}
turn();
