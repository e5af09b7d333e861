/** The operating system's ID of the calling thread. */
import { readlinkSync } from 'node:fs';

/** Returns the operating system's ID of the calling thread; 0 if there is no /proc. */
export function currentThreadId(): number {
	try {
		return Number(readlinkSync('/proc/thread-self').split('/').at(-1)) || 0;
	} catch {
		return 0;
	}
}
