/** Keeps new connections away from a listening socket, without losing those that it has already. */
import { foreignFunctions } from './foreign-functions.ts';

const SOL_SOCKET = 1;
/** Socket option of Linux that restricts a socket to one network interface, given by its index. */
const SO_BINDTOIFINDEX = 62;
/** An index that no interface has. */
const NO_INTERFACE = 0x7fffffff;

/**
 * Makes the system pass no new connections to TCP listening sockets. Clients that connect from now on reach another socket that
 * listens on the port, or are refused. Handshakes that have begun go on, and connections that wait are still accepted. This cannot be
 * undone, and holds for all duplicates of the descriptors.
 *
 * The sockets are bound to an interface that does not exist. Linux looks for a listening socket only when a SYN arrives, and compares
 * interfaces only then.
 *
 * Returns false if the system does not allow it: systems other than Linux, and Linux before 5.7 without CAP_NET_RAW.
 */
export function divertConnections(descriptors: readonly number[]): boolean {
	const ffi = foreignFunctions();
	if (ffi === undefined || process.platform !== 'linux') return false;
	const { lib, functions } = ffi.dlopen(null, {
		setsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'u32'], return: 'i32' },
	});
	try {
		const value = Buffer.allocUnsafeSlow(4);
		value.writeInt32LE(NO_INTERFACE);
		const pointer = ffi.getRawPointer(value);
		return descriptors
			.map(descriptor => functions.setsockopt(descriptor, SOL_SOCKET, SO_BINDTOIFINDEX, pointer, value.length))
			.every(status => status === 0);
	} finally {
		lib.close();
	}
}
