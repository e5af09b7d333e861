/**
 * Duplicates of descriptors. Each thread listens on one of its own, because a thread that ends closes its descriptors. Node has
 * no function for it, so `node:ffi` is used here with `node` I/O too; where it is missing, pass-socket.ts does the same more
 * slowly.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { foreignFunctions } from './foreign-functions.ts';

/** `fcntl` command of Linux: child processes do not inherit the duplicate. */
const F_DUPFD_CLOEXEC = 1030;

/** Reports whether {@link duplicateDescriptor} works here. */
export function canDuplicate(): boolean {
	return foreignFunctions() !== undefined;
}

/** Duplicates a descriptor. Throws an error with the system's code: EBADF, or ENOSYS where Node cannot do it. */
export function duplicateDescriptor(descriptor: number): number {
	const ffi = foreignFunctions();
	if (ffi === undefined) throw systemFailure('ENOSYS');
	const { lib, functions } = ffi.dlopen(null, {
		dup: { arguments: ['i32'], return: 'i32' },
		fcntl: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
	});
	try {
		const copy =
			process.platform === 'linux' ? functions.fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : functions.dup(descriptor);
		if (copy >= 0) return copy;
	} finally {
		lib.close();
	}
	throw systemFailure('EBADF');
}

/** Returns the descriptor of a listening server, which Node keeps in a private property. Throws ENOSYS where there is none. */
export function descriptorOf(server: Server): number {
	const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd?: number } | null };
	if (typeof handle?.fd !== 'number') throw systemFailure('ENOSYS');
	return handle.fd;
}

/**
 * Makes a descriptor mean the null device instead of the socket of which `copy` is a duplicate. Does nothing if the descriptor
 * is not that socket any more, or where Node cannot do it.
 */
export function detachDescriptor(descriptor: number, copy: number): void {
	const ffi = foreignFunctions();
	if (ffi === undefined) return;
	const { lib, functions } = ffi.dlopen(null, { dup2: { arguments: ['i32', 'i32'], return: 'i32' } });
	try {
		if (!isSame(descriptor, copy)) return;
		const nothing = openSync('/dev/null', 'r');
		functions.dup2(nothing, descriptor);
		closeSync(nothing);
	} catch {
		// Closed already, or no descriptor is left.
	} finally {
		lib.close();
	}
}

/** Closes a duplicate that Node may have refused to take over: Node closes only the descriptors that it takes. */
export function closeDuplicate(copy: number, original: number): void {
	try {
		if (isSame(copy, original)) closeSync(copy);
	} catch {
		// Closed already.
	}
}

function isSame(a: number, b: number): boolean {
	const [one, other] = [fstatSync(a), fstatSync(b)];
	return one.ino === other.ino && one.dev === other.dev;
}

function systemFailure(code: string): Error {
	return Object.assign(new Error(code), { code });
}
