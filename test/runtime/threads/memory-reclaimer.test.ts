/**
 * An idle thread frees the garbage that a burst has left on its heap, and the process returns to the system the memory that its
 * threads have freed.
 */
import { on } from 'node:events';
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { startReclaimingProcessMemory } from '../../../runtime/threads/memory-reclaimer.ts';

const test = suite('memory after a burst');

const THREAD_SOURCE = `
import { getHeapStatistics } from 'node:v8';
import { parentPort } from 'node:worker_threads';
import { startReclaimingThreadMemory } from ${JSON.stringify(new URL('../../../runtime/threads/memory-reclaimer.ts', import.meta.url).href)};

startReclaimingThreadMemory(50);
const taken = () => {
	const { total_heap_size, external_memory } = getHeapStatistics();
	return Math.round((total_heap_size + external_memory) / 1048576);
};
const before = taken();
let kept = [];
for (let i = 0; i < 300_000; i++) kept.push({ text: 'x'.repeat(100) + i, bytes: Buffer.alloc(200) });
const most = taken();
kept = undefined;
const look = setInterval(() => {
	if (taken() > before + 20) return;
	clearInterval(look);
	parentPort.postMessage({ before, most, after: taken() });
}, 20);
parentPort.on('message', () => process.exit());
`;

/** Returns the resident memory of the process in megabytes. */
const residentMegabytes = (): number =>
	Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024);

test("a thread's garbage is freed, and the process returns its memory", async () => {
	const linux = process.platform === 'linux';
	const atFirst = linux ? residentMegabytes() : 0;
	const endWatch = startReclaimingProcessMemory(50);
	const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(THREAD_SOURCE)}`), { eval: false });
	try {
		const measured = await new Promise<{ before: number; most: number; after: number }>((resolve, reject) => {
			thread.once('message', resolve).once('error', reject);
		});
		assert.ok(measured.most > measured.before + 80, JSON.stringify(measured));
		assert.ok(measured.after <= measured.before + 20, JSON.stringify(measured));
		// Only direct I/O can tell the allocator to return memory.
		if (!linux || !isDirectIo()) return;
		const end = performance.now() + 10_000;
		while (residentMegabytes() > atFirst + 60) {
			assert.ok(performance.now() < end, `${atFirst} MB at first, now ${residentMegabytes()}`);
			await new Promise(resolve => setTimeout(resolve, 20));
		}
	} finally {
		endWatch();
		await thread.terminate();
	}
});

/** Leaves garbage, and posts a message when it has been collected. */
const SLOW_THREAD_SOURCE = `
import { getHeapStatistics } from 'node:v8';
import { parentPort } from 'node:worker_threads';
import { startReclaimingThreadMemory } from ${JSON.stringify(new URL('../../../runtime/threads/memory-reclaimer.ts', import.meta.url).href)};

let kept = [];
for (let i = 0; i < 300_000; i++) kept.push({ text: 'x'.repeat(100) + i });
const most = getHeapStatistics().total_heap_size;
kept = undefined;
startReclaimingThreadMemory(50);
parentPort.postMessage('started');
const look = setInterval(() => {
	if (getHeapStatistics().total_heap_size > most - 20_000_000) return;
	clearInterval(look);
	parentPort.postMessage('collected');
}, 20);
parentPort.on('message', () => process.exit());
`;

test('a thread tries again to collect garbage if another thread interferes with its first attempt', async () => {
	const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(SLOW_THREAD_SOURCE)}`));
	const messages = on(thread, 'message', { signal: AbortSignal.timeout(20_000) });
	try {
		assert.is((await messages.next()).value![0], 'started');
		const end = performance.now() + 500;
		while (performance.now() < end) setFlagsFromString('--no-expose-gc');
		assert.is((await messages.next()).value![0], 'collected');
	} finally {
		await thread.terminate();
	}
});

test.run();
