/** Keeps TCP handshakes in progress. */
import * as assert from 'uvu/assert';
import { foreignFunctions } from '../../../runtime/sockets/foreign-functions.ts';

const IPPROTO_TCP = 6;
/** With this option, the system completes a handshake only when the client has sent data. */
const TCP_DEFER_ACCEPT = 9;
const LIMIT_SECONDS = 60;

/** Makes the handshakes of a listening socket stay in progress until the client has sent data. Needs Linux and `node:ffi`. */
export function deferHandshakes(descriptor: number): void {
	const ffi = foreignFunctions()!;
	const { lib, functions } = ffi.dlopen(null, {
		setsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'u32'], return: 'i32' },
	});
	const memory = Buffer.allocUnsafeSlow(4);
	memory.writeInt32LE(LIMIT_SECONDS);
	const pointer = ffi.getRawPointer(memory);
	assert.is(functions.setsockopt(descriptor, IPPROTO_TCP, TCP_DEFER_ACCEPT, pointer, memory.length), 0);
	lib.close();
}
