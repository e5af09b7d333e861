/**
 * A cache at its size limit receives requests for ten million keys with a Zipf distribution from two threads. Measures
 * memory, the hit ratio compared with LRU of the same size, the most expensive request, and event-loop delays.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { responseSizeForRank, zipfTrace } from '../zipf-trace.ts';
import type { ZipfRun } from './cache-zipf-process.ts';

const MIB = 1024 * 1024;
const LARGE_BYTES = 256 * MIB;
const SMALL_BYTES = 16 * MIB;
const REQUESTS = 360_000;
const ROWS = 2;

/** Returns the hit ratio of an LRU cache of the same size, not counting the first third of the requests. */
function lruRatio(bytes: number): number {
	const traces = Array.from({ length: ROWS }, (_, thread) => zipfTrace(thread + 1));
	const cachedSizes = new Map<number, number>();
	let used = 0;
	let hits = 0;
	for (let i = 0; i < REQUESTS; i++) {
		const rank = traces[i % ROWS]!();
		const size = cachedSizes.get(rank);
		if (size !== undefined) {
			if (i > REQUESTS / 3) hits++;
			cachedSizes.delete(rank);
			cachedSizes.set(rank, size);
			continue;
		}
		// Counts an overhead of 1 KiB per object, which is about that of Varnish and of this cache.
		const needed = responseSizeForRank(rank) + 1024;
		cachedSizes.set(rank, needed);
		used += needed;
		for (const [oldest, its] of cachedSizes) {
			if (used <= bytes) break;
			cachedSizes.delete(oldest);
			used -= its;
		}
	}
	return hits / (REQUESTS - REQUESTS / 3);
}

/** Runs a process with a cache of the given size and the given number of threads. */
async function runCache(ceiling: number): Promise<ZipfRun> {
	const script = path.join(import.meta.dirname, 'cache-zipf-process.ts');
	const child = spawn(process.execPath, ['--expose-gc', script, String(ceiling), String(REQUESTS), String(ROWS)], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	let text = '';
	child.stdout.setEncoding('utf8').on('data', chunk => {
		text += chunk;
	});
	await once(child, 'close');
	return JSON.parse(text) as ZipfRun;
}

const load = suite('a cache at its size limit');

load('stays within its limit, keeps popular entries, and does not stall', async () => {
	const small = await runCache(SMALL_BYTES);
	const large = await runCache(LARGE_BYTES);
	const lru = lruRatio(LARGE_BYTES);
	// Both measurements include the memory that Node itself needs. It cancels out in the difference.
	const kept = Math.max(0, large.kept - small.kept);
	const share = (large.resident + kept) / LARGE_BYTES;
	console.log(
		`hit ratio ${large.ratio.toFixed(4)}, of LRU ${lru.toFixed(4)}; ${large.entries} entries, ${(large.bytes / LARGE_BYTES).toFixed(3)} of the ceiling, with what threads keep at hand ${share.toFixed(3)} of it in memory; longest request ${large.longest.toFixed(1)} ms of processor time, event loop delayed by ${large.delay99.toFixed(1)} ms (p99), ${large.delayMost.toFixed(1)} ms at most`,
	);
	assert.ok(large.bytes <= LARGE_BYTES);
	assert.ok(large.bytes > LARGE_BYTES * 0.95, 'the cache did not fill up');
	assert.ok(share > 0.95 && share < 1.05, `${large.resident} and ${kept} bytes`);
	assert.ok(large.ratio >= lru, `${large.ratio} is less than ${lru}`);
	assert.ok(small.ratio >= lruRatio(SMALL_BYTES), 'with little memory, the hit ratio is below that of LRU');
	assert.ok(Math.max(small.longest, large.longest) < 20, `${large.longest} ms`);
});

load.run();
