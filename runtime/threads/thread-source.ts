/** Where the code of a thread comes from: a file in a checkout, an embedded asset in the single binary. */
import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { ioMode } from '../sockets/io-mode.ts';

/** The asset with the bundle of thread-entry.ts, wrapped in a function with the parameter `require`. */
export const THREAD_ASSET = 'worker.js';

/** The asset with that bundle's code cache, without which a thread takes four times as long to start. */
export const THREAD_CACHE_ASSET = 'worker.cache';

/** Runs the bundle, given its source and its code cache. The engine ignores a cache that it cannot use. */
const RUN_BUNDLE = `
const { Script } = require('node:vm');
new Script(source, { filename: 'svc-thread.js', cachedData }).runInThisContext()(require);
`;

/** What a thread of the binary runs. */
const THREAD_START = `
const { getAsset, getRawAsset } = require('node:sea');
const source = getAsset('${THREAD_ASSET}', 'utf8');
const cachedData = new Uint8Array(getRawAsset('${THREAD_CACHE_ASSET}'));
${RUN_BUNDLE}`;

/**
 * The environment variable with a folder that holds both assets as files. In a checkout, threads then start from them. The
 * tests set it: they start thousands of threads, and each takes several times as long to start from the sources.
 */
export const THREAD_CODE_VARIABLE = 'SVC_THREAD_CODE';

/** What a thread runs if {@link THREAD_CODE_VARIABLE} is set. */
const FOLDER_START = `
const { readFileSync } = require('node:fs');
const folder = process.env.${THREAD_CODE_VARIABLE};
const source = readFileSync(folder + '/${THREAD_ASSET}', 'utf8');
const cachedData = readFileSync(folder + '/${THREAD_CACHE_ASSET}');
${RUN_BUNDLE}`;

/** The kinds of thread that {@link startThread} starts. */
export type ThreadKind = 'compiler' | 'worker' | 'passwords' | 'pages';

/**
 * Maximum size of V8's young generation in megabytes. By default, it triples over hundreds of reloads, which does not help requests,
 * whose objects die young. Compilation proceeds site by site and needs little more at a time.
 */
const YOUNG_MEGABYTES: { readonly [kind in ThreadKind]: number } = {
	compiler: 32,
	worker: 16,
	passwords: 4,
	pages: 4,
};

/**
 * Starts a thread of the given kind, which receives a clone of `data` with `kind` added. Its standard streams are not captured,
 * because threads log through messages.
 */
export function startThread(kind: ThreadKind, data: object): Worker {
	const all: WorkerOptions = {
		workerData: { ...data, kind, io: ioMode() },
		name: `svc-${kind}`,
		resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES[kind] },
	};
	// A file path does not exist in the binary.
	if (isSea()) return new Worker(THREAD_START, { ...all, eval: true });
	if (process.env[THREAD_CODE_VARIABLE]) return new Worker(FOLDER_START, { ...all, eval: true });
	// Threads do not inherit the compile cache, without which they take twice as long to start.
	const cache = getCompileCacheDir();
	const env = cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: path.dirname(cache) };
	return new Worker(new URL('../thread-entry.ts', import.meta.url), { ...all, env });
}
