/** The compile thread: answers requests of the main thread about the configuration. */
import type { MessagePort } from 'node:worker_threads';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { lowerPriority } from '../threads/lower-priority.ts';
import { startReclaimingThreadMemory } from '../threads/memory-reclaimer.ts';
import { ThreadActivity } from '../threads/thread-activity.ts';
import { Compilation, type CompilationStart } from './compilation.ts';
import type { CompilerReply, CompilerRequest } from './compiler-messages.ts';

/** Start parameters of the thread. */
export interface CompilerStart extends CompilationStart {
	/** The shared memory of the thread's {@link ThreadActivity}. */
	readonly activity: SharedArrayBuffer;
	/** The shared memory of the thread's {@link ThreadVitals}. */
	readonly vitals: SharedArrayBuffer;
}

/**
 * Nice value of the thread, so that requests take slight precedence. With a value of 5, compiling ten thousand sites on busy cores
 * took seconds longer.
 */
const NICE_VALUE = 1;

/** Serves requests of the main thread until the main thread ends this thread. */
export function runCompilerThread(port: MessagePort, startData: CompilerStart): void {
	lowerPriority(NICE_VALUE);
	const activity = new ThreadActivity(startData.activity);
	activity.sendHeartbeat();
	startReclaimingThreadMemory();
	const compilation = new Compilation(startData);
	const vitals = new ThreadVitals(startData.vitals);
	port.on('message', async (request: CompilerRequest) => {
		activity.sendHeartbeat();
		vitals.recordIfWanted();
		let reply: CompilerReply;
		try {
			reply = { id: request.id, answer: await compilation.answer(request) };
		} catch (error) {
			const { message, stack } = error instanceof Error ? error : new Error(String(error));
			reply = { id: request.id, failure: message, ...(stack === undefined ? {} : { stack }) };
		}
		// The buffer is transferred, not copied, because only the main thread keeps the latest document.
		port.postMessage(reply, reply.answer instanceof ArrayBuffer ? [reply.answer] : []);
	});
}
