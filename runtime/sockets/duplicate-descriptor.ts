/**
 * A second descriptor of a socket. Each thread listens on one of its own: a thread that ends closes it, and those of the
 * others stay. Node has no way to make one, but calls the C library.
 */

import { closeSync, fstatSync, openSync } from 'node:fs';
import { foreignFunctions } from './foreign-functions.ts';

/** `fcntl` command of Linux: the duplicate does not pass to child processes. */
const F_DUPFD_CLOEXEC = 1030;

/** Duplicates a descriptor. Throws an error with the system's code: EBADF, or ENOSYS where Node cannot do it. */
export function duplicateDescriptor(descriptor: number): number {
	const ffi = foreignFunctions();
	if (ffi === undefined) throw Object.assign(new Error('Node 26.10 or later is needed.'), { code: 'ENOSYS' });
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
	throw Object.assign(new Error('The descriptor cannot be duplicated.'), { code: 'EBADF' });
}

/**
 * Lets a descriptor mean the null device instead of the socket of which `copy` is a duplicate. Does nothing if the descriptor
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

/** Closes a duplicate that nobody has taken over: Node closes those that it has, and not those whose kind it refuses. */
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
