/** Raises V8's limit for inlining. */
import { setFlagsFromString } from 'node:v8';

/**
 * Lets V8's optimizing compiler compile the whole path of a request, dozens of calls deep, as one function. By default, it stops
 * inlining at 920 bytes of bytecode in total, and one more call on that path then makes every request slower. At 1840, a request
 * over HTTP/2 takes 7 to 10 % less CPU time. The other rows of the bench do not change measurably.
 *
 * Must be called after the threads have started: V8 ignores the code caches of Node and of the binary once the flag has changed, so
 * each thread started after that takes about 20 ms longer to start.
 */
export function raiseInliningBudget(): void {
	setFlagsFromString('--max-inlined-bytecode-size-cumulative=1840');
}
