/** The limit on open file descriptors, and how many client connections it allows. */
import { readFileSync } from 'node:fs';

/** Minimum number of descriptors reserved for other purposes: the Admin API, logs, files, upstreams. */
const MIN_RESERVED_DESCRIPTORS = 192;

/** Returns the process's limit of open files; undefined if the system does not report it. */
export function descriptorLimit(): number | undefined {
	try {
		const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
		return limit === undefined ? undefined : Number(limit);
	} catch {
		return undefined;
	}
}

/**
 * Returns the maximum number of client connections for each of `threadCount` threads. The remaining descriptors are reserved for
 * other purposes.
 */
export function maxConnectionsPerThread(maxDescriptors: number | undefined, threadCount: number): number {
	if (maxDescriptors === undefined) return Infinity;
	return Math.max(
		16,
		Math.floor((maxDescriptors - Math.max(MIN_RESERVED_DESCRIPTORS, maxDescriptors / 10)) / threadCount),
	);
}
