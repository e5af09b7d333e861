/**
 * Three threads read, store and remove long bodies in one cache that is full. At the same time, bodies move to memory files while
 * other threads read them, and the memory pages that held them are released. Every byte is verified.
 */
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cacheLayout, HEADER_WORD } from '../../runtime/cache/memory-layout.ts';
import { CacheRegistry } from '../../runtime/main/cache-registry.ts';
import { foreignFunctions } from '../../runtime/sockets/foreign-functions.ts';
import { PAGE_BYTES } from '../../runtime/sockets/memory-files.ts';
import { until } from '../harness.ts';
import type { FiledBodiesInput, FiledBodiesResult } from './cache-filed-thread.ts';

const MIB = 1024 * 1024;
const MAX_BYTES = 24 * MIB;
const THREADS = 3;
const TIME = 12_000;

/** Returns the resident bytes of the store (bit 63 of the entries of its pages in /proc/self/pagemap) and of the body files. */
function residentBytes(store: SharedArrayBuffer): { readonly store: number; readonly files: number } {
	const first = Number(foreignFunctions()!.getRawPointer(new Uint8Array(store)) / BigInt(PAGE_BYTES));
	const entries = Buffer.alloc(Math.ceil(store.byteLength / PAGE_BYTES) * 8);
	const map = openSync('/proc/self/pagemap', 'r');
	readSync(map, entries, 0, entries.byteLength, first * 8);
	closeSync(map);
	let pages = 0;
	for (let at = 7; at < entries.byteLength; at += 8) if ((entries[at]! & 0x80) !== 0) pages++;
	let files = 0;
	for (const name of readdirSync('/proc/self/fd')) {
		try {
			if (readlinkSync(`/proc/self/fd/${name}`).startsWith('/memfd:svc-cache'))
				files += fstatSync(Number(name)).blocks * 512;
		} catch {
			// The descriptor belonged to readdir itself, and is closed by now.
		}
	}
	return { store: pages * PAGE_BYTES, files };
}

const filed = suite('long cached bodies in memory files, shared by several threads');

filed('every byte read is correct, and the cache stays within its size limit', async () => {
	const buffer = new SharedArrayBuffer(cacheLayout(MAX_BYTES, THREADS).words * 4);
	const registry = new CacheRegistry({ resetDelayMs: 20, workingDirectory: '/', log: () => {} });
	registry.onCacheOpened('cache', { ceiling: MAX_BYTES }, buffer, THREADS);
	const words = new Int32Array(buffer);
	let most = 0;
	let files = 0;
	const look = setInterval(() => {
		const now = residentBytes(buffer);
		most = Math.max(most, now.store + now.files);
		files = Math.max(files, words[HEADER_WORD.files]!);
	}, 100);
	const outcomes = await Promise.all(
		Array.from({ length: THREADS }, async (_, thread): Promise<FiledBodiesResult> => {
			const order: FiledBodiesInput = { buffer, ceiling: MAX_BYTES, rows: THREADS, thread, time: TIME };
			const worker = new Worker(new URL('./cache-filed-thread.ts', import.meta.url), { workerData: order });
			const [outcome] = (await once(worker, 'message')) as [FiledBodiesResult];
			return outcome;
		}),
	);
	clearInterval(look);
	const sum = (field: keyof FiledBodiesResult): number => outcomes.reduce((total, one) => total + one[field], 0);
	console.log(
		`${sum('reads')} bodies read, ${sum('stores')} stored, ${words[HEADER_WORD.evictions]} evicted, at most ${files} files at the same time; ${(most / MAX_BYTES).toFixed(3)} of the ceiling in memory at most`,
	);
	assert.is(sum('wrong'), 0);
	assert.ok(
		sum('reads') > 500 && sum('stores') > 100 && words[HEADER_WORD.evictions]! > 20,
		'the run did too little work',
	);
	assert.ok(files > 5, 'too few bodies were moved to files');
	assert.ok(most > MAX_BYTES / 2 && most < MAX_BYTES * 1.05, `${most} bytes`);
	await registry.close();
	registry.onCacheClosed('cache');
	await until('the files to be closed', () => residentBytes(buffer).files === 0);
});

filed.run();
