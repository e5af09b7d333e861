/** The settings of V8's optimizing compiler. */
import { setFlagsFromString } from 'node:v8';

/** V8's flags, with V8's own values and those that apply while the process serves. */
const FLAGS: readonly { readonly name: string; readonly initial: number; readonly serving: number }[] = [
	// The limit for inlining, in bytes of bytecode in total. By default, inlining ends in the middle of a request's path, and one
	// more call on that path then makes every request slower. At 1840, V8 compiles the whole path, dozens of calls deep, as one
	// function: a request over HTTP/2 takes 7 to 10 % less CPU time. The results of the other benchmarks do not change measurably.
	{ name: 'max-inlined-bytecode-size-cumulative', initial: 920, serving: 1840 },
	// The number of calls after which a function is optimized. Only optimized code calls C functions directly; in other code, each
	// such call takes several times as long, and a TLS handshake has 29 of them. By default, none of them is direct before 1,700
	// handshakes, and all are after 6,000; at 1000, all are after 2,700. V8's own value, 16000, is that of a V8 with Maglev, whose list of
	// options names the value without.
	{ name: 'invocation-count-for-turbofan', initial: 16000, serving: 1000 },
];

/**
 * Sets V8's optimizing compiler for the code of a server, which is called again and again.
 *
 * The settings apply to all threads of the process. While they differ from V8's own, V8 ignores the code caches of Node and of the
 * binary, so a thread that starts then takes about 0.1 s longer, and a worker that loads parts of its code for a configuration that
 * needs them keeps its requests waiting for up to 0.1 s longer.
 */
export class OptimizerSettings {
	#isServing = false;
	/** Number of calls of {@link whileStarting} whose promises have not settled. */
	#pendingStarts = 0;

	/** Applies the settings for serving. Must be called after the threads have started. */
	applyForServing(): void {
		this.#isServing = true;
		setFlags('serving');
	}

	/**
	 * Calls a function that starts threads or makes them load code, and applies V8's own settings until its promise settles, so that
	 * they can use code caches. Functions that V8 optimizes in the meantime, about a tenth of a second, are optimized as by default.
	 */
	async whileStarting<T>(start: () => Promise<T>): Promise<T> {
		if (!this.#isServing) return start();
		if (this.#pendingStarts++ === 0) setFlags('initial');
		try {
			return await start();
		} finally {
			if (--this.#pendingStarts === 0) setFlags('serving');
		}
	}
}

function setFlags(phase: 'initial' | 'serving'): void {
	for (const flag of FLAGS) setFlagsFromString(`--${flag.name}=${flag[phase]}`);
}
