/** The thread that does work for pages: one task after the other, behind the threads that serve requests. */
import type { MessagePort } from 'node:worker_threads';
import { lowerPriority } from '../compile/lower-priority.ts';
import { type ComputedTask, doPageTask } from './do-page-task.ts';

/** What became of a task: its result, or why there is none. */
export type PageAnswer = { readonly result: string } | { readonly failure: string };

/** Nice value of the thread: pages must not cost other requests their processor. */
const NICE = 5;

/** Answers every task, in order. */
export function runPageWorkThread(port: MessagePort): void {
	lowerPriority(NICE);
	port.on('message', (task: ComputedTask) => {
		let answer: PageAnswer;
		try {
			answer = { result: doPageTask(task) };
		} catch (error) {
			answer = { failure: error instanceof Error ? error.message : String(error) };
		}
		port.postMessage(answer);
	});
}
