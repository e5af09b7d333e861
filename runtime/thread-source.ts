/** Where a thread's code comes from: a file in a checkout, a bundled asset inside the single binary. */
import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Asset of the binary that holds the bundle of thread-entry.ts. */
export const THREAD_ASSET = 'worker.js';

/** The kinds of thread that {@link startThread} starts. */
export type ThreadKind = 'compiler' | 'worker' | 'passwords';

/**
 * Megabytes for new objects. Left alone they grow threefold over hundreds of loads without any use to a request, whose
 * objects die young. Compiling ten thousand sites takes twice as long when the trees it works on are moved too early.
 */
const YOUNG_MEGABYTES: { readonly [kind in ThreadKind]: number } = {
	compiler: 96,
	worker: 16,
	passwords: 4,
};

/**
 * Starts a thread of that kind. `data` is cloned to it beside `kind`. Its standard streams are not captured: what runs
 * there logs by messages.
 */
export function startThread(kind: ThreadKind, data: object): Worker {
	const all: WorkerOptions = {
		workerData: { ...data, kind },
		name: `svc-${kind}`,
		resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES[kind] },
	};
	// A file path does not exist inside the binary.
	if (isSea()) return new Worker(getAsset(THREAD_ASSET, 'utf8'), { ...all, eval: true });
	// A thread does not inherit the cache of compiled code, without which it starts in twice the time.
	const cache = getCompileCacheDir();
	const env = cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: path.dirname(cache) };
	return new Worker(new URL('./thread-entry.ts', import.meta.url), { ...all, env });
}
