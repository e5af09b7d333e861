/**
 * Bundles the program for the binary, which has no module loader. Each bundle is a script that evaluates to a function, and is
 * stored as an asset of the binary, together with its V8 code cache.
 *
 * A thread loads one bundle (thread-source.ts), and worker threads load further parts when they need them (worker-bundle.ts). The
 * main thread's code is split into chunks at its `import()`s. program-loader.js loads each chunk when it is needed, so that a command
 * loads little more than it uses. Chunks that `run` and `validate` load together are joined into packs, because many small scripts
 * take longer to load than a few large ones. Large packages that only some configurations need are bundles of their own, which all
 * threads share.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { build, type Metafile, type Plugin, transform } from 'esbuild';
import { extensionTypes } from '../../compiler/modules/representations/extension-table.ts';
import {
	NODE_MODULES_ASSET,
	THREAD_ENTRIES,
	type ThreadKind,
	threadAsset,
} from '../../runtime/threads/thread-source.ts';
import { ASSET_TEXTS } from '../documentation/asset-texts.ts';
import { GUIDE_TEXTS } from '../manual/guide-texts.ts';
import { deferModules } from './defer-modules.js';
import type { BundleOptions } from './join-chunks.ts';
import { lazyModulesPlugin, loadStubsSynchronously } from './lazy-modules.ts';
import { MANUAL_MEMBERS_PLUGIN } from './manual-members.ts';
import { plainExports } from './plain-exports.ts';
import { buildWorkerBundle } from './worker-bundle.ts';

const repositoryFolder = path.resolve(import.meta.dirname, '../..');

/** The chunk that starts the program. */
export const FIRST_CHUNK = 'main.js';

/** The script whose function returns, for each chunk that is in a pack, the name of the pack. */
export const PACK_NAMES_SCRIPT = 'pack-names.js';

/** Modules of Node that are loaded when they are first used. Node loads its other modules before it runs a program. */
const DEFERRED_MODULES: readonly string[] = [
	...['child_process', 'crypto', 'dgram', 'dns', 'dns/promises', 'fs/promises', 'http', 'http2', 'https', 'inspector'],
	...['module', 'net', 'os', 'perf_hooks', 'readline', 'readline/promises', 'stream/promises', 'tls', 'tty'],
	...['util', 'v8', 'worker_threads', 'zlib'],
];

/** The pack that contains {@link FIRST_CHUNK}. */
export const FIRST_PACK = 'pack-start.js';

/** The module with which the main thread of a server compiles the first configuration. */
const COMPILATION_MODULE = 'runtime/compile/compilation.ts';

/** The commands that have no packs of their own. Most need little more than what they import statically. */
const OTHER_COMMANDS = 'others';

/** The folder of the commands' modules. */
const COMMANDS_FOLDER = 'cli/commands';

/** For each command that has packs, the modules that the program loads by `import()` to run it. */
const MODULES_OF_COMMANDS: { readonly [command: string]: readonly string[] } = {
	validate: [
		...['cli/commands/validate.ts', 'cli/configuration/validation.ts', 'cli/configuration/compilation.ts'],
		...['cli/command/refusal.ts', 'compiler/lint/lint.ts', 'runtime/preflight/preflight.ts'],
		...['runtime/preflight/listener-findings.ts', 'admin/admin-findings.ts'],
	],
	run: ['cli/commands/run.ts', 'cli/serving/serve.ts', COMPILATION_MODULE],
	// Editors run `fmt` whenever a file is saved, so it must not load the packs of other commands.
	fmt: ['cli/commands/fmt.ts'],
};

/** Modules that the main thread loads when one of their functions is first called. They are not needed for small configurations. */
const LAZY_MODULES: readonly string[] = [
	'compiler/modules/directives/templates/templates-handler.ts',
	'compiler/modules/directives/cache/cache-handler.ts',
	'compiler/modules/directives/file-server/files-handler.ts',
	'compiler/modules/directives/reverse-proxy/proxy-handler.ts',
	'compiler/modules/representations/content-type.ts',
	'compiler/modules/matchers/expression/compile-expression.ts',
	'compiler/modules/directives/encode/encode-handler.ts',
	'compiler/modules/directives/tracing/tracing-handler.ts',
	'compiler/modules/directives/reverse-proxy/lower-transport.ts',
	'compiler/modules/directives/reverse-proxy/lower-health.ts',
];

