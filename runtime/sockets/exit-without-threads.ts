/** Ends a process that has a thread which cannot be terminated. Node's own exit would wait for that thread forever. */
import { foreignFunctions } from './foreign-functions.ts';

/** Ends the process immediately with this exit status, or with a signal if the system call is not available. */
export function exitWithoutThreads(status: number): void {
	try {
		const library = foreignFunctions()?.dlopen(null, { _exit: { arguments: ['i32'], return: 'void' } });
		library?.functions._exit(status);
	} catch {
		// The function does not exist on this platform.
	}
	process.kill(process.pid, 'SIGKILL');
}
