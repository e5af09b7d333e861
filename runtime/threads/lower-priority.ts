/** The priority of a thread against the others of the process. */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Lets the operating system prefer the other threads. Linux only; elsewhere, or when refused, nothing changes. */
export function lowerPriority(nice: number): void {
	try {
		const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
		if (Number.isInteger(thread) && thread > 0) setPriority(thread, nice);
	} catch {
		// Without /proc the thread runs like the others.
	}
}
