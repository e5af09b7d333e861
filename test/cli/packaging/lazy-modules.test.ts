/** The bundle of worker threads loads some modules when their functions are first called. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runInThisContext } from 'node:vm';
import { build } from 'esbuild';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { joinChunks } from '../../../cli/packaging/join-chunks.ts';
import { lazyModulesPlugin, loadStubsSynchronously } from '../../../cli/packaging/lazy-modules.ts';
import { temporaryFolder } from '../../harness.ts';

const BUNDLE_OPTIONS = {
	bundle: true,
	write: false,
	platform: 'node',
	target: 'node26',
	minifySyntax: true,
	minifyWhitespace: true,
	logLevel: 'silent',
} as const;

/** Bundles modules. `main.ts` is the entry point. */
async function bundle(modules: { readonly [file: string]: string }, lazyModules: readonly string[]) {
	const folder = temporaryFolder();
	for (const [file, code] of Object.entries(modules)) {
		mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
		writeFileSync(path.join(folder, file), code);
	}
	const { outputFiles } = await build({
		...BUNDLE_OPTIONS,
		minifyWhitespace: false,
		absWorkingDir: folder,
		format: 'esm',
		splitting: true,
		outdir: folder,
		entryPoints: ['main.ts'],
		chunkNames: '[name]-[hash]',
		plugins: [lazyModulesPlugin(folder, lazyModules)],
	});
	const files = outputFiles.map(file => ({ path: file.path, text: loadStubsSynchronously(file.text) }));
	return new Map(
		await joinChunks(files, 'bundle.js', ['main.js'], BUNDLE_OPTIONS, {
			format: 'cjs',
			supported: { 'dynamic-import': false },
		}),
	);
}

/** Evaluates the bundle as a thread does. Returns what it has recorded, and the names of the parts that were loaded. */
function run(bundles: ReadonlyMap<string, string>) {
	const loaded = new Map<string, { readonly exports: object }>();
	const load = (name: string): unknown => {
		const existing = loaded.get(name);
		if (existing) return existing.exports;
		const module = { exports: {} };
		loaded.set(name, module);
		const code = `(function (require, module, exports) {${bundles.get(name.slice(2))!}})`;
		runInThisContext(code)(load, module, module.exports);
		return module.exports;
	};
	const records: unknown[] = [];
	Object.assign(globalThis, { records });
	load('./bundle.js');
	return { records, loadedNames: [...loaded.keys()].map(withoutHash) };
}

function withoutHash(name: string): string {
	return path.basename(name, '.js').replace(/-[A-Z0-9]+$/, '');
}

const lazy = suite('lazy modules');

lazy(
	'a lazy module is loaded once, when one of its functions is called, and shares modules with the bundle',
	async () => {
		const bundles = await bundle(
			{
				'main.ts': `
				import { state, State } from './state.ts';
				import { compile, describe } from './rare/rare.ts';
				globalThis.records.push('main');
				state.uses++;
				globalThis.records.push(compile(1, 2) instanceof State, describe(), state.uses);
			`,
				'state.ts': 'export class State { uses = 0; }\nexport const state = new State();',
				'rare/rare.ts': `
				import { state, State } from '../state.ts';
				globalThis.records?.push('rare');
				export function compile(first: number, second: number): State {
					state.uses += first + second;
					return state;
				}
				export const describe = (): string => 'described';
			`,
			},
			['rare/rare.ts'],
		);
		assert.equal([...bundles.keys()].map(withoutHash), ['bundle', 'rare']);
		assert.equal(run(bundles), {
			records: ['main', 'rare', true, 'described', 4],
			loadedNames: ['bundle', 'rare'],
		});
	},
);

lazy('what two lazy modules share is loaded with the first of them', async () => {
	const bundles = await bundle(
		{
			'main.ts': `
				import { one } from './one.ts';
				import { two } from './two.ts';
				globalThis.records.push(one() === two());
			`,
			'one.ts': `import { made } from './shared.ts';\nexport const one = () => made;`,
			'two.ts': `import { made } from './shared.ts';\nexport const two = () => made;`,
			'shared.ts': `globalThis.records?.push('shared');\nexport const made = {};`,
		},
		['one.ts', 'two.ts'],
	);
	assert.equal(run(bundles), {
		records: ['shared', true],
		loadedNames: ['bundle', 'one', 'chunk', 'two'],
	});
});

lazy('a bundle and its parts may use variables of the same name', async () => {
	const bundles = await bundle(
		{
			'main.ts': `
				import { name } from './first.ts';
				import { nameOfSecond } from './second.ts';
				import { names } from './rare.ts';
				import { more } from './other.ts';
				globalThis.records.push(name, nameOfSecond, names(), more());
			`,
			'first.ts': `export const name = 'first';`,
			'second.ts': `export { name as nameOfSecond } from './third.ts';`,
			'third.ts': `export const name = 'third';`,
			'rare.ts': `
				import { name } from './first.ts';
				import { name as third } from './third.ts';
				export const names = () => [name, third];
			`,
			'other.ts': `import { name } from './third.ts';\nexport const more = () => name;`,
		},
		['rare.ts', 'other.ts'],
	);
	assert.equal(run(bundles).records, ['first', 'third', ['first', 'third'], 'third']);
});

async function refusal(modules: { readonly [file: string]: string }, lazyModules: readonly string[]): Promise<string> {
	try {
		await bundle(modules, lazyModules);
	} catch (error) {
		return (error as Error).message;
	}
	throw new Error('It was bundled.');
}

lazy(
	'stubs contain constants, but no classes and objects, and a lazy module that nothing imports is refused',
	async () => {
		const withExport = (code: string) => ({
			'main.ts': "import { a } from './a.ts';\nglobalThis.records.push(a);",
			'a.ts': `${code}\nexport const compile = () => 1;`,
		});
		const withConstant = run(await bundle(withExport(`export const a = 'constant';`), ['a.ts']));
		assert.equal(withConstant, { records: ['constant'], loadedNames: ['bundle'] });
		assert.match(await refusal(withExport('export class a {}'), ['a.ts']), 'No matching export');
		assert.match(await refusal(withExport('export const a = {};'), ['a.ts']), 'No matching export');
		assert.match(
			await refusal({ 'main.ts': '', 'a.ts': 'export const a = () => 1;' }, ['a.ts']),
			'a.ts is a lazy module, but nothing imports it',
		);
	},
);

lazy.run();
