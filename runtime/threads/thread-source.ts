/** Where the code of a thread comes from: a file in a checkout, an embedded asset in the single binary. */
import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { isSea } from 'node:sea';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { ioMode } from '../sockets/io-mode.ts';

/** The kinds of thread that {@link startThread} starts. */
export type ThreadKind = 'compiler' | 'worker' | 'passwords' | 'pages';

/** The entry point of each kind of thread, relative to the folder `runtime`. */
export const THREAD_ENTRIES: { readonly [kind in ThreadKind]: string } = {
	compiler: 'compile/compiler-entry.ts',
	worker: 'worker/worker-entry.ts',
	passwords: 'passwords/password-entry.ts',
	pages: 'page-work/page-work-entry.ts',
};

/**
 * The asset with a function that takes Node's own `require`, and returns the function with which bundles load modules of Node (see
 * defer-modules.js).
 */
export const NODE_MODULES_ASSET = 'node-modules.js';

/**
 * Returns the name of the asset with the code of a kind of thread: the bundle of its entry point, wrapped in a function with the
 * parameters `require`, `module` and `exports`. The code is ASCII.
 */
export function threadAsset(kind: ThreadKind): string {
	return `thread-${kind}.js`;
}

/**
 * Returns the name of the asset with the code cache of a bundle. Without this cache, the bundle takes several times as long to
 * load.
 */
export function cacheAsset(asset: string): string {
	return asset.replace(/\.js$/, '.cache');
}

/**
 * Returns the script that a thread runs. `readExpression` is the JavaScript of a function that reads an asset as a `Buffer`. The
 * engine ignores a code cache that it cannot use.
 */
function threadScript(kind: ThreadKind, readExpression: string): string {
	// Decoding as Latin-1 creates a string with one byte per character, which takes half as much memory, and only copies the bytes.
	return `
const { Script } = require('node:vm');
const read = ${readExpression};
function evaluate(asset) {
	const cachedData = read(asset.replace(/js$/, 'cache'));
	return new Script(read(asset).latin1Slice(), { filename: 'svc-' + asset, cachedData }).runInThisContext();
}
const requireOfNode = evaluate('${NODE_MODULES_ASSET}')(require);
const bundles = new Map();
function load(name) {
	if (!name.startsWith('./')) return requireOfNode(name);
	const loadedBundle = bundles.get(name);
	if (loadedBundle) return loadedBundle.exports;
	const module = { exports: {} };
	bundles.set(name, module);
	evaluate(name.slice(2))(load, module, module.exports);
	return module.exports;
}
load('./${threadAsset(kind)}');
`;
}

/** The JavaScript of a function that reads an asset embedded in the binary. */
const READ_ASSET_EXPRESSION = `name => Buffer.from(require('node:sea').getRawAsset(name))`;

/**
 * The environment variable with a folder that holds the threads' assets as files. In a checkout, threads start from these files
 * if the variable is set. The tests set it, because they start thousands of threads, and starting a thread from the sources takes
 * several times as long.
 */
export const THREAD_CODE_VARIABLE = 'SVC_THREAD_CODE';

/** The JavaScript of a function that reads an asset from the folder that {@link THREAD_CODE_VARIABLE} names. */
const READ_FILE_EXPRESSION = `name => require('node:fs').readFileSync(process.env.${THREAD_CODE_VARIABLE} + '/' + name)`;

/**
 * Maximum size of V8's young generation in megabytes. By default, it triples over hundreds of reloads, which does not help
 * requests, whose objects die young. Compilation proceeds site by site and needs little memory at a time.
 */
const MAX_YOUNG_MEGABYTES: { readonly [kind in ThreadKind]: number } = {
	compiler: 32,
	worker: 16,
	passwords: 4,
	pages: 4,
};

/**
 * Starts a thread of the given kind, which receives a clone of `data`. Its standard streams are not captured,
 * because threads log through messages.
 */
export function startThread(kind: ThreadKind, data: object): Worker {
	const options: WorkerOptions = {
		workerData: { ...data, io: ioMode() },
		name: `svc-${kind}`,
		resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_MEGABYTES[kind] },
	};
	// The binary contains no script file that a Worker could load, so it gets the code as a text.
	if (isSea()) return new Worker(threadScript(kind, READ_ASSET_EXPRESSION), { ...options, eval: true });
	if (process.env[THREAD_CODE_VARIABLE]) {
		return new Worker(threadScript(kind, READ_FILE_EXPRESSION), { ...options, eval: true });
	}
	// Threads do not inherit the compile cache. Without it, they take twice as long to start.
	const cacheFolder = getCompileCacheDir();
	const env =
		cacheFolder === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: path.dirname(cacheFolder) };
	return new Worker(new URL(`../${THREAD_ENTRIES[kind]}`, import.meta.url), { ...options, env });
}
