/**
 * Duplicates file descriptors. Each thread listens on its own, because a thread that ends closes its descriptors. Node has no
 * function for this, so `node:ffi` is used even with `node` I/O; without it, pass-socket.ts does the same more slowly.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { foreignFunctions } from './foreign-functions.ts';

/** `fcntl` command of Linux: child processes do not inherit the duplicate. */
const F_DUPFD_CLOEXEC = 1030;

/** Reports whether {@link duplicateDescriptor} is available. */
export function canDuplicate(): boolean {
	return foreignFunctions() !== undefined;
}

/** Duplicates a descriptor. Throws an error with the system's code: EBADF, or ENOSYS if not available. */
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

/** Returns the descriptor of a listening server, which Node keeps in a private property. Throws ENOSYS if there is none. */
export function descriptorOf(server: Server): number {
	const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd?: number } | null };
	if (typeof handle?.fd !== 'number') throw systemFailure('ENOSYS');
	return handle.fd;
}

/**
 * Redirects a descriptor to the null device if it is the socket of which `copy` is a duplicate. Does nothing otherwise, or if
 * not available.
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
		// Already closed, or no descriptor is free.
	} finally {
		lib.close();
	}
}

/** Closes a duplicate that Node may have refused to adopt, because Node closes only descriptors that it has adopted. */
export function closeDuplicate(copy: number, original: number): void {
	try {
		if (isSame(copy, original)) closeSync(copy);
	} catch {
		// Already closed.
	}
}

function isSame(a: number, b: number): boolean {
	const [one, other] = [fstatSync(a), fstatSync(b)];
	return one.ino === other.ino && one.dev === other.dev;
}

function systemFailure(code: string): Error {
	return Object.assign(new Error(code), { code });
}
