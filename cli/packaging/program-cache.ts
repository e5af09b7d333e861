/**
 * Creates the V8 code caches of the program's chunks and packs (see program-loader.js): runs `svc validate`, compiles a
 * configuration as the main thread of a server does, loads the remaining chunks, and saves the code that V8 compiled.
 *
 * Usage: node cli/packaging/program-cache.ts, in the folder of the chunks
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Script } from 'node:vm';
import type { PrepareResult } from '../../runtime/compile/compiler-messages.ts';
import { cacheAsset, NODE_MODULES_ASSET } from '../../runtime/threads/thread-source.ts';
import { BUNDLES_FILE, type Bundles, FIRST_CHUNK, PACK_NAMES_SCRIPT } from './bundles.ts';
import { SAMPLE_CONFIGURATION } from './sample-run.ts';

type BundleFunction = (...args: unknown[]) => unknown;

interface Module {
	readonly exports: object;
}

const folder = process.cwd();
const { packs, unpackedChunks, compilationChunk } = JSON.parse(readFileSync(BUNDLES_FILE, 'utf8')) as Bundles;
const scriptsByAsset = new Map<string, Script>();
const chunksByName = new Map<string, Module>();
const functionsByPack = new Map<string, { readonly [chunk: string]: BundleFunction }>();

/** Runs the script in a file, and returns its value. */
function evaluate(asset: string): unknown {
	const script = new Script(readFileSync(path.join(folder, asset), 'latin1'), { filename: `svc-${asset}` });
	scriptsByAsset.set(asset, script);
	return script.runInThisContext();
}

const requireOfNode = (evaluate(NODE_MODULES_ASSET) as BundleFunction)(createRequire(import.meta.url)) as (
	name: string,
) => unknown;
(evaluate(PACK_NAMES_SCRIPT) as BundleFunction)();

function chunkFunction(name: string): BundleFunction {
	const pack = packs.find(({ chunks }) => chunks.includes(name));
	if (pack === undefined) return evaluate(name.slice(2)) as BundleFunction;
	let functions = functionsByPack.get(pack.name);
	if (functions === undefined) {
		functions = evaluate(pack.name) as { readonly [chunk: string]: BundleFunction };
		functionsByPack.set(pack.name, functions);
	}
	return functions[name]!;
}

/** Loads a chunk, or a module of Node, as the binary does. */
function loadModule(name: string): unknown {
	if (!name.startsWith('./')) return requireOfNode(name);
	const existing = chunksByName.get(name);
	if (existing) return existing.exports;
	const chunk = { exports: {} };
	chunksByName.set(name, chunk);
	chunkFunction(name)(loadModule, chunk, chunk.exports);
	return chunk.exports;
}

const sampleFolder = mkdtempSync(path.join(folder, 'sample-'));
writeFileSync(path.join(sampleFolder, 'Configfile'), SAMPLE_CONFIGURATION.replace('/srv', '.'));
process.chdir(sampleFolder);
process.argv = [process.execPath, 'svc', 'validate'];
process.once('beforeExit', async () => {
	const { Compilation } = loadModule(compilationChunk) as typeof import('../../runtime/compile/compilation.ts');
	const compilation = new Compilation({
		workingDirectory: sampleFolder,
		environment: {},
		etagKey: new Uint8Array(32),
	});
	const input = { format: 'configfile', text: SAMPLE_CONFIGURATION, name: 'Configfile' } as const;
	const result = (await compilation.answer({ id: 1, op: 'prepare', input, unconfigured: false })) as PrepareResult;
	if (result.result !== 'swap') throw new Error(`The sample was not accepted: ${JSON.stringify(result)}`);
	await compilation.answer({ id: 2, op: 'commit' });
});
process.on('exit', status => {
	process.chdir(folder);
	rmSync(sampleFolder, { recursive: true });
	if (status !== 0) return;
	for (const chunk of packs.flatMap(({ chunks }) => chunks)) loadModule(chunk);
	for (const chunk of unpackedChunks) loadModule(`./${chunk}`);
	for (const [asset, script] of scriptsByAsset) writeFileSync(cacheAsset(asset), script.createCachedData());
});
loadModule(`./${FIRST_CHUNK}`);
