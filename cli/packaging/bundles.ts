/**
 * Bundles the program for the binary, which has no module loader. Each bundle is a script that evaluates to a function, and is
 * stored as an asset of the binary, together with its V8 code cache.
 *
 * A thread loads one bundle (thread-source.ts). The main thread's code is split into chunks at its `import()`s. program-loader.js
 * loads each chunk when it is needed, so that a command loads little more than it uses.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type BuildOptions, build, type Plugin, transform } from 'esbuild';
import { EXTENSION_TYPES } from '../../compiler/modules/representations/extension-table.ts';
import { THREAD_ENTRIES, type ThreadKind, threadAsset } from '../../runtime/threads/thread-source.ts';
import { ASSET_TEXTS } from '../documentation/asset-texts.ts';
import { GUIDE_TEXTS } from '../manual/guide-texts.ts';
import { deferModules } from './defer-modules.js';

const repositoryFolder = path.resolve(import.meta.dirname, '../..');

/** The chunk that starts the program. */
export const FIRST_CHUNK = 'main.js';

/** The script whose function takes Node's own `require`, and returns the function with which chunks load modules of Node. */
export const NODE_MODULES_SCRIPT = 'node-modules.js';

/** Modules of Node that are loaded when they are first used. Node loads its other modules before it runs a program. */
const DEFERRED_MODULES: readonly string[] = [
	...['child_process', 'crypto', 'dgram', 'dns', 'dns/promises', 'fs/promises', 'http', 'http2', 'https', 'inspector'],
	...['module', 'net', 'os', 'readline', 'readline/promises', 'stream/promises', 'tls', 'v8', 'worker_threads', 'zlib'],
];

/** Reports whether a file is a chunk of the main thread's code. */
export function isChunk(name: string): boolean {
	return name === FIRST_CHUNK || /^(?:chunk-|\w.*-)[A-Z0-9]{8}\.js$/.test(name);
}

/**
 * Replaces the modules that compute the content types, the guides and the documentation site's assets by modules with the
 * computed results.
 */
const PRECOMPUTED_MODULES_PLUGIN: Plugin = {
	name: 'prepared',
	setup(builder) {
		builder.onLoad({ filter: /\/extension-table\.ts$/ }, () => {
			const lines = [...EXTENSION_TYPES].map(entry => entry.join('\t')).join('\n');
			// Parsing one string is faster than parsing a list of many.
			const table = `${JSON.stringify(lines)}.split('\\n').map(line => line.split('\\t'))`;
			return { contents: `export const EXTENSION_TYPES = new Map(${table});` };
		});
		builder.onLoad({ filter: /\/asset-texts\.ts$/ }, () => {
			return { contents: `export const ASSET_TEXTS = ${JSON.stringify(ASSET_TEXTS)};` };
		});
		builder.onLoad({ filter: /\/guide-texts\.ts$/ }, () => {
			return { contents: `export const GUIDE_TEXTS = ${JSON.stringify(GUIDE_TEXTS)};` };
		});
	},
};

/** Returns build options for a bundle inside the binary. */
function bundleOptions(release: string): BuildOptions & { readonly write: false } {
	return {
		absWorkingDir: repositoryFolder,
		// The bundle names modules by their paths. The paths must be the same whether node_modules is a folder or a symbolic link.
		preserveSymlinks: true,
		bundle: true,
		write: false,
		platform: 'node',
		target: `node${process.versions.node}`,
		define: {
			SVC_BUILD_VERSION: JSON.stringify(release),
			'import.meta.url': '"file:///svc"',
			'import.meta.dirname': '"/"',
		},
		minifySyntax: true,
		minifyWhitespace: true,
		legalComments: 'none',
		logLevel: 'warning',
		plugins: [PRECOMPUTED_MODULES_PLUGIN],
	};
}

/** Writes every bundle into a folder. Returns the names of the bundles. */
export async function writeBundles(release: string, folder: string): Promise<string[]> {
	const threadBundles = await Promise.all(
		(Object.keys(THREAD_ENTRIES) as ThreadKind[]).map(async kind => {
			const { outputFiles } = await build({
				...bundleOptions(release),
				...COMMON_JS_OPTIONS,
				entryPoints: [`runtime/${THREAD_ENTRIES[kind]}`],
			});
			return [threadAsset(kind), outputFiles[0]!.text] as const;
		}),
	);
	const { outputFiles, metafile } = await build({
		...bundleOptions(release),
		metafile: true,
		format: 'esm',
		splitting: true,
		outdir: folder,
		entryPoints: [{ in: 'cli/main.ts', out: path.parse(FIRST_CHUNK).name }],
		chunkNames: 'chunk-[hash]',
	});
	/** Reports whether a chunk is loaded by an `import()` of a CommonJS package. */
	const isCommonJs = (file: string): boolean => {
		const { entryPoint, exports } = metafile.outputs[file]!;
		return entryPoint !== undefined && metafile.inputs[entryPoint]?.format === 'cjs' && exports.join() === 'default';
	};
	const chunks = await Promise.all(
		outputFiles.map(async ({ path: file, text }) => {
			const { code } = await transform(text, {
				...COMMON_JS_OPTIONS,
				platform: 'node',
				minifySyntax: true,
				minifyWhitespace: true,
			});
			return [
				path.basename(file),
				isCommonJs(path.relative(repositoryFolder, file)) ? `${code};${EXPORT_DEFAULT_CODE}` : code,
			] as const;
		}),
	);
	const deferScript = `return (${deferModules})(require, ${JSON.stringify(exportNamesByModule())})`;
	const bundles = [
		...threadBundles.map(([name, code]) => [name, `require = (() => {${deferScript}})();${code}`] as const),
		...chunks,
		[NODE_MODULES_SCRIPT, deferScript] as const,
	];
	for (const [name, code] of bundles) {
		writeFileSync(path.join(folder, name), `(function(require,module,exports){${escapeNonAscii(code)}\n})`);
	}
	return bundles.map(([name]) => name);
}

/** Returns the names of the exports of each deferred module. */
function exportNamesByModule(): { readonly [module: string]: readonly string[] } {
	const require = createRequire(import.meta.url);
	return Object.fromEntries(DEFERRED_MODULES.map(name => [name, Object.getOwnPropertyNames(require(`node:${name}`))]));
}

/** Lets `import()` of a CommonJS package find the named exports. In chunks, esbuild puts all exports into the default export. */
const EXPORT_DEFAULT_CODE = 'module.exports=module.exports.default;';

/**
 * Bundles are scripts, which cannot use `import()`. esbuild replaces each `import()` by a `require` that runs at the same moment.
 */
const COMMON_JS_OPTIONS = { format: 'cjs', supported: { 'dynamic-import': false } } as const;

/**
 * Escapes non-ASCII characters, which esbuild leaves in regular expressions. If a source contains a single character beyond
 * Latin-1, V8 stores each of its millions of characters in two bytes, in every thread.
 */
function escapeNonAscii(code: string): string {
	return code.replace(/[^\0-\x7f]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
