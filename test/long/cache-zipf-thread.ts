/** A worker thread of cache-zipf.test.ts: performs its share of the lookups and stores on the shared cache. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import { SharedCache } from '../../runtime/cache/shared-cache.ts';
import { responseSizeForRank, zipfTrace } from '../zipf-trace.ts';

/** The shared cache, and the part of the requests that the thread performs. */
export interface ZipfThreadInput {
	readonly buffer: SharedArrayBuffer;
	readonly ceiling: number;
	readonly rows: number;
	readonly thread: number;
	readonly requests: number;
}

/** The thread's results; times in milliseconds. */
export interface ZipfThreadResult {
	/** Number of cache hits, not counting the first third of the requests. */
	readonly hits: number;
	readonly counted: number;
	/** CPU time of the most expensive request, in milliseconds. */
	readonly longest: number;
	/** 99th percentile and maximum (`delayMost`) of event-loop delays, in milliseconds. */
	readonly delay99: number;
	readonly delayMost: number;
	/** Growth of the thread's own heap and external memory during the run, in bytes. */
	readonly kept: number;
}

function headOf(key: string): CachedHead {
	return {
		...{ key, host: 'example.test', path: `/${key}`, status: 200, fields: ['Content-Type', 'text/plain'] },
		...{ before: [], removed: [], selecting: [], storedAt: 1, initialAge: 0, lifetime: 1e9 },
		...{ staleWhileRevalidate: 0, staleIfError: 0, mustRevalidate: false, noCache: false, tags: [] },
	};
}

const { requests, ...shared } = workerData as ZipfThreadInput;
const cache = new SharedCache({ ...shared, count: () => {} });
const ranks = zipfTrace(shared.thread + 1);
const bytes = Buffer.alloc(8200, 'x');
const ownBytes = (): number => {
	gc!();
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
};
const before = ownBytes();
const delays = monitorEventLoopDelay({ resolution: 1 });
let hits = 0;
let counted = 0;
let longest = 0;
let doneCount = 0;
delays.enable();

function batch(): void {
	for (let i = 0; i < 20 && doneCount < requests; i++, doneCount++) {
		const rank = ranks();
		const key = `k${rank}`;
		const counts = doneCount > requests / 3;
		if (counts) counted++;
		// Measures CPU time instead of elapsed time, so that other processes on the machine do not affect the result.
		const begun = process.threadCpuUsage();
		const [found] = cache.find(key);
		if (found !== undefined) {
			if (counts) hits++;
			cache.body(found, 0, found.length);
		} else {
			const head = headOf(key);
			const writer = cache.store(head, undefined, 1e9, cache.urlEpoch(head.host, head.path, undefined))!;
			writer.write(bytes.subarray(0, responseSizeForRank(rank)));
			writer.commit();
		}
		const { user, system } = process.threadCpuUsage(begun);
		longest = Math.max(longest, (user + system) / 1000);
	}
	if (doneCount < requests) {
		setImmediate(batch);
		return;
	}
	delays.disable();
	const delay99 = delays.percentile(99) / 1e6;
	// After a garbage collection, the memory of the collected buffers is released a little later.
	gc!();
	setTimeout(() => {
		const kept = ownBytes() - before;
		const outcome: ZipfThreadResult = { hits, counted, longest, delay99, delayMost: delays.max / 1e6, kept };
		parentPort!.postMessage(outcome);
	}, 200);
}

batch();
