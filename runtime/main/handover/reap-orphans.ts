/** Reaps children that are not ours: whose parent has ended, and that the system has given to us. */
import { type ForeignFunction, foreignFunctions, loadForeignFunctions } from '../../sockets/foreign-functions.ts';

/** Returns at once if no child has ended. */
const WNOHANG = 1;

let waitpid: ForeignFunction | undefined;

/** Reaps every child that has ended; only for a process that awaits no children of its own any more. */
export function reapOrphans(): void {
	const ffi = foreignFunctions();
	if (!ffi) return;
	waitpid ??= loadForeignFunctions(ffi, { waitpid: { arguments: ['i32', 'u64', 'i32'], return: 'i32' } }).waitpid;
	while (Number(waitpid(-1, 0n, WNOHANG)) > 0);
}
