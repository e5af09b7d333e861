/**
 * Measures how fast this machine computes at the moment, compared with the reference machine, for which the bounds of timed tests
 * were chosen.
 */
import { createHash } from 'node:crypto';

/** Processor time of {@link workload} on the reference machine without other load, in milliseconds. */
const REFERENCE_MS = 90;

/** Parses, sorts, searches and hashes texts, in about the same proportions as a compiler. Runs no code of the server. */
function workload(): void {
	const lines = Array.from({ length: 20_000 }, (_, i) => `site${(i * 7919) % 20_000}.example.com /path/${i} ${i % 97}`);
	const records = lines.map((line, i) => ({ line, words: line.split(/[ ./]/), at: i }));
	const copies = JSON.parse(JSON.stringify(records)) as typeof records;
	copies.sort((a, b) => (a.line < b.line ? -1 : 1));
	const byWord = new Map<string, number>();
	for (const { words } of copies) for (const word of words) byWord.set(word, (byWord.get(word) ?? 0) + 1);
	createHash('sha256')
		.update(JSON.stringify([...byWord]))
		.digest('hex');
}

/**
 * Returns the processor time that the workload takes at the moment, as a multiple of its time on the reference machine; at least
 * 1. Slower processors and other programs that share a core or its caches increase it.
 */
export function machineSlowness(): number {
	// The first runs include the compilation of the workload, so they are not measured.
	for (let i = 0; i < 3; i++) workload();
	const times = Array.from({ length: 7 }, () => {
		const before = process.threadCpuUsage();
		workload();
		const { user, system } = process.threadCpuUsage(before);
		return (user + system) / 1000;
	}).toSorted((a, b) => a - b);
	return Math.max(1, times[3]! / REFERENCE_MS);
}
