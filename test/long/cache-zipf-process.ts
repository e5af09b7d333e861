/**
 * The child process of cache-zipf.test.ts: runs threads that share a cache and prints the result as JSON on standard
 * output.
 *
 * Usage: node --expose-gc test/long/cache-zipf-process.ts <ceiling> <requests> <threads>
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { cacheLayout } from '../../runtime/cache/memory-layout.ts';
import { CacheRegistry } from '../../runtime/main/cache-registry.ts';
import type { ZipfThreadInput, ZipfThreadResult } from './cache-zipf-thread.ts';

export interface ZipfRun extends Omit<ZipfThreadResult, 'hits' | 'counted'> {
	readonly ratio: number;
	readonly entries: number;
	/** Number of bytes in use according to the cache's report. */
	readonly bytes: number;
	/** Number of resident bytes of the cache's shared memory. */
	readonly resident: number;
}

const [ceiling, requests, rows] = process.argv.slice(2).map(Number) as [number, number, number];
const buffer = new SharedArrayBuffer(cacheLayout(ceiling, rows).words * 4);
const registry = new CacheRegistry({ workingDirectory: '/', log: () => {} });
registry.onCacheOpened('cache', { ceiling }, buffer, rows);
const outcomes = await Promise.all(
	Array.from({ length: rows }, async (_, thread) => {
		const order: ZipfThreadInput = { buffer, ceiling, rows, thread, requests: requests / rows };
		const worker = new Worker(new URL('./cache-zipf-thread.ts', import.meta.url), { workerData: order });
		const [outcome] = (await once(worker, 'message')) as [ZipfThreadResult];
		return outcome;
	}),
);
/** Returns the resident bytes of the largest memory mapping, which is the cache's store. */
function residentOfStore(): number {
	const stretches = readFileSync('/proc/self/smaps', 'latin1').matchAll(/^Rss: +(\d+) kB/gm);
	return Math.max(...[...stretches].map(([, rss]) => Number(rss))) * 1024;
}

const [report] = registry.reports();
const sum = (field: 'hits' | 'counted'): number => outcomes.reduce((total, one) => total + one[field], 0);
const most = (field: 'longest' | 'delay99' | 'delayMost'): number => Math.max(...outcomes.map(one => one[field]));
const run: ZipfRun = {
	ratio: sum('hits') / sum('counted'),
	entries: report!.entries,
	bytes: report!.bytes,
	resident: residentOfStore(),
	kept: outcomes.reduce((total, one) => total + one.kept, 0),
	longest: most('longest'),
	delay99: most('delay99'),
	delayMost: most('delayMost'),
};
console.log(JSON.stringify(run));
process.exit();
