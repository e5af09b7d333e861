/** The number by which the operating system knows the calling thread. */
import { readlinkSync } from 'node:fs';

/** Returns the number; 0 where there is no /proc. */
export function currentTask(): number {
	try {
		return Number(readlinkSync('/proc/thread-self').split('/').at(-1)) || 0;
	} catch {
		return 0;
	}
}
