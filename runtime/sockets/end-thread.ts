/**
 * Ends worker threads. When a thread ends, Node frees what `node:ffi` knows about the functions that the thread used, even
 * if V8 still optimizes code that calls them on another thread. That ends the whole process with a signal. So nothing is
 * optimized from shortly before a thread ends until it has ended.
 */
import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { isDirectIo } from './io-mode.ts';

/** Milliseconds for optimizations that have begun. They usually take less than ten. */
const SETTLE_TIME = 100;

/** Milliseconds after which a thread that does not end no longer keeps the process from optimizing. */
const MAX_HOLD = 5000;

let holders = 0;

/** Ends a thread as a crash would; resolves when it has ended. */
export async function endThread(thread: Worker): Promise<void> {
	// Only direct I/O calls functions by `node:ffi` often enough for V8 to optimize the calls.
	const release = isDirectIo() ? holdOptimizing() : undefined;
	if (release) await new Promise(resolve => setTimeout(resolve, SETTLE_TIME));
	await thread.terminate();
	release?.();
}

/** Returns a function that lets V8 optimize again. */
function holdOptimizing(): () => void {
	// The filter applies to the whole process: no function passes this one.
	if (holders++ === 0) setFlagsFromString('--turbo-filter=~');
	let held = true;
	const release = (): void => {
		if (!held) return;
		held = false;
		clearTimeout(timer);
		if (--holders === 0) setFlagsFromString('--turbo-filter=*');
	};
	const timer = setTimeout(release, MAX_HOLD).unref();
	return release;
}
