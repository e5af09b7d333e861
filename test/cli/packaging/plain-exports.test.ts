/** What the build makes of the exports of a chunk, converted by esbuild as the build does it. */
import { transformSync } from 'esbuild';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { plainExports } from '../../../cli/packaging/plain-exports.ts';

const exporting = suite('plain exports');

/** Converts a module as the build does, and runs it. */
function run(source: string, modules: { readonly [name: string]: unknown } = {}): { readonly [name: string]: unknown } {
	const module = { exports: {} as { readonly [name: string]: unknown } };
	const load = (name: string): unknown => modules[name];
	new Function('require', 'module', 'exports', convert(source))(load, module, module.exports);
	return module.exports;
}

function convert(source: string): string {
	const { code } = transformSync(source, {
		format: 'cjs',
		platform: 'node',
		supported: { 'dynamic-import': false },
		minifySyntax: true,
		minifyWhitespace: true,
	});
	return plainExports(code, name => name === 'package.js');
}

exporting('are ordinary properties with the values of the chunk', () => {
	const exports = run(
		'const one = 1; function two() { return one + 1; } class Three {} export { one, two as deux, Three };',
	);
	for (const name of ['one', 'deux', 'Three']) {
		assert.ok('value' in Object.getOwnPropertyDescriptor(exports, name)!, name);
	}
	assert.is(exports.one, 1);
	assert.is((exports.deux as () => number)(), 2);
});

exporting('a chunk without exports keeps its code', () => {
	const seen: string[] = [];
	run('import { push } from "./a.js"; push("ran");', { './a.js': { push: (text: string) => seen.push(text) } });
	assert.equal(seen, ['ran']);
});

exporting('an imported chunk is passed on as it is, and a package with its default export', async () => {
	const chunk = { __esModule: true, name: 'chunk' };
	const { load, loadPackage } = run(
		'export const load = () => import("./chunk.js"); export const loadPackage = () => import("./package.js");',
		{ './chunk.js': chunk, './package.js': { name: 'package' } },
	) as { readonly [name: string]: () => Promise<{ name: string; default?: { name: string } }> };
	assert.is(await load!(), chunk);
	assert.is((await loadPackage!()).default!.name, 'package');
});

exporting('the default export of a module of Node is the module', () => {
	const node = { 'node:path': { join: () => 'joined', sep: '/' } };
	assert.is(run('import path from "node:path"; export const joined = path.join();', node).joined, 'joined');
	const both = run('import path, { sep } from "node:path"; export const joined = path.join() + sep;', node);
	assert.is(both.joined, 'joined/');
});

exporting('an export that changes is refused', () => {
	const source = 'export let count = 0; export function increment() { count++; }';
	assert.throws(() => convert(source), /The export count changes/);
});

exporting.run();
