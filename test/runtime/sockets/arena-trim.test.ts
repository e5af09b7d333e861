/** A thread returns the free memory at the end of its malloc arena to the system. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { memoryTrim } from '../../../runtime/sockets/memory-trim.ts';

const trimming = suite('arena trim');

const moduleUrl = (file: string): string =>
	JSON.stringify(new URL(`../../../runtime/sockets/${file}`, import.meta.url).href);

/** Fills and frees a megabyte of the thread's arena, and posts how many of its blocks are resident before and after the trim. */
const THREAD_SOURCE = `
import { parentPort } from 'node:worker_threads';
import { arenaTrim } from ${moduleUrl('arena-trim.ts')};
import { foreignFunctions, loadForeignFunctions } from ${moduleUrl('foreign-functions.ts')};

const ffi = foreignFunctions();
const { malloc, free, memset, mincore, getpagesize } = loadForeignFunctions(ffi, {
	malloc: { return: 'uint64', arguments: ['uint64'] },
	free: { return: 'void', arguments: ['uint64'] },
	memset: { return: 'uint64', arguments: ['uint64', 'int32', 'uint64'] },
	mincore: { return: 'int32', arguments: ['uint64', 'uint64', 'uint64'] },
	getpagesize: { return: 'int32', arguments: [] },
});
const pageBytes = BigInt(getpagesize());
const residence = new Uint8Array(1);
/** Counts the blocks whose middle page is resident. Memory that the arena has given back altogether cannot be examined. */
const countResident = blocks => blocks.filter(block => {
	const page = ((block + 50_000n) / pageBytes) * pageBytes;
	return mincore(page, pageBytes, ffi.getRawPointer(residence.buffer)) === 0 && (residence[0] & 1) === 1;
}).length;

// The GNU C library has shrunk arenas less often since a thread has freed a block of this size.
free(malloc(16_000_000n));
const blocks = Array.from({ length: 10 }, () => {
	const block = malloc(100_000n);
	memset(block, 1, 100_000n);
	return block;
});
for (const block of blocks) free(block);
const before = countResident(blocks);

arenaTrim()();
parentPort.postMessage({ before, after: countResident(blocks) });
`;

trimming('free memory at the end of an arena is returned', async () => {
	// Only the GNU C library has arenas, and only direct I/O uses its functions.
	if (memoryTrim() === undefined) return;
	const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(THREAD_SOURCE)}`));
	const [{ before, after }] = await once(thread, 'message');
	await thread.terminate();
	assert.is(before, 10);
	// A page with the allocator's own data about a free block may remain.
	assert.ok(after <= 2, `${after} of 10 blocks are resident`);
});

trimming.run();
