/** Threads that stop responding: what the server reports, how long it waits, and that it replaces them. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Site } from '../../compiler/document/document.ts';
import { CompileService } from '../../runtime/main/compile-service.ts';
import { CompilerFailure } from '../../runtime/main/compiler-client.ts';
import type { StallKind } from '../../runtime/threads/stop-answering.ts';
import { jsonInput, respondingSite, type TestServer, withServer } from '../runtime/running-server.ts';

/**
 * Number of milliseconds within which an unresponsive thread must be replaced. On an idle machine this takes less than five
 * seconds. If threads were not replaced, the wait would never end.
 */
const REPLACED_WITHIN_MS = 40_000;
/** Number of milliseconds within which a configuration load must succeed. */
const LOADED_WITHIN_MS = 20_000;
/**
 * Factor by which the time limits are longer for a thread that spins. Such a thread is detected by its own CPU time, and on a busy
 * machine it gets only a part of a core.
 */
const SPIN_FACTOR = 2;

const document = (body: string) => ({ settings: { metrics: {} }, sites: [respondingSite(body)] });

async function until(what: string, limit: number, holds: () => boolean | Promise<boolean>): Promise<number> {
	const startedAt = performance.now();
	while (!(await holds())) {
		if (performance.now() - startedAt > limit) throw new Error(`not within ${limit} ms: ${what}`);
		await new Promise(resolve => setTimeout(resolve, 20));
	}
	return performance.now() - startedAt;
}

/**
 * Runs four clients that send requests on new connections until the returned function is called. That function resolves to the
 * distinct response bodies. Each client may lose one connection: the one that the thread had accepted when it stalled.
 */
function startRequests({ get }: TestServer): () => Promise<string[]> {
	let isEnded = false;
	const bodies = new Set<string>();
	const ask = async (): Promise<void> => {
		let lostCount = 0;
		while (!isEnded) {
			const answer = await get().catch(error => {
				if (lostCount++ > 0) throw error;
			});
			if (!answer) continue;
			assert.is(answer.status, 200);
			bodies.add(answer.body);
		}
	};
	const all = Promise.all([ask(), ask(), ask(), ask()]);
	all.catch(() => {});
	return async () => {
		isEnded = true;
		await all;
		return [...bodies];
	};
}

const stalled = suite('unresponsive threads');

/** Stalls one of a server's two threads while a configuration is loaded, and asserts that the thread is replaced. */
async function assertReplacedDuringLoad(how: StallKind): Promise<void> {
	const scale = how === 'spin' ? SPIN_FACTOR : 1;
	await withServer(document('one'), {}, async server => {
		const { runtime, log } = server;
		assert.is((await server.get()).body, 'one');
		const stop = startRequests(server);
		runtime.crashWorker(0, how);
		const startedAt = performance.now();
		const { result } = await runtime.load(jsonInput(document('two')));
		const loaded = performance.now() - startedAt;
		assert.is(result, 'applied');
		assert.is(runtime.ready, false);
		assert.is(runtime.unreadyReason, 'Worker thread 0 did not answer; the server is replacing it.');
		const replaced = await until('the thread is replaced', scale * REPLACED_WITHIN_MS, () =>
			log.text().includes('a worker thread was replaced'),
		);
		assert.is(runtime.ready, true);
		// On a busy machine the thread may stall before the first request is answered.
		const bodies = await stop();
		assert.ok(bodies.includes('two') && bodies.every(body => body === 'one' || body === 'two'), bodies.join());
		for (let i = 0; i < 20; i++) assert.is((await server.get()).body, 'two');
		const metrics = await runtime.metrics();
		assert.match(metrics, /^svc_thread_stalls_total\{thread="worker"\} 1$/m);
		assert.match(metrics, /^svc_worker_restarts_total 1$/m);
		assert.ok(loaded < scale * LOADED_WITHIN_MS, `the load took ${loaded} ms`);
		assert.ok(loaded + replaced < scale * REPLACED_WITHIN_MS, `replaced after ${loaded + replaced} ms`);
		const entry = log.entries.find(({ msg }) => msg === 'a worker thread does not respond');
		assert.is(entry?.level, 'warn');
		assert.is(entry?.thread, 0);
		assert.is(entry?.doing, 'message');
	});
}

