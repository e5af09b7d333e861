/** The scheduling priority of a thread within its process. */
import { setPriority } from 'node:os';
import { currentTask } from './current-task.ts';

/** Lowers the current thread's priority. Linux only; elsewhere, or if not permitted, it does nothing. */
export function lowerPriority(nice: number): void {
	const task = currentTask();
	if (task === 0) return;
	try {
		setPriority(task, nice);
	} catch {
		// Not permitted. The thread keeps its normal priority.
	}
}