/** A script that evaluates to an object with the functions of several chunks, by the chunks' names. */
export interface Pack {
	readonly name: string;
	/** Names of the chunks, as the argument of `require` gives them. */
	readonly chunks: readonly string[];
}

/** The file in which the build leaves {@link Bundles} for program-cache.ts. It is not an asset of the binary. */
export const BUNDLES_FILE = 'bundles.json';

/** What {@link writeBundles} has written. */
export interface Bundles {
	/** Names of all bundles. */
	readonly names: readonly string[];
	readonly packs: readonly Pack[];
	/** Names of the chunks that are in no pack, and of the packages' bundles. */
	readonly unpackedChunks: readonly string[];
	/** Names of the bundles that threads load. */
	readonly threadBundles: readonly string[];
	/** The name of the chunk that contains {@link COMPILATION_MODULE}, as it is passed to `require`. */
	readonly compilationChunk: string;
}

/**
 * Replaces the modules that compute the content types, the guides and the documentation site's assets with modules that contain the
 * computed results.
 */
const PRECOMPUTED_MODULES_PLUGIN: Plugin = {
	name: 'prepared',
	setup(builder) {
		builder.onLoad({ filter: /\/extension-table\.ts$/ }, () => {
			const lines = [...extensionTypes()].map(entry => entry.join('\t')).join('\n');
			// Parsing one string is faster than parsing a list of many.
			const table = `${JSON.stringify(lines)}.split('\\n').map(line => line.split('\\t'))`;
			return { contents: `export const extensionTypes = () => new Map(${table});` };
		});
		builder.onLoad({ filter: /\/asset-texts\.ts$/ }, () => {
			return { contents: `export const ASSET_TEXTS = ${JSON.stringify(ASSET_TEXTS)};` };
		});
		builder.onLoad({ filter: /\/guide-texts\.ts$/ }, () => {
			return { contents: `export const GUIDE_TEXTS = ${JSON.stringify(GUIDE_TEXTS)};` };
		});
	},
};

/**
 * Makes Chevrotain compute what it would look up in a table of 65,536 characters. Filling the table takes more than a millisecond of
 * each start, and it is needed only for characters above 255.
 */
const CHEVROTAIN_PLUGIN: Plugin = {
	name: 'chevrotain',
	setup(builder) {
		builder.onLoad({ filter: /\/chevrotain\/lib\/src\/scan\/lexer\.js$/ }, ({ path: file }) => {
			const source = readFileSync(file, 'utf8');
			const contents = source
				.replace(': charCodeToOptimizedIdxMap[charCode];', ': 255 + ~~(charCode / 255);')
				.replace('if (charCodeToOptimizedIdxMap.length === 0)', 'if (false)');
			if (!/255 \+ ~~\(charCode \/ 255\).*if \(false\)/s.test(contents)) {
				throw new Error('The table of characters in Chevrotain has changed.');
			}
			return { contents };
		});
	},
};

/**
 * The packages that are bundles of their own: the bundle's name, the names by which the program imports the package, and the code
 * of the bundle's entry point.
 */
const SHARED_PACKAGES: readonly { readonly bundle: string; readonly imports: RegExp; readonly entry: string }[] = [
	{ bundle: 'package-ajv.js', imports: /^ajv$/, entry: "module.exports = require('ajv')" },
	{
		bundle: 'package-cel.js',
		imports: /^@bufbuild\/cel(?:\/ext)?$/,
		entry: "module.exports = { ...require('@bufbuild/cel'), ...require('@bufbuild/cel/ext') }",
	},
	{ bundle: 'package-markdown.js', imports: /^markdown-it$/, entry: "module.exports = require('markdown-it')" },
	{ bundle: 'package-yaml.js', imports: /^yaml$/, entry: "module.exports = require('yaml')" },
];

/** The names of the packages' bundles. */
export const PACKAGE_BUNDLES: readonly string[] = SHARED_PACKAGES.map(({ bundle }) => bundle);

/** Makes the program load {@link SHARED_PACKAGES} from their bundles. */
const SHARED_PACKAGES_PLUGIN: Plugin = {
	name: 'shared-packages',
	setup(builder) {
		for (const { bundle, imports } of SHARED_PACKAGES) {
			builder.onResolve({ filter: imports }, ({ importer }) =>
				importer.includes('/node_modules/') ? undefined : { path: `./${bundle}`, external: true },
			);
		}
	},
};

