/**
 * Creates the V8 code caches of the program's chunks (see program-loader.js): runs `svc validate`, loads the remaining chunks, and
 * saves the code that V8 compiled.
 *
 * Usage: node cli/packaging/program-cache.ts, in the folder of the chunks
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Script } from 'node:vm';
import { cacheAsset } from '../../runtime/threads/thread-source.ts';
import { FIRST_CHUNK, isChunk, NODE_MODULES_SCRIPT } from './bundles.ts';
import { SAMPLE_CONFIGURATION } from './sample-run.ts';

interface Module {
	readonly exports: object;
}

const folder = process.cwd();
const scriptsByAsset = new Map<string, Script>();
const chunksByName = new Map<string, Module>();

/** Runs a script that evaluates to a function, and returns that function. */
function loadFunction(asset: string): (...args: unknown[]) => unknown {
	const script = new Script(readFileSync(path.join(folder, asset), 'latin1'), { filename: `svc-${asset}` });
	scriptsByAsset.set(asset, script);
	return script.runInThisContext();
}

const requireOfNode = loadFunction(NODE_MODULES_SCRIPT)(createRequire(import.meta.url)) as (name: string) => unknown;

/** Loads a chunk, or a module of Node, as the binary does. */
function loadModule(name: string): unknown {
	if (!name.startsWith('./')) return requireOfNode(name);
	const existing = chunksByName.get(name);
	if (existing) return existing.exports;
	const chunk = { exports: {} };
	chunksByName.set(name, chunk);
	loadFunction(name.slice(2))(loadModule, chunk, chunk.exports);
	return chunk.exports;
}

const sampleFolder = mkdtempSync(path.join(folder, 'sample-'));
writeFileSync(path.join(sampleFolder, 'Configfile'), SAMPLE_CONFIGURATION.replace('/srv', '.'));
process.chdir(sampleFolder);
process.argv = [process.execPath, 'svc', 'validate'];
process.on('exit', status => {
	process.chdir(folder);
	rmSync(sampleFolder, { recursive: true });
	if (status !== 0) return;
	for (const name of readdirSync(folder).filter(isChunk).sort()) loadModule(`./${name}`);
	for (const [asset, script] of scriptsByAsset) writeFileSync(cacheAsset(asset), script.createCachedData());
});
loadModule(`./${FIRST_CHUNK}`);
