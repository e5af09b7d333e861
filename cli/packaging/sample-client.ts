/**
 * Sends requests to a server on the same thread while code caches are made. The client makes blocking system calls instead of
 * using the event loop, so a request has arrived before the server accepts the connection, and the server runs the same code in
 * every build.
 */
import { monotonicNowMs } from '../../runtime/clock/clock.ts';
import {
	type ForeignFunction,
	foreignFunctions,
	loadForeignFunctions,
} from '../../runtime/sockets/foreign-functions.ts';
import { SOCKET_ADDRESS_BYTES } from '../../runtime/sockets/socket-address.ts';

const AF_INET = 2;
const SOCK_STREAM = 1;
/** Flags of `send` and `recv`: MSG_NOSIGNAL (here) and MSG_DONTWAIT (below). */
const NO_SIGNAL = 0x4000;
const DO_NOT_WAIT = 0x40;
const RESPONSE_BYTES = 4096;

/** Two requests over one connection, which the server closes after the second. */
const REQUESTS: readonly string[] = [
	'GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: sample\r\nAccept: */*\r\n\r\n',
	'GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: sample\r\nConnection: close\r\n\r\n',
];

/** Maximum milliseconds until the server has answered everything. It takes a fraction of a second, unless it hangs. */
const TIME_LIMIT_MS = 60_000;

/**
 * Sends {@link REQUESTS} to the address of a listening socket. Resolves after the server has closed the connection. Throws if that
 * takes longer than a minute on the clock `now`, which by default is the only one that is not a fake while code caches are made.
 */
export async function sendSampleRequests(
	listeningDescriptor: number,
	now: () => number = monotonicNowMs,
): Promise<void> {
	const ffi = foreignFunctions()!;
	const addressOf = (buffer: Buffer): bigint => ffi.getRawPointer(buffer);
	const calls = loadForeignFunctions(ffi, {
		socket: { return: 'int32', arguments: ['int32', 'int32', 'int32'] },
		getsockname: { return: 'int32', arguments: ['int32', 'uint64', 'uint64'] },
		connect: { return: 'int32', arguments: ['int32', 'uint64', 'uint32'] },
		send: { return: 'int64', arguments: ['int32', 'uint64', 'uint64', 'int32'] },
		recv: { return: 'int64', arguments: ['int32', 'uint64', 'uint64', 'int32'] },
	});
	const call = (name: keyof typeof calls, ...values: Parameters<ForeignFunction>): void => {
		if (Number(calls[name](...values)) < 0) throw new Error(`${name} failed in the sample client.`);
	};
	const address = Buffer.alloc(SOCKET_ADDRESS_BYTES);
	const addressSize = Buffer.alloc(4);
	addressSize.writeUInt32LE(SOCKET_ADDRESS_BYTES);
	call('getsockname', listeningDescriptor, addressOf(address), addressOf(addressSize));
	const connection = Number(calls.socket(AF_INET, SOCK_STREAM, 0));
	call('connect', connection, addressOf(address), addressSize.readUInt32LE());
	const response = Buffer.alloc(RESPONSE_BYTES);
	const deadline = now() + TIME_LIMIT_MS;
	/**
	 * Resolves to the number of bytes that the server has sent, once there are any, and to 0 when it closes the connection. `expected`
	 * says in an error what the server has not done.
	 */
	const receive = async (expected: string): Promise<number> => {
		for (;;) {
			const received = Number(calls.recv(connection, addressOf(response), BigInt(response.length), DO_NOT_WAIT));
			if (received >= 0) return received;
			if (now() >= deadline)
				throw new Error(`The server of the sample did not ${expected} within ${TIME_LIMIT_MS / 1000} seconds.`);
			await new Promise(resolve => setImmediate(resolve));
		}
	};
	for (const [index, text] of REQUESTS.entries()) {
		const request = Buffer.from(text);
		call('send', connection, addressOf(request), BigInt(request.length), NO_SIGNAL);
		const received = await receive(`answer request ${index + 1} of ${REQUESTS.length}`);
		const head = response.toString('latin1', 0, received);
		if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`The sample was answered with:\n${head}`);
	}
	if ((await receive('close the connection')) !== 0)
		throw new Error('The server of the sample did not close the connection.');
}