/** Stalls one of a server's two threads without loading a configuration, and asserts that the thread is replaced. */
async function assertReplacedWithoutLoad(): Promise<void> {
	await withServer(document('one'), {}, async server => {
		const { runtime, log } = server;
		const stop = startRequests(server);
		runtime.crashWorker(1, 'stall');
		const took = await until('the thread is replaced', REPLACED_WITHIN_MS, () =>
			log.text().includes('a worker thread was replaced'),
		);
		await stop();
		assert.ok(took < REPLACED_WITHIN_MS, `${took} ms`);
		assert.is(runtime.ready, true);
		assert.is((await runtime.load(jsonInput(document('two')))).result, 'applied');
		for (let i = 0; i < 20; i++) assert.is((await server.get()).body, 'two');
	});
}

stalled('one of two threads stalls: it is reported and replaced, while requests and a load succeed', async () => {
	const stalls = (['stall', 'spin', 'block'] as const).map(assertReplacedDuringLoad);
	await Promise.all([...stalls, assertReplacedWithoutLoad()]);
});

stalled(
	'the only thread stalls: it is replaced, a load succeeds on its successor, and waiting connections are served',
	async () => {
		await withServer(document('one'), { threads: 1 }, async server => {
			const { runtime, port } = server;
			assert.is((await server.get()).body, 'one');
			runtime.crashWorker(0, 'stall');
			const startedAt = performance.now();
			const load = runtime.load(jsonInput(document('two')));
			await until('the stall is reported', LOADED_WITHIN_MS, () => !runtime.ready);
			const waiting = connect(port, '127.0.0.1');
			waiting.setEncoding('latin1');
			let text = '';
			waiting.on('data', chunk => {
				text += chunk;
			});
			waiting.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
			const whenClosed = once(waiting, 'close');
			assert.is((await load).result, 'applied');
			const elapsedMs = performance.now() - startedAt;
			assert.ok(elapsedMs < LOADED_WITHIN_MS, `the load took ${elapsedMs} ms`);
			await whenClosed;
			assert.match(text, /^HTTP\/1\.1 200 .*(?:one|two)$/s);
			assert.is((await server.get()).body, 'two');
			assert.is(runtime.ready, true);
		});
	},
);

stalled(
	'a load refused during a stall reports the reason and keeps the old configuration, and the thread is replaced',
	async () => {
		await withServer(document('one'), { threads: 1 }, async server => {
			server.runtime.crashWorker(0, 'stall');
			const site: Site = respondingSite('x', { steps: [{ handler: 'files', root: 5 } as never] });
			const outcome = await server.runtime.load(jsonInput({ sites: [site] }));
			assert.is(outcome.result, 'refused');
			assert.match(JSON.stringify(outcome), '/sites/0/pipeline/0/root');
			assert.is((await server.get()).body, 'one');
		});
	},
);

async function stopped(how: StallKind): Promise<void> {
	await withServer(document('one'), {}, async ({ runtime }) => {
		runtime.crashWorker(0, how);
		const startedAt = performance.now();
		await runtime.stop();
		const elapsedMs = performance.now() - startedAt;
		assert.ok(elapsedMs < 30_000, `the stop took ${elapsedMs} ms`);
		assert.is(await runtime.threadsEnded, how === 'stall');
	});
}

stalled('a stop does not wait for an unresponsive thread', async () => {
	await Promise.all((['stall', 'block'] as const).map(stopped));
});

stalled('a stalled compile thread is replaced: pending requests fail, and the next one succeeds', async () => {
	const entries: string[] = [];
	const start = { workingDirectory: '/', environment: {}, etagKey: new Uint8Array(32) };
	const compiler = new CompileService(start, (level, message) => entries.push(`${level} ${message}`), undefined, {
		reportAfterMs: 500,
		abandonAfterMs: 1000,
	});
	try {
		for (const how of ['spin', 'block'] as const) {
			const [stalledRequest, next] = await Promise.allSettled([
				compiler.ask('stall', { how }),
				compiler.ask('adapt', { input: jsonInput({}) }),
			]);
			assert.is(stalledRequest.status, 'rejected');
			assert.instance((stalledRequest as PromiseRejectedResult).reason, CompilerFailure);
			assert.is(next.status, 'rejected');
			assert.is(typeof (await compiler.ask('adapt', { input: jsonInput({}) })).document, 'string');
		}
		assert.is(compiler.stallCount, 2);
		const said = [
			'warn the compile thread has been busy for a long time',
			'error the compile thread stopped responding and is being replaced',
		];
		assert.equal(entries, [...said, ...said]);
	} finally {
		await compiler.end();
	}
});

stalled.run();
