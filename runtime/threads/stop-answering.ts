/** Lets the calling thread stop answering, for tests of what becomes of a server then. */
import { spawnSync } from 'node:child_process';

/** It waits, or runs without an end, or is for twelve seconds inside a system call that nothing can interrupt. */
export type Stall = 'stall' | 'spin' | 'block';

export function stopAnswering(how: Stall): void {
	if (how === 'stall') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
	else if (how === 'block') spawnSync('sleep', ['12']);
	else for (;;);
}
