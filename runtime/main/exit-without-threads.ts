/** The end of a process that has a thread which cannot be ended: Node would wait for it without an end. */
import { foreignFunctions } from '../sockets/foreign-functions.ts';

/** Ends the process with that status at once. Where the system call cannot be made, a signal ends it instead. */
export function exitWithoutThreads(status: number): void {
	try {
		const library = foreignFunctions()?.dlopen(null, { _exit: { arguments: ['i32'], return: 'void' } });
		library?.functions._exit(status);
	} catch {
		// No such function here.
	}
	process.kill(process.pid, 'SIGKILL');
}
