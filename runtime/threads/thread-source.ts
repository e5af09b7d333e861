/** The source of a thread's code: a file in a checkout, an embedded asset in the single binary. */
import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { ioMode } from '../sockets/io-mode.ts';

/** The asset with the bundle of thread-entry.ts: a function of `require`. */
export const THREAD_ASSET = 'worker.js';

/** The asset with that bundle's code cache, without which a thread takes four times as long to start. */
export const THREAD_CACHE_ASSET = 'worker.cache';

/** What a thread of the binary runs. The engine ignores a cache that it cannot use. */
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
 * Maximum young generation in megabytes. By default, it triples over hundreds of loads, without benefit for requests, whose
 * objects die young. Compiling proceeds site by site and needs little more at a time.
 */
const YOUNG_MEGABYTES: { readonly [kind in ThreadKind]: number } = {
	compiler: 32,
	worker: 16,
	passwords: 4,
	pages: 4,
};

/**
 * Starts a thread of that kind. `data` is cloned to it, together with `kind`. Its standard streams are not captured, because
 * threads log through messages.
 */
export function startThread(kind: ThreadKind, data: object): Worker {
	const all: WorkerOptions = {
		workerData: { ...data, kind, io: ioMode() },
		name: `svc-${kind}`,
		resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES[kind] },
	};
	// A file path does not exist in the binary.
	if (isSea()) return new Worker(THREAD_START, { ...all, eval: true });
	// Threads do not inherit the compile cache, without which they take twice as long to start.
	const cache = getCompileCacheDir();
	const env = cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: path.dirname(cache) };
	return new Worker(new URL('./thread-entry.ts', import.meta.url), { ...all, env });
}
