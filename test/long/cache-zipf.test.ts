/**
 * A cache at its ceiling under requests of ten million keys, some far more often than others: memory, hit ratio beside LRU
 * of the same bytes, and the longest time that one request takes.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import { CacheBoard } from '../../runtime/cache/cache-board.ts';
import { cacheLayout } from '../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../runtime/cache/shared-cache.ts';

const CEILING = 64 * 1024 * 1024;
const KEYS = 10_000_000;
const REQUESTS = 600_000;
const ROWS = 2;

/** Ranks by Zipf's law with exponent 0.9, by inversion of its integral. */
function zipf(random: () => number): number {
	const a = 1 - 0.9;
	return Math.floor(((KEYS ** a - 1) * random() + 1) ** (1 / a)) - 1;
}

/** The same numbers each time. */
function generator(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}

const sizeOf = (rank: number): number => 200 + ((Math.imul(rank, 0x9e3779b1) >>> 0) % 8000);

function headOf(key: string): CachedHead {
	return {
		...{ key, host: 'example.test', path: `/${key}`, status: 200, fields: ['Content-Type', 'text/plain'] },
		...{ before: [], removed: [], selecting: [], storedAt: 1, initialAge: 0, lifetime: 1e9 },
		...{ staleWhileRevalidate: 0, staleIfError: 0, mustRevalidate: false, noCache: false, tags: [] },
	};
}

/** Hit ratio of least-recently-used with as many bytes. */
function lruRatio(bytes: number): number {
	const random = generator(1);
	const kept = new Map<number, number>();
	let used = 0;
	let hits = 0;
	for (let i = 0; i < REQUESTS; i++) {
		const rank = zipf(random);
		const size = kept.get(rank);
		if (size !== undefined) {
			if (i > REQUESTS / 3) hits++;
			kept.delete(rank);
			kept.set(rank, size);
			continue;
		}
		// Varnish needs about a KiB for what it knows of an object, as we do.
		const needed = sizeOf(rank) + 1024;
		kept.set(rank, needed);
		used += needed;
		for (const [oldest, its] of kept) {
			if (used <= bytes) break;
			kept.delete(oldest);
			used -= its;
		}
	}
	return hits / (REQUESTS - REQUESTS / 3);
}

const load = suite('a cache at its ceiling');

load('holds its ceiling, keeps what is asked for, and stalls nobody', () => {
	const layout = cacheLayout(CEILING, ROWS);
	const before = process.memoryUsage.rss();
	const buffer = new SharedArrayBuffer(layout.words * 4);
	const board = new CacheBoard();
	board.cacheOpened('cache', { ceiling: CEILING }, buffer, ROWS);
	const thread = (index: number): SharedCache =>
		new SharedCache({ buffer, ceiling: CEILING, rows: ROWS, thread: index, count: () => {} });
	const threads = [thread(0), thread(1)] as const;
	const random = generator(1);
	const bytes = Buffer.alloc(8200, 'x');
	let hits = 0;
	let longest = 0;
	for (let i = 0; i < REQUESTS; i++) {
		const rank = zipf(random);
		const key = `k${rank}`;
		const cache = threads[i & 1]!;
		const begun = process.threadCpuUsage();
		if (cache.find(key).length > 0) {
			if (i > REQUESTS / 3) hits++;
		} else {
			const writer = cache.store(headOf(key), undefined, Number.POSITIVE_INFINITY, 0)!;
			writer.write(bytes.subarray(0, sizeOf(rank)));
			writer.commit();
		}
		// Of the processor: other processes of a shared machine do not count.
		const { user, system } = process.threadCpuUsage(begun);
		longest = Math.max(longest, (user + system) / 1000);
	}
	const [report] = board.reports();
	const ratio = hits / (REQUESTS - REQUESTS / 3);
	const grown = process.memoryUsage.rss() - before;
	const lru = lruRatio(CEILING);
	console.log(
		`hit ratio ${ratio.toFixed(4)}, of LRU ${lru.toFixed(4)}; ${report!.entries} entries, ${(report!.bytes / CEILING).toFixed(3)} of the ceiling, longest ${longest.toFixed(1)} ms, grown by ${(grown / 1048576) | 0} MiB`,
	);
	assert.ok(report!.bytes <= CEILING);
	assert.ok(report!.bytes > CEILING * 0.9, 'it is full');
	assert.ok(ratio >= lru, `${ratio} is less than ${lru}`);
	assert.ok(longest < 20, `${longest} ms`);
});

load.run();
