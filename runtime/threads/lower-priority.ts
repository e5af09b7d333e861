/** The scheduling priority of a thread within its process. */
import { setPriority } from 'node:os';
import { currentThreadId } from './current-task.ts';

/** Lowers the current thread's priority. Linux only; elsewhere, or if not permitted, it does nothing. */
export function lowerPriority(niceValue: number): void {
	const threadId = currentThreadId();
	if (threadId === 0) return;
	try {
		setPriority(threadId, niceValue);
	} catch {
		// The change is not permitted, so the thread keeps its normal priority.
	}
}
