/** The admission of requests and connections when several threads ask for slots at the same moment. */
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ADMISSION_SLOT_COUNT } from '../../../runtime/listeners/admission.ts';
import { CLIENT_SLOTS, ClientCounts, clientKey } from '../../../runtime/threads/client-counts.ts';

const THREADS = 4;
const ATTEMPTS_PER_THREAD = 50_000;
const CLIENT_ADDRESS = '192.0.2.1';

/** Admits requests or connections without a pause. Reports how many were admitted, and the most that ran at the same time. */
const SOURCE = `
	const { parentPort, workerData } = require('node:worker_threads');
	Promise.all([import(workerData.module), import(workerData.countsModule)]).then(([{ Admission }, { ClientCounts }]) => {
		const running = new Int32Array(workerData.running);
		const admission = new Admission({
			memory: workerData.memory,
			clients: new ClientCounts(workerData.clientMemory, ${THREADS}, workerData.row),
			row: workerData.row,
			clientIp: () => '${CLIENT_ADDRESS}',
			onRejected: () => {},
			onQueueChanged: () => {},
		});
		admission.configure(workerData.limits);
		const placeMaker = { resetFreedSlots: () => {}, makeRoom: () => false };
		const admitRequest = () => {
			const exchange = {};
			return admission.admitRequest(exchange) === undefined ? () => admission.endRequest(exchange) : undefined;
		};
		const admitConnection = () => admission.admit('${CLIENT_ADDRESS}', placeMaker);
		const admit = workerData.admits === 'requests' ? admitRequest : admitConnection;
		let admitted = 0;
		let highest = 0;
		// All threads begin together.
		Atomics.sub(running, 1, 1);
		Atomics.notify(running, 1);
		for (let left = Atomics.load(running, 1); left > 0; left = Atomics.load(running, 1)) Atomics.wait(running, 1, left);
		for (let i = 0; i < ${ATTEMPTS_PER_THREAD}; i++) {
			const end = admit();
			if (end === undefined) continue;
			admitted++;
			highest = Math.max(highest, Atomics.add(running, 0, 1) + 1);
			Atomics.sub(running, 0, 1);
			end();
		}
		parentPort.postMessage({ admitted, highest });
	});`;

const CASES = [
	{ admits: 'requests', limit: 'requests', limits: (n: number) => ({ requests: n, queue: 0 }) },
	{ admits: 'requests', limit: 'requests per client', limits: (n: number) => ({ requests_per_client: n }) },
	{ admits: 'connections', limit: 'connections', limits: (n: number) => ({ connections: n }) },
	{ admits: 'connections', limit: 'connections per client', limits: (n: number) => ({ connections_per_client: n }) },
];

for (const { admits, limit, limits } of CASES) {
	for (const maximum of [1, 2]) {
		test(`four threads never admit more than ${maximum} ${limit} if that is the limit`, async () => {
			const bytesOf = (slots: number): number => THREADS * slots * Int32Array.BYTES_PER_ELEMENT;
			const memory = new SharedArrayBuffer(bytesOf(ADMISSION_SLOT_COUNT));
			const clientMemory = new SharedArrayBuffer(bytesOf(CLIENT_SLOTS));
			const running = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
			new Int32Array(running)[1] = THREADS;
			const module = new URL('../../../runtime/listeners/admission.ts', import.meta.url).href;
			const countsModule = new URL('../../../runtime/threads/client-counts.ts', import.meta.url).href;
			const shared = { module, countsModule, memory, clientMemory, running, admits, limits: limits(maximum) };
			const results = await Promise.all(
				Array.from({ length: THREADS }, (_, row) => {
					const worker = new Worker(SOURCE, { eval: true, workerData: { ...shared, row } });
					return new Promise<{ admitted: number; highest: number }>((resolve, reject) => {
						worker.once('message', resolve);
						worker.once('error', reject);
					});
				}),
			);
			const highest = Math.max(...results.map(result => result.highest));
			assert.ok(highest <= maximum, `${highest} were admitted together`);
			const admitted = results.reduce((sum, result) => sum + result.admitted, 0);
			assert.ok(admitted >= ATTEMPTS_PER_THREAD / 10, `only ${admitted} were admitted`);
			const counts = new Int32Array(memory);
			for (let row = 0; row < THREADS; row++)
				for (const slot of [0, 1]) assert.is(counts[row * ADMISSION_SLOT_COUNT + slot], 0);
			const clients = new ClientCounts(clientMemory, THREADS, 0);
			for (const kind of [1, 2]) assert.is(clients.clientCount(clientKey(CLIENT_ADDRESS), kind), 0);
		});
	}
}

test.run();
