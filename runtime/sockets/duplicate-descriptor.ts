/**
 * Duplicates file descriptors. Each thread listens on a descriptor of its own, because a thread that ends closes its descriptors.
 * Node has no function for duplicating, so `node:ffi` is used even in `node` I/O mode. Without `node:ffi`, pass-socket.ts is the
 * slower replacement.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Server } from 'node:net';
import { foreignFunctions } from './foreign-functions.ts';

/** Command of `fcntl` on Linux that duplicates a descriptor. Child processes do not inherit the duplicate. */
const F_DUPFD_CLOEXEC = 1030;

/** Flags of `eventfd` on Linux: child processes do not inherit the descriptor, and a read does not wait. */
const EFD_CLOEXEC_NONBLOCK = 0o2004000;

/** Reports whether {@link duplicateDescriptor} is available. */
export function canDuplicateDescriptors(): boolean {
	return foreignFunctions() !== undefined;
}

/** Duplicates a descriptor. Throws an error with the system's code, such as EBADF, or with ENOSYS if not available. */
export function duplicateDescriptor(descriptor: number): number {
	const ffi = foreignFunctions();
	if (ffi === undefined) throw systemFailure('ENOSYS');
	const { lib, functions } = ffi.dlopen(null, {
		dup: { arguments: ['i32'], return: 'i32' },
		fcntl: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
	});
	try {
		const duplicate =
			process.platform === 'linux' ? functions.fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : functions.dup(descriptor);
		if (duplicate >= 0) return duplicate;
	} finally {
		lib.close();
	}
	throw systemFailure('EBADF');
}

/**
 * Returns the descriptor of a listening server, which Node keeps in a private property. Throws ENOSYS if this release of Node
 * does not have it.
 */
export function descriptorOf(server: Server): number {
	const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd?: number } | null };
	if (typeof handle?.fd !== 'number') throw systemFailure('ENOSYS');
	return handle.fd;
}

/**
 * If a descriptor refers to the same socket as `duplicate`, redirects it to something that never becomes readable. Otherwise, or
 * if redirecting is not possible here, does nothing.
 *
 * On Linux, the descriptor is redirected to an `eventfd`. The null device would end the process if the thread that owns the
 * descriptor has not polled it yet: `epoll_ctl` refuses the null device, and libuv aborts if `epoll_ctl` fails.
 */
export function detachDescriptor(descriptor: number, duplicate: number): void {
	const ffi = foreignFunctions();
	if (ffi === undefined) return;
	const { lib, functions } = ffi.dlopen(null, { dup2: { arguments: ['i32', 'i32'], return: 'i32' } });
	try {
		if (!isSameFile(descriptor, duplicate)) return;
		const silentDescriptor = process.platform === 'linux' ? openEventDescriptor() : openSync('/dev/null', 'r');
		functions.dup2(silentDescriptor, descriptor);
		closeSync(silentDescriptor);
	} catch {
		// `descriptor` is already closed, or no descriptor is free for the replacement.
	} finally {
		lib.close();
	}
}

/** Opens an `eventfd`, which `epoll` accepts. It never becomes readable, because nothing writes to it. */
function openEventDescriptor(): number {
	const { lib, functions } = foreignFunctions()!.dlopen(null, {
		eventfd: { arguments: ['u32', 'i32'], return: 'i32' },
	});
	try {
		const descriptor = functions.eventfd(0, EFD_CLOEXEC_NONBLOCK);
		if (descriptor >= 0) return descriptor;
	} finally {
		lib.close();
	}
	throw systemFailure('EMFILE');
}

/**
 * Makes `target` refer to what `descriptor` refers to, and closes `descriptor`. Throws an error with the system's code, or with
 * ENOSYS if not available.
 */
export function replaceDescriptor(target: number, descriptor: number): void {
	const ffi = foreignFunctions();
	if (ffi === undefined) throw systemFailure('ENOSYS');
	const { lib, functions } = ffi.dlopen(null, { dup2: { arguments: ['i32', 'i32'], return: 'i32' } });
	try {
		if (functions.dup2(descriptor, target) < 0) throw systemFailure('EBADF');
		closeSync(descriptor);
	} finally {
		lib.close();
	}
}

/**
 * Closes a duplicate on which Node could not listen. Node may already have adopted and closed the duplicate, and its number may
 * belong to something else by now, so it is closed only if it still refers to the same socket as `original`.
 */
export function closeDuplicate(duplicate: number, original: number): void {
	try {
		if (isSameFile(duplicate, original)) closeSync(duplicate);
	} catch {
		// The descriptor is already closed.
	}
}

function isSameFile(a: number, b: number): boolean {
	const [statA, statB] = [fstatSync(a), fstatSync(b)];
	return statA.ino === statB.ino && statA.dev === statB.dev;
}

function systemFailure(code: string): Error {
	return Object.assign(new Error(code), { code });
}
