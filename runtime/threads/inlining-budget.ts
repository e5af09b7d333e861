/** V8's limit for inlining. */
import { setFlagsFromString } from 'node:v8';

/** V8's default limit, in bytes of bytecode. */
const DEFAULT_BYTES = 920;

/** The limit up to which V8 inlines the whole path of a request, in bytes of bytecode. */
const RAISED_BYTES = 1840;

/**
 * Lets V8's optimizing compiler compile the whole path of a request, dozens of calls deep, as one function. By default, it stops
 * inlining at 920 bytes of bytecode in total, and one more call on that path then makes every request slower. At 1840, a request
 * over HTTP/2 takes 7 to 10 % less CPU time. The results of the other benchmarks do not change measurably.
 *
 * The limit applies to all threads of the process. While it is raised, V8 ignores the code caches of Node and of the binary, so a
 * thread that starts then takes about 0.1 s longer.
 */
export class InliningBudget {
	#isRaised = false;

	/** Raises the limit. Must be called after the threads have started. */
	raise(): void {
		this.#isRaised = true;
		setLimit(RAISED_BYTES);
	}

	/**
	 * Calls a function that starts a thread, and leaves V8's own limit in place until its promise settles, so that the thread can
	 * use code caches. In functions that V8 optimizes in the meantime, about a tenth of a second, fewer calls are inlined.
	 */
	async whileStarting<T>(start: () => Promise<T>): Promise<T> {
		if (!this.#isRaised) return start();
		setLimit(DEFAULT_BYTES);
		try {
			return await start();
		} finally {
			setLimit(RAISED_BYTES);
		}
	}
}

function setLimit(bytes: number): void {
	setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${bytes}`);
}
