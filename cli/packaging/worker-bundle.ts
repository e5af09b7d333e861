/**
 * Builds the bundle of worker threads. Modules that only some configurations need are parts of their own, which a thread loads when
 * it builds the first generation that needs them.
 */
import { build, type TransformOptions } from 'esbuild';
import { THREAD_ENTRIES, threadAsset } from '../../runtime/threads/thread-source.ts';
import { type BundleOptions, joinChunks } from './join-chunks.ts';
import { lazyModulesPlugin, loadStubsSynchronously } from './lazy-modules.ts';
import { shortenLocalNames } from './local-names.ts';
import { WORKER_MODULES_PLUGIN } from './worker-modules.ts';

/** The modules that are parts of their own, together with what only they import. */
const LAZY_MODULES: readonly string[] = [
	'compiler/codegen/regexp/regexp.ts',
	'compiler/modules/directives/basic-auth/basic-auth-handler.ts',
	'compiler/modules/directives/cache/cache-handler.ts',
	'compiler/modules/directives/encode/encode-handler.ts',
	'compiler/modules/directives/errors-page/errors-page-handler.ts',
	'compiler/modules/directives/file-server/files-handler.ts',
	'compiler/modules/directives/limit-concurrent/limit-concurrent-handler.ts',
	'compiler/modules/directives/mirror/mirror-handler.ts',
	'compiler/modules/directives/rate-limit/rate-limit-handler.ts',
	'compiler/modules/directives/replace/replace-handler.ts',
	'compiler/modules/directives/reverse-proxy/proxy-handler.ts',
	'compiler/modules/directives/templates/templates-handler.ts',
	'compiler/modules/directives/tracing/tracing-handler.ts',
	'compiler/modules/matchers/expression/compile-expression.ts',
	'runtime/compression/thread-compressor.ts',
	'runtime/files/file-reader.ts',
	'runtime/listeners/http3-probe.ts',
	'runtime/listeners/quic-listener.ts',
	'runtime/protocols/http2/http2-server.ts',
	'runtime/tls/tls-server.ts',
	'runtime/upstreams/upstream-pool.ts',
	'runtime/worker/open-access-log.ts',
	'runtime/worker/open-cache.ts',
	'runtime/worker/open-limiters.ts',
];

/** Must be evaluated before any other module (see thread-start.ts). */
const FIRST_MODULE = 'runtime/threads/thread-start.ts';

/** The beginning of the names of parts. */
const PART_PREFIX = 'worker-';

/** Reports whether a bundle is a part of the worker's bundle. */
export function isWorkerPart(bundle: string): boolean {
	return bundle.startsWith(PART_PREFIX);
}

/**
 * Builds the bundle. Returns the names and the code of the bundle and its parts.
 *
 * @param options Options of all bundles of the program.
 * @param scriptOptions Further options, which make a script of a bundle.
 */
export async function buildWorkerBundle(
	options: BundleOptions,
	scriptOptions: Pick<TransformOptions, 'format' | 'supported'>,
): Promise<(readonly [name: string, code: string])[]> {
	const { outputFiles } = await build({
		...options,
		minifyWhitespace: false,
		format: 'esm',
		splitting: true,
		outdir: '/',
		entryPoints: [
			{ in: FIRST_MODULE, out: 'thread-start' },
			{ in: `runtime/${THREAD_ENTRIES.worker}`, out: 'worker-entry' },
		],
		chunkNames: `${PART_PREFIX}[name]-[hash]`,
		// The first plugin that loads a module determines its code.
		plugins: [lazyModulesPlugin(options.absWorkingDir!, LAZY_MODULES), ...options.plugins!, WORKER_MODULES_PLUGIN],
	});
	const bundles = await joinChunks(
		outputFiles.map(({ path, text }) => ({ path, text: loadStubsSynchronously(text) })),
		threadAsset('worker'),
		['thread-start.js', 'worker-entry.js'],
		options,
		scriptOptions,
	);
	return Promise.all(bundles.map(async ([name, code]) => [name, await shortenLocalNames(code)] as const));
}