/** The plugins of all bundles of the program. */
const SHARED_PLUGINS: readonly Plugin[] = [PRECOMPUTED_MODULES_PLUGIN, CHEVROTAIN_PLUGIN, SHARED_PACKAGES_PLUGIN];

/** Returns build options for a bundle inside the binary. */
function bundleOptions(release: string): BundleOptions {
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
		plugins: [...SHARED_PLUGINS],
	};
}

/** Writes every bundle into a folder. */
export async function writeBundles(release: string, folder: string): Promise<Bundles> {
	const threadBundles = await Promise.all(
		(Object.keys(THREAD_ENTRIES) as ThreadKind[]).map(async kind => {
			const options = bundleOptions(release);
			if (kind === 'worker') return buildWorkerBundle(options, COMMON_JS_OPTIONS);
			const { outputFiles } = await build({
				...options,
				...COMMON_JS_OPTIONS,
				entryPoints: [`runtime/${THREAD_ENTRIES[kind]}`],
			});
			return [[threadAsset(kind), outputFiles[0]!.text] as const];
		}),
	);
	const packageBundles = await Promise.all(
		SHARED_PACKAGES.map(async ({ bundle, entry }) => {
			const { outputFiles } = await build({
				...bundleOptions(release),
				...COMMON_JS_OPTIONS,
				plugins: [],
				// Names inside of packages appear in no message. Names of the program do, in the log of an unforeseen error.
				minifyIdentifiers: true,
				stdin: { contents: entry, resolveDir: repositoryFolder },
			});
			return [bundle, outputFiles[0]!.text] as const;
		}),
	);
	const { outputFiles, metafile } = await build({
		...bundleOptions(release),
		metafile: true,
		plugins: [lazyModulesPlugin(repositoryFolder, LAZY_MODULES), ...SHARED_PLUGINS, MANUAL_MEMBERS_PLUGIN],
		format: 'esm',
		splitting: true,
		outdir: folder,
		entryPoints: [{ in: 'cli/main.ts', out: path.parse(FIRST_CHUNK).name }],
		chunkNames: 'chunk-[hash]',
	});
	refuseCycles(metafile);
	const outputFolder = path.relative(repositoryFolder, folder);
	/** Reports whether a chunk consists of a CommonJS package, which the program loads by `import()`. */
	const isCommonJs = (file: string): boolean => {
		const output = metafile.outputs[file];
		// The bundles of shared packages are not outputs of this build.
		if (output === undefined) return true;
		const { entryPoint, exports } = output;
		return entryPoint !== undefined && metafile.inputs[entryPoint]?.format === 'cjs' && exports.join() === 'default';
	};
	const chunks = await Promise.all(
		outputFiles.map(async ({ path: file, text }) => {
			const { code } = await transform(loadStubsSynchronously(text), {
				...COMMON_JS_OPTIONS,
				platform: 'node',
				minifySyntax: true,
				minifyWhitespace: true,
			});
			return [
				path.basename(file),
				isCommonJs(path.relative(repositoryFolder, file))
					? `${code};${EXPORT_DEFAULT_CODE}`
					: plainExports(code, name => isCommonJs(path.join(outputFolder, name))),
			] as const;
		}),
	);
	const codeByName = new Map<string, string>();
	const addFunction = (name: string, code: string): void => {
		codeByName.set(name, `(function(require,module,exports){${escapeNonAscii(code)}\n})`);
	};
	for (const [name, code] of [...threadBundles.flat(), ...packageBundles, ...chunks]) addFunction(name, code);
	const packs = packChunks(metafile);
	for (const pack of packs) {
		const members = pack.chunks.map(chunk => {
			const asset = path.basename(chunk);
			const code = codeByName.get(asset)!;
			codeByName.delete(asset);
			return `${JSON.stringify(chunk)}:${code}`;
		});
		codeByName.set(pack.name, `({${members.join(',\n')}})`);
	}
	const packNames = Object.fromEntries(packs.flatMap(({ name, chunks }) => chunks.map(chunk => [chunk, name])));
	addFunction(NODE_MODULES_ASSET, `return (${deferModules})(require, ${JSON.stringify(exportNamesByModule())})`);
	addFunction(PACK_NAMES_SCRIPT, `return ${JSON.stringify(packNames)}`);
	for (const [name, code] of codeByName) writeFileSync(path.join(folder, name), code);
	const chunkNames = [...packageBundles, ...chunks].map(([name]) => name);
	return {
		names: [...codeByName.keys()],
		packs,
		unpackedChunks: chunkNames.filter(name => codeByName.has(name)).sort(),
		threadBundles: threadBundles.flat().map(([name]) => name),
		compilationChunk: `./${path.basename(outputFileOf(metafile, COMPILATION_MODULE))}`,
	};
}

