/**
 * Creates the V8 code caches of the threads' bundles, which are shipped with them: runs in a separate process what threads run
 * when they start, and saves the code that V8 compiled.
 *
 * Usage: node cli/packaging/code-cache.ts, in the folder of the bundles
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { CompilerRequest, PrepareResult } from '../../runtime/compile/compiler-messages.ts';
import { createCounterRow } from '../../runtime/metrics/counter-row.ts';
import { OwnedDescriptors } from '../../runtime/sockets/owned-descriptors.ts';
import { CONTROL_SLOTS } from '../../runtime/threads/control-words.ts';
import { SharedRows } from '../../runtime/threads/shared-rows.ts';
import { ThreadActivity } from '../../runtime/threads/thread-activity.ts';
import { cacheAsset, THREAD_ENTRIES, type ThreadKind, threadAsset } from '../../runtime/threads/thread-source.ts';
import type {
	GenerationDelta,
	MessageFromWorker,
	MessageToWorker,
	WorkerStartData,
} from '../../runtime/worker/worker-messages.ts';
import { SAMPLE_CONFIGURATION } from './sample-run.ts';

const scriptsByKind = new Map(
	(Object.keys(THREAD_ENTRIES) as ThreadKind[]).map(kind => {
		const asset = threadAsset(kind);
		return [kind, new Script(readFileSync(asset, 'latin1'), { filename: `svc-${asset}` })] as const;
	}),
);

/** Runs a bundle as a thread of the given kind would. Returns the port with which the main thread talks to it. */
function runBundle(kind: ThreadKind, workerData: object): MessagePort {
	const requireModule = createRequire(import.meta.url);
	const { port1, port2 } = new MessageChannel();
	const runThread = scriptsByKind.get(kind)!.runInThisContext() as (require: (name: string) => unknown) => void;
	runThread(name =>
		/^(node:)?worker_threads$/.test(name)
			? { ...requireModule(name), parentPort: port2, workerData }
			: requireModule(name),
	);
	return port1;
}

/** Sends a request to the compile thread and resolves to the reply. */
function askCompiler(port: MessagePort, request: CompilerRequest): Promise<unknown> {
	return new Promise(resolve => {
		port.once('message', ({ answer }) => resolve(answer));
		port.postMessage(request);
	});
}

/** Makes a worker thread build the generation, and resolves when it has done so. */
function buildGeneration(port: MessagePort, delta: GenerationDelta): Promise<void> {
	const sharedRows = new SharedRows(1);
	const postToWorker = (message: MessageToWorker): void => port.postMessage(message);
	return new Promise((resolve, reject) => {
		port.on('message', (message: MessageFromWorker) => {
			if (message.type === 'memory_wanted') {
				postToWorker({
					type: 'memory',
					key: message.key,
					buffer: sharedRows.takeMemory(message.key, message.request, 0),
				});
			} else if (message.type === 'prepared') resolve();
			else if (message.type === 'refused') reject(new Error(`The sample was not built: ${message.message}`));
		});
		postToWorker({ type: 'prepare', attempt: 1, generation: 1, delta, listeners: [] });
	});
}

const processContext = { workingDirectory: process.cwd(), environment: {} };
const compiler = runBundle('compiler', {
	etagKey: new Uint8Array(32),
	activity: new ThreadActivity().memory,
	...processContext,
});
const input = { format: 'configfile', text: SAMPLE_CONFIGURATION, name: 'Configfile' } as const;
const prepareResult = (await askCompiler(compiler, {
	id: 1,
	op: 'prepare',
	input,
	unconfigured: false,
})) as PrepareResult;
if (prepareResult.result !== 'swap') throw new Error(`The sample was not accepted: ${JSON.stringify(prepareResult)}`);
await askCompiler(compiler, { id: 2, op: 'commit' });

const workerStartData: WorkerStartData = {
	index: 0,
	rows: 1,
	threads: 1,
	control: new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT),
	counters: createCounterRow(),
	activity: new ThreadActivity().memory,
	descriptors: new OwnedDescriptors().memory,
	sharePorts: true,
	terminal: false,
	verbose: false,
	...processContext,
};
await buildGeneration(runBundle('worker', workerStartData), prepareResult.delta);
for (const [kind, script] of scriptsByKind) writeFileSync(cacheAsset(threadAsset(kind)), script.createCachedData());
process.exit();
