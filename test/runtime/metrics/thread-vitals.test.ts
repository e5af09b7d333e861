/** Event-loop lag, garbage collections and heap size of every thread. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ThreadVitals, VITAL_GAUGES } from '../../../runtime/metrics/thread-vitals.ts';
import { IO_MODES, type IoMode, isDirectIo } from '../../../runtime/sockets/io-mode.ts';
import { waitForClock } from '../../harness.ts';
import { eventually, respondingSite, withServer } from '../running-server.ts';
import { WaitingThread } from '../sockets/waiting-thread-client.ts';

const FILE = new URL('../../../runtime/metrics/thread-vitals.ts', import.meta.url).href;

const vitals = suite('vitals of threads');

const slotOf = (name: string): number => VITAL_GAUGES.find(gauge => gauge.name === name)!.slot;

vitals(
	"a thread's vitals can be read while it is blocked, and delays are those since the previous scrape",
	async () => {
		const memory = new SharedArrayBuffer(ThreadVitals.BYTES);
		const gate = new Int32Array(new SharedArrayBuffer(4));
		const read = new ThreadVitals(memory);
		assert.not(read.isPublished);
		const code = `
		const { parentPort, workerData } = require('node:worker_threads');
		import(${JSON.stringify(FILE)}).then(({ ThreadVitals }) => {
			const vitals = new ThreadVitals(workerData.memory);
			vitals.recordIfWanted();
			parentPort.on('message', what => {
				vitals.recordIfWanted();
				if (what === 'allocate') {
					let kept = [];
					for (let i = 0; i < 200; i++) kept = Array.from({ length: 20_000 }, (_, at) => ({ at }));
				} else if (what === 'delay') Atomics.wait(workerData.gate, 0, 0, 300);
				else Atomics.wait(workerData.gate, 0, 0);
			});
			parentPort.postMessage('ready');
		});`;
		const thread = new Worker(code, { eval: true, workerData: { memory, gate } });
		try {
			await once(thread, 'message');
			assert.not(read.isPublished, 'published without a request for it');
			read.requestRecording();
			const max = slotOf('nodejs_eventloop_lag_max_seconds');
			thread.postMessage('allocate');
			thread.postMessage('delay');
			await eventually('the delay is published', () => read.gaugeValue(max) >= 0.25);
			assert.ok(read.gaugeValue(slotOf('nodejs_heap_size_used_bytes')) > 1e6);
			assert.ok(
				read.gaugeValue(slotOf('nodejs_heap_size_total_bytes')) >=
					read.gaugeValue(slotOf('nodejs_heap_size_used_bytes')),
			);
			const collections = new Map<string, number>();
			const count = (): void =>
				read.forEachCollectionKind((kind, counts) =>
					collections.set(
						kind,
						counts.subarray(0, -1).reduce((sum, one) => sum + one, 0),
					),
				);
			await eventually('the collections are counted', () => {
				count();
				return collections.get('minor')! > 0;
			});
			read.startPeriod();
			await eventually('the delay is reset', () => read.gaugeValue(max) < 0.25);
			thread.postMessage('block');
			assert.ok(read.isPublished);
			assert.ok(read.gaugeValue(slotOf('nodejs_heap_size_used_bytes')) > 1e6);
		} finally {
			Atomics.store(gate, 0, 1);
			Atomics.notify(gate, 0);
			await thread.terminate();
		}
	},
);

const BLOCKING_SOURCES = ['callback', 'promise', 'timer', 'immediate', 'message'];

async function checkDelays(io: IoMode): Promise<void> {
	const thread = await WaitingThread.start(io);
	try {
		const ask = await thread.connect();
		await ask('record');
		const gauge = (part: string): number => thread.vitals.gaugeValue(slotOf(`nodejs_eventloop_lag_${part}_seconds`));
		for (let count = 0; count < 10; count++) await ask('nothing');
		// The thread wakes up every second to publish, so that this contains a wait of a whole second.
		await waitForClock(2100);
		await eventually(`the ${io} thread's delays are published`, () => gauge('max') > 0);
		assert.ok(gauge('max') < 0.9, `${io}: a delay of ${gauge('max')} s while the thread waits`);
		for (const [index, source] of BLOCKING_SOURCES.entries()) {
			const seconds = 0.1 * (index + 1);
			await ask(`blocked ${source}:${seconds * 1000}`);
			await eventually(`the ${io} thread's blocked ${source} is published`, () => gauge('max') >= seconds * 0.98);
		}
		assert.ok(gauge('min') > 0 && gauge('min') <= gauge('p50'));
		assert.ok(gauge('p50') < 0.1, `${io}: the usual delay is ${gauge('p50')} s`);
		assert.ok(gauge('p99') > gauge('p50') && gauge('mean') > gauge('min') && gauge('stddev') > 0);
	} finally {
		await thread.end();
	}
}

vitals('waiting is no delay, but whatever blocks a thread is', async () => {
	await Promise.all((isDirectIo() ? IO_MODES : (['node'] as const)).map(checkDelays));
});

vitals('families have the same names as in prom-client', () => {
	const registry = new Registry();
	collectDefaultMetrics({ register: registry });
	const standard = new Set(registry.getMetricsAsArray().map(({ name }) => name));
	for (const name of [...VITAL_GAUGES.map(gauge => gauge.name), 'nodejs_gc_duration_seconds']) {
		assert.ok(standard.has(name), name);
	}
});

vitals(
	'a scrape contains the main thread, the compile thread and every worker, and is empty without metrics',
	async () => {
		const threads = (text: string): Set<string> =>
			new Set(
				[...text.matchAll(/^nodejs_heap_size_used_bytes\{thread="(.*?)"\} [1-9]/gm)].map(([, thread]) => thread!),
			);
		await withServer(
			{ settings: { metrics: {}, threads: 2 }, sites: [respondingSite('hello')] },
			{},
			async ({ runtime }) => {
				await eventually('the first threads have published', async () => threads(await runtime.metrics()).size === 3);
				// Makes the compile thread start, because it starts only when it is first needed.
				await runtime.readConfig([]);
				await eventually('all have published', async () => threads(await runtime.metrics()).size === 4);
				assert.equal([...threads(await runtime.metrics())].sort(), ['compiler', 'main', 'worker-0', 'worker-1']);
				await runtime.terminateWorker(1);
				await eventually('the replacement thread has published', async () =>
					threads(await runtime.metrics()).has('worker-1'),
				);
			},
		);
		await withServer({ settings: {}, sites: [respondingSite('hello')] }, {}, async ({ runtime }) => {
			assert.is(await runtime.metrics(), '');
		});
	},
);

vitals.run();
