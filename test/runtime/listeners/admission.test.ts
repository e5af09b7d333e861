/** The admission of requests when several threads ask for slots at the same moment. */
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ADMISSION_SLOT_COUNT } from '../../../runtime/listeners/admission.ts';

const THREADS = 4;
const REQUESTS_PER_THREAD = 50_000;

/** Admits requests without a pause, and reports how many were admitted and the highest number that ran at the same time. */
const SOURCE = `
	const { parentPort, workerData } = require('node:worker_threads');
	import(workerData.module).then(({ Admission }) => {
		const running = new Int32Array(workerData.running);
		const admission = new Admission({
			memory: workerData.memory,
			clients: undefined,
			row: workerData.row,
			clientIp: () => '',
			onRejected: () => {},
			onQueueChanged: () => {},
		});
		admission.configure({ requests: workerData.limit, queue: 0 });
		let admitted = 0;
		let highest = 0;
		// All threads begin together.
		Atomics.sub(running, 1, 1);
		Atomics.notify(running, 1);
		for (let left = Atomics.load(running, 1); left > 0; left = Atomics.load(running, 1)) Atomics.wait(running, 1, left);
		for (let i = 0; i < ${REQUESTS_PER_THREAD}; i++) {
			const exchange = {};
			if (admission.admitRequest(exchange) !== undefined) continue;
			admitted++;
			highest = Math.max(highest, Atomics.add(running, 0, 1) + 1);
			Atomics.sub(running, 0, 1);
			admission.endRequest(exchange);
		}
		parentPort.postMessage({ admitted, highest });
	});`;

for (const limit of [1, 2]) {
	test(`four threads never run more than ${limit} requests together if that is the limit`, async () => {
		const memory = new SharedArrayBuffer(THREADS * ADMISSION_SLOT_COUNT * Int32Array.BYTES_PER_ELEMENT);
		const running = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
		new Int32Array(running)[1] = THREADS;
		const module = new URL('../../../runtime/listeners/admission.ts', import.meta.url).href;
		const results = await Promise.all(
			Array.from({ length: THREADS }, (_, row) => {
				const workerData = { module, memory, running, row, limit };
				const worker = new Worker(SOURCE, { eval: true, workerData });
				return new Promise<{ admitted: number; highest: number }>((resolve, reject) => {
					worker.once('message', resolve);
					worker.once('error', reject);
				});
			}),
		);
		const highest = Math.max(...results.map(result => result.highest));
		assert.ok(highest <= limit, `${highest} requests ran together`);
		const admitted = results.reduce((sum, result) => sum + result.admitted, 0);
		assert.ok(admitted >= REQUESTS_PER_THREAD / 10, `only ${admitted} requests were admitted`);
		const counts = new Int32Array(memory);
		for (let row = 0; row < THREADS; row++) assert.is(counts[row * ADMISSION_SLOT_COUNT + 1], 0);
	});
}

test.run();
