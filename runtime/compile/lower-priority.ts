/** The priority of a thread against the others of the process. */
import { setPriority } from 'node:os';
import { currentTask } from '../threads/current-task.ts';

/** Lets the operating system prefer the other threads. Linux only; elsewhere, or when refused, nothing changes. */
export function lowerPriority(nice: number): void {
	const task = currentTask();
	if (task === 0) return;
	try {
		setPriority(task, nice);
	} catch {
		// Refused: the thread runs like the others.
	}
}
