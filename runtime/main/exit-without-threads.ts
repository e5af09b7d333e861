/** Ends a process with a thread that cannot be ended; Node would wait for it forever. */
import { foreignFunctions } from '../sockets/foreign-functions.ts';

/** Ends the process at once with this status, or with a signal if the system call is not available. */
export function exitWithoutThreads(status: number): void {
	try {
		const library = foreignFunctions()?.dlopen(null, { _exit: { arguments: ['i32'], return: 'void' } });
		library?.functions._exit(status);
	} catch {
		// No such function on this platform.
	}
	process.kill(process.pid, 'SIGKILL');
}
