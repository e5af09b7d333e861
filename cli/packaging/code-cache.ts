/**
 * Creates the V8 code cache that is shipped with the thread bundle: runs what a thread runs when it starts, in a separate process,
 * and saves the code that V8 compiled.
 *
 * Usage: node cli/packaging/code-cache.ts <bundle> <cache>
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Script } from 'node:vm';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { CompilerRequest, PrepareResult } from '../../runtime/compile/compiler-messages.ts';
import { createCounterRow } from '../../runtime/metrics/counter-row.ts';
import { OwnedDescriptors } from '../../runtime/sockets/owned-descriptors.ts';
import { CONTROL_SLOTS } from '../../runtime/threads/control-words.ts';
import { SharedRows } from '../../runtime/threads/shared-rows.ts';
import { ThreadActivity } from '../../runtime/threads/thread-activity.ts';
import type {
	GenerationDelta,
	MessageFromWorker,
	MessageToWorker,
	WorkerStartData,
} from '../../runtime/worker/worker-messages.ts';

/** A typical configuration. It determines which code is in the cache. */
const SAMPLE = `{
	admin 127.0.0.1:2019
	threads 2
}

(common) {
	header -Server
	header X-Content-Type-Options nosniff
}

http://example.com, http://www.example.com {
	import common
	@old path /old /old/*
	redir @old /new permanent
	handle /api/* {
		reverse_proxy 127.0.0.1:9000
	}
	handle {
		root /srv
		file_server
	}
	log
}

:8080 {
	respond "Hello {host}" 200
}
`;

const [bundle, cache] = process.argv.slice(2);
if (bundle === undefined || cache === undefined) throw new Error('Usage: code-cache.ts <bundle> <cache>');
const script = new Script(readFileSync(bundle, 'utf8'), { filename: 'svc-thread.js' });
const start = script.runInThisContext() as (require: (name: string) => unknown) => void;

/** Runs the bundle like a thread of the given kind and returns the main thread's port. */
function run(workerData: object): MessagePort {
	const load = createRequire(import.meta.url);
	const { port1, port2 } = new MessageChannel();
	start(name =>
		/^(node:)?worker_threads$/.test(name) ? { ...load(name), parentPort: port2, workerData } : load(name),
	);
	return port1;
}

/** Sends a request to the compile thread. */
function ask(port: MessagePort, request: CompilerRequest): Promise<unknown> {
	return new Promise(resolve => {
		port.once('message', ({ answer }) => resolve(answer));
		port.postMessage(request);
	});
}

/** Lets a worker thread build the prepared generation. */
function build(port: MessagePort, delta: GenerationDelta): Promise<void> {
	const rows = new SharedRows(1);
	const post = (message: MessageToWorker): void => port.postMessage(message);
	return new Promise((resolve, reject) => {
		port.on('message', (message: MessageFromWorker) => {
			if (message.type === 'memory_wanted') {
				post({ type: 'memory', key: message.key, buffer: rows.take(message.key, message.wanted, 0) });
			} else if (message.type === 'prepared') resolve();
			else if (message.type === 'refused') reject(new Error(`The sample was not built: ${message.message}`));
		});
		post({ type: 'prepare', attempt: 1, generation: 1, delta, listeners: [] });
	});
}

const deps = { workingDirectory: path.dirname(bundle), environment: {} };
const compiler = run({
	kind: 'compiler',
	etagKey: new Uint8Array(32),
	activity: new ThreadActivity().memory,
	...deps,
});
const input = { format: 'configfile', text: SAMPLE, name: 'Configfile' } as const;
const prepared = (await ask(compiler, { id: 1, op: 'prepare', input, unconfigured: false })) as PrepareResult;
if (prepared.result !== 'swap') throw new Error(`The sample was not accepted: ${JSON.stringify(prepared)}`);
await ask(compiler, { id: 2, op: 'commit' });

const data: WorkerStartData & { readonly kind: string } = {
	kind: 'worker',
	index: 0,
	rows: 1,
	control: new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT),
	counters: createCounterRow(),
	activity: new ThreadActivity().memory,
	descriptors: new OwnedDescriptors().memory,
	sharePorts: true,
	terminal: false,
	verbose: false,
	...deps,
};
await build(run(data), prepared.delta);
writeFileSync(cache, script.createCachedData());
process.exit();