/** Throws if a chunk imports itself, through others. Chunks export nothing before they have run (plain-exports.ts). */
function refuseCycles({ outputs }: Metafile): void {
	const finished = new Set<string>();
	const visit = (file: string, importers: readonly string[]): void => {
		if (finished.has(file)) return;
		if (importers.includes(file)) throw new Error(`Chunks import each other: ${importers.join(', ')}.`);
		for (const { path: imported, kind } of outputs[file]!.imports) {
			if (kind === 'import-statement' && outputs[imported] !== undefined) visit(imported, [...importers, file]);
		}
		finished.add(file);
	};
	for (const file of Object.keys(outputs)) visit(file, []);
}

/** Returns the output file whose entry point is a module that the program loads by `import()`. */
function outputFileOf({ outputs }: Metafile, module: string): string {
	const file = Object.keys(outputs).find(output => outputs[output]!.entryPoint === module);
	if (file === undefined) throw new Error(`${module} is loaded by no import().`);
	return file;
}

/**
 * Joins chunks into packs: the chunks that the same commands load form a pack. A chunk of other commands is in a pack only if a
 * command with packs needs it, too.
 */
function packChunks(metafile: Metafile): Pack[] {
	const { outputs } = metafile;
	/** Returns the output files with the given modules and everything that they import statically. */
	const outputsOf = (modules: readonly string[]): Set<string> => {
		const files = new Set<string>();
		const add = (file: string): void => {
			if (files.has(file)) return;
			for (const { path: imported, kind } of outputs[file]!.imports) {
				if (kind === 'import-statement' && outputs[imported] !== undefined) add(imported);
			}
			files.add(file);
		};
		for (const module of modules) add(outputFileOf(metafile, module));
		return files;
	};
	const start = outputsOf(['cli/main.ts']);
	const chunksByPack = new Map([[FIRST_PACK, [...start]]]);
	const modulesOfPacks = new Set(Object.values(MODULES_OF_COMMANDS).flat());
	const otherModules = Object.values(outputs).flatMap(({ entryPoint }) =>
		entryPoint?.startsWith(`${COMMANDS_FOLDER}/`) && !modulesOfPacks.has(entryPoint) ? [entryPoint] : [],
	);
	const outputsByCommand = Object.entries({ ...MODULES_OF_COMMANDS, [OTHER_COMMANDS]: otherModules }).map(
		([command, modules]) => [command, outputsOf(modules).difference(start)] as const,
	);
	for (const file of new Set(outputsByCommand.flatMap(([, files]) => [...files]))) {
		const commands = outputsByCommand.filter(([, files]) => files.has(file)).map(([command]) => command);
		if (commands.every(command => command === OTHER_COMMANDS)) continue;
		const name = `pack-${commands.join('-')}.js`;
		chunksByPack.set(name, [...(chunksByPack.get(name) ?? []), file]);
	}
	return [...chunksByPack].map(([name, files]) => ({ name, chunks: files.map(file => `./${path.basename(file)}`) }));
}

/** Returns the names of the exports of each deferred module. */
function exportNamesByModule(): { readonly [module: string]: readonly string[] } {
	const require = createRequire(import.meta.url);
	return Object.fromEntries(DEFERRED_MODULES.map(name => [name, Object.getOwnPropertyNames(require(`node:${name}`))]));
}

/** Lets `import()` of a CommonJS package find the named exports. In chunks, esbuild puts all exports into the default export. */
const EXPORT_DEFAULT_CODE = 'module.exports=module.exports.default;';

/**
 * Bundles are scripts, which cannot use `import()`. esbuild replaces each `import()` with a `require` that runs at the same moment.
 */
const COMMON_JS_OPTIONS = { format: 'cjs', supported: { 'dynamic-import': false } } as const;

/**
 * Escapes non-ASCII characters, which esbuild leaves in regular expressions. If a source contains a single character beyond
 * Latin-1, V8 stores each of its millions of characters in two bytes, in every thread.
 */
function escapeNonAscii(code: string): string {
	return code.replace(/[^\0-\x7f]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
