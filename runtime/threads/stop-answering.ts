/** Makes the calling thread stop responding, for tests. */
import { spawnSync } from 'node:child_process';

/**
 * How the thread is stopped: `stall` waits forever, `spin` loops forever, and `block` spends twelve seconds in a system call that
 * cannot be interrupted.
 */
export type StallKind = 'stall' | 'spin' | 'block';

export function stallThread(kind: StallKind): void {
	if (kind === 'stall') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
	else if (kind === 'block') spawnSync('sleep', ['12']);
	else for (;;);
}
