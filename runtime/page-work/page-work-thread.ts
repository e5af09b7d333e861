/** The thread that runs expensive template functions one after another, with lower priority than threads that serve requests. */
import type { MessagePort } from 'node:worker_threads';
import { lowerPriority } from '../threads/lower-priority.ts';
import { type ComputedTask, runPageTask } from './do-page-task.ts';

/** A task's result, or the reason why it failed. */
export type PageTaskResult = { readonly result: string } | { readonly failure: string };

/** The thread's nice value, so that templates do not take CPU time from other requests. */
const NICE_VALUE = 5;

/** Runs the tasks that arrive on the port, in order, and posts their results. */
export function runPageWorkThread(port: MessagePort): void {
	lowerPriority(NICE_VALUE);
	port.on('message', (task: ComputedTask) => {
		let answer: PageTaskResult;
		try {
			answer = { result: runPageTask(task) };
		} catch (error) {
			answer = { failure: error instanceof Error ? error.message : String(error) };
		}
		port.postMessage(answer);
	});
}
