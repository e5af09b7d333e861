/**
 * Terminates worker threads. When a thread ends, Node frees its data about the `node:ffi` functions that the thread used, even if
 * V8, on another thread, is optimizing code that calls them. The whole process would then crash. Therefore nothing is optimized
 * from shortly before a thread ends until it has ended.
 */
import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { isDirectIo } from './io-mode.ts';

/** Milliseconds that optimizations already in progress are given to finish. They usually take less than ten. */
const SETTLE_MS = 100;

/** After this many milliseconds, optimization is allowed again even if the thread has not ended. */
const MAX_SUSPENSION_MS = 5000;

let suspensionCount = 0;

/** Terminates a thread, as a crash would. Resolves when it has ended. */
export async function endThread(thread: Worker): Promise<void> {
	// Only in direct I/O mode are `node:ffi` functions called often enough for V8 to optimize the calls.
	const resumeOptimization = isDirectIo() ? suspendOptimization() : undefined;
	if (resumeOptimization) await new Promise(resolve => setTimeout(resolve, SETTLE_MS));
	await thread.terminate();
	resumeOptimization?.();
}

/** Stops V8 from optimizing functions. Returns a function that ends this suspension. */
function suspendOptimization(): () => void {
	// This filter matches no function. It applies to the whole process.
	if (suspensionCount++ === 0) setFlagsFromString('--turbo-filter=~');
	let isSuspended = true;
	const resumeOptimization = (): void => {
		if (!isSuspended) return;
		isSuspended = false;
		clearTimeout(timer);
		if (--suspensionCount === 0) setFlagsFromString('--turbo-filter=*');
	};
	const timer = setTimeout(resumeOptimization, MAX_SUSPENSION_MS).unref();
	return resumeOptimization;
}
