/**
 * Creates the V8 code caches of the threads' bundles, which are shipped with them: runs in a separate process what threads run
 * when they start, and what a worker thread runs for the first requests, and saves the code that V8 compiled.
 *
 * Usage: node cli/packaging/code-cache.ts, in the folder of the bundles
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { plannedSocket } from '../../compiler/codegen/plan/planned-socket.ts';
import type { CompilerRequest, PrepareResult } from '../../runtime/compile/compiler-messages.ts';
import type { ListenerAddress } from '../../runtime/listeners/listener-address.ts';
import { createCounterRow } from '../../runtime/metrics/counter-row.ts';
import { chooseIoMode, type IoMode } from '../../runtime/sockets/io-mode.ts';
import { OwnedDescriptors } from '../../runtime/sockets/owned-descriptors.ts';
import { CONTROL_GENERATION, CONTROL_SLOTS } from '../../runtime/threads/control-words.ts';
import { SharedRows } from '../../runtime/threads/shared-rows.ts';
import { ThreadActivity } from '../../runtime/threads/thread-activity.ts';
import { cacheAsset, NODE_MODULES_ASSET, type ThreadKind, threadAsset } from '../../runtime/threads/thread-source.ts';
import type {
	GenerationDelta,
	MessageFromWorker,
	MessageToWorker,
	WorkerStartData,
} from '../../runtime/worker/worker-messages.ts';
import { BUNDLES_FILE, type Bundles } from './bundles.ts';
import { sendSampleRequests } from './sample-client.ts';
import { SAMPLE_CONFIGURATION, SAMPLE_PORT } from './sample-run.ts';
import { isWorkerPart } from './worker-bundle.ts';

type Require = (name: string) => unknown;
type BundleFunction = (require: Require, module?: object, exports?: object) => unknown;

const { threadBundles } = JSON.parse(readFileSync(BUNDLES_FILE, 'utf8')) as Bundles;
const scriptsByAsset = new Map<string, Script>();

function scriptOf(asset: string): Script {
	return scriptsByAsset.getOrInsertComputed(
		asset,
		() => new Script(readFileSync(asset, 'latin1'), { filename: `svc-${asset}` }),
	);
}

function evaluate(asset: string): BundleFunction {
	return scriptOf(asset).runInThisContext() as BundleFunction;
}

/**
 * Runs a bundle as a thread of the given kind would. Returns the port with which the main thread talks to it, and the function with
 * which the bundle loads its parts.
 */
function runBundle(kind: ThreadKind, workerData: object): { readonly port: MessagePort; readonly load: Require } {
	const requireModule = createRequire(import.meta.url);
	const { port1: port, port2 } = new MessageChannel();
	const requireOfNode = evaluate(NODE_MODULES_ASSET)(name =>
		/^(node:)?worker_threads$/.test(name)
			? { ...requireModule(name), parentPort: port2, workerData }
			: requireModule(name),
	) as Require;
	const bundles = new Map<string, { readonly exports: object }>();
	const load = (name: string): unknown => {
		if (!name.startsWith('./')) return requireOfNode(name);
		const loadedBundle = bundles.get(name);
		if (loadedBundle) return loadedBundle.exports;
		const bundle = { exports: {} };
		bundles.set(name, bundle);
		evaluate(name.slice(2))(load, bundle, bundle.exports);
		return bundle.exports;
	};
	load(`./${threadAsset(kind)}`);
	return { port, load };
}

/** Sends a request to the compile thread and resolves to the reply. */
function askCompiler(port: MessagePort, request: CompilerRequest): Promise<unknown> {
	return new Promise(resolve => {
		port.once('message', ({ answer }) => resolve(answer));
		port.postMessage(request);
	});
}

function postToWorker(port: MessagePort, message: MessageToWorker): void {
	port.postMessage(message);
}

/**
 * Makes a worker thread build the generation and listen on a port. Resolves when it has done so, to the descriptor of the listening
 * socket, or to undefined if the socket belongs to Node.
 */
function buildGeneration(port: MessagePort, delta: GenerationDelta): Promise<number | undefined> {
	let listeningDescriptor: number | undefined;
	const listener: ListenerAddress = {
		...plannedSocket({ network: 'tcp', host: '', ipv6Only: false }, SAMPLE_PORT),
		// With port 0, the system chooses a free port.
		host: '127.0.0.1',
		port: 0,
		scheme: 'http',
	};
	const sharedRows = new SharedRows(1);
	return new Promise((resolve, reject) => {
		port.on('message', (message: MessageFromWorker) => {
			if (message.type === 'memory_wanted') {
				postToWorker(port, {
					type: 'memory',
					key: message.key,
					buffer: sharedRows.takeMemory(message.key, message.request, 0),
				});
			} else if (message.type === 'listening') listeningDescriptor = message.sockets[0]?.own;
			else if (message.type === 'prepared') resolve(listeningDescriptor);
			else if (message.type === 'refused') reject(new Error(`The sample was not built: ${message.message}`));
		});
		postToWorker(port, { type: 'prepare', attempt: 1, generation: 1, delta, listeners: [listener] });
	});
}

/** Resolves when the worker has handled all messages sent so far, and all events that were pending before them. */
function pingWorker(port: MessagePort): Promise<void> {
	return new Promise(resolve => {
		port.on('message', ({ type }: MessageFromWorker) => {
			if (type === 'pong') resolve();
		});
		postToWorker(port, { type: 'ping', number: 1 });
	});
}

/** A timer that never expires. */
class InertTimer {
	ref(): this {
		return this;
	}

	unref(): this {
		return this;
	}

	refresh(): this {
		return this;
	}

	hasRef(): boolean {
		return false;
	}
}

const processContext = { workingDirectory: process.cwd(), environment: {} };
const { port: compiler } = runBundle('compiler', {
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

const control = new Int32Array(new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT));
const workerStartData: WorkerStartData & { readonly io: IoMode } = {
	index: 0,
	rows: 1,
	threads: 1,
	control: control.buffer as SharedArrayBuffer,
	counters: createCounterRow(),
	activity: new ThreadActivity().memory,
	descriptors: new OwnedDescriptors().memory,
	sharePorts: true,
	terminal: false,
	verbose: false,
	io: chooseIoMode(undefined, {}),
	...processContext,
};
// Timers never expire here. Otherwise, the speed of the machine would determine which of them expire during the run.
globalThis.setTimeout = globalThis.setInterval = (() => new InertTimer()) as never;
const { port: worker, load } = runBundle('worker', workerStartData);
const listeningDescriptor = await buildGeneration(worker, prepareResult.delta);
control[CONTROL_GENERATION] = 1;
postToWorker(worker, { type: 'activate' });
await pingWorker(worker);
if (process.platform === 'linux' && listeningDescriptor !== undefined) {
	await sendSampleRequests(listeningDescriptor);
	// The server has closed the connection. The ping is answered only after the callbacks that this causes have run.
	await pingWorker(worker);
}
for (const part of threadBundles.filter(isWorkerPart)) load(`./${part}`);
for (const asset of threadBundles) writeFileSync(cacheAsset(asset), scriptOf(asset).createCachedData());
process.exit();
