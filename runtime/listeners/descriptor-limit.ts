/** How many files and sockets the process may have open, and how many connections of clients that leaves room for. */
import { readFileSync } from 'node:fs';

/** Descriptors kept for what is not a client's connection: the Admin API, logs, files, upstreams. */
const LEAST_KEPT = 192;

/** The process's limit of open files; undefined where the system does not say. */
export function descriptorLimit(): number | undefined {
	try {
		const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
		return limit === undefined ? undefined : Number(limit);
	} catch {
		return undefined;
	}
}

/** Connections of clients that one of `threads` threads may have: the rest of the limit stays free. */
export function connectionRoom(limit: number | undefined, threads: number): number {
	if (limit === undefined) return Infinity;
	return Math.max(16, Math.floor((limit - Math.max(LEAST_KEPT, limit / 10)) / threads));
}
