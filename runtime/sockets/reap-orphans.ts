/** Reaps orphans: child processes whose parent has exited, and which the system has assigned to this process. */
import { type ForeignFunction, foreignFunctions, loadForeignFunctions } from './foreign-functions.ts';

/** Flag of `waitpid`: the call returns immediately if no child process has exited. */
const WNOHANG = 1;

let waitpid: ForeignFunction | undefined;

/** Reaps every child process that has exited. Only for a process that no longer waits for children of its own. */
export function reapOrphans(): void {
	const ffi = foreignFunctions();
	if (!ffi) return;
	waitpid ??= loadForeignFunctions(ffi, { waitpid: { arguments: ['i32', 'u64', 'i32'], return: 'i32' } }).waitpid;
	while (Number(waitpid(-1, 0n, WNOHANG)) > 0);
}
