/** Where a thread's code comes from: a file in a checkout, a bundled asset inside the single binary. */
import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { ioMode } from '../sockets/io-mode.ts';

/** Asset of the binary that holds the bundle of thread-entry.ts: a function of `require`. */
export const THREAD_ASSET = 'worker.js';

/** Asset with the compiled code of that bundle: without it a thread takes four times as long to start. */
export const THREAD_CACHE_ASSET = 'worker.cache';

/** What a thread of the binary runs. A cache that this engine does not take is left aside by it. */
const THREAD_START = `
const { getAsset, getRawAsset } = require('node:sea');
const { Script } = require('node:vm');
const cachedData = new Uint8Array(getRawAsset('${THREAD_CACHE_ASSET}'));
const script = new Script(getAsset('${THREAD_ASSET}', 'utf8'), { filename: 'svc-thread.js', cachedData });
script.runInThisContext()(require);
`;

/** The kinds of thread that {@link startThread} starts. */
export type ThreadKind = 'compiler' | 'worker' | 'passwords' | 'pages';

/**
 * Megabytes for new objects. Left alone they grow threefold over hundreds of loads without any use to a request, whose
 * objects die young. Compiling goes from site to site and needs little more at a time.
 */
const YOUNG_MEGABYTES: { readonly [kind in ThreadKind]: number } = {
	compiler: 32,
	worker: 16,
	passwords: 4,
	pages: 4,
};

/**
 * Starts a thread of that kind. `data` is cloned to it beside `kind`. Its standard streams are not captured: what runs
 * there logs by messages.
 */
export function startThread(kind: ThreadKind, data: object): Worker {
	const all: WorkerOptions = {
		workerData: { ...data, kind, io: ioMode() },
		name: `svc-${kind}`,
		resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES[kind] },
	};
	// A file path does not exist inside the binary.
	if (isSea()) return new Worker(THREAD_START, { ...all, eval: true });
	// A thread does not inherit the cache of compiled code, without which it starts in twice the time.
	const cache = getCompileCacheDir();
	const env = cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: path.dirname(cache) };
	return new Worker(new URL('./thread-entry.ts', import.meta.url), { ...all, env });
}
