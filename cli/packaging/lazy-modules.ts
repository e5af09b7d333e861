/**
 * Lets a bundle load some of its modules when they are first used, although other modules import them statically. Importers get a
 * stub of such a module instead, whose functions load the module and call its functions of the same names.
 *
 * This suits modules whose functions are called when a configuration is built, such as a function that compiles a handler: the
 * handler itself belongs to the loaded module, so a request does not pass through the stub.
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'esbuild';

/**
 * Marks the `import()`s of stubs. The marker is not defined anywhere: {@link loadStubsSynchronously} replaces it. Its name must not
 * occur elsewhere in the program.
 */
const MARKER = 'loadSynchronously';

const MARKED_IMPORT = new RegExp(`\\b${MARKER}\\(import\\(\\s*("[^"]+")\\s*\\)\\)`, 'g');

/**
 * Makes a bundle load the given modules when one of their functions is first called. The bundle must be built with `splitting`, and
 * {@link loadStubsSynchronously} must be applied to its chunks.
 *
 * @param modules Paths relative to `folder`. The modules must export functions. Their other exports cannot be imported, except
 * numbers, strings and Booleans: stubs contain those.
 */
export function lazyModulesPlugin(folder: string, modules: readonly string[]): Plugin {
	const files = new Set(modules.map(module => path.join(folder, module)));
	return {
		name: 'lazy-modules',
		setup(builder) {
			const usedFiles = new Set<string>();
			builder.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path: specifier, resolveDir, kind }) => {
				const file = path.join(resolveDir, specifier);
				if (kind !== 'import-statement' || !files.has(file)) return undefined;
				usedFiles.add(file);
				// The names of chunks depend on this path. It is relative, so that they are the same wherever they are built.
				return { path: path.relative(folder, file), namespace: 'lazy-module' };
			});
			builder.onLoad({ filter: /.*/, namespace: 'lazy-module' }, async ({ path: module }) => ({
				contents: await stubOf(path.join(folder, module)),
				resolveDir: path.dirname(path.join(folder, module)),
			}));
			builder.onEnd(() => {
				const unusedFiles = [...files.difference(usedFiles)].map(file => path.relative(folder, file));
				return {
					errors: unusedFiles.map(file => ({ text: `${file} is a lazy module, but nothing imports it.` })),
				};
			});
		},
	};
}

/** Returns the code of a module with the exports of the given module. Its functions load that module when they are called. */
async function stubOf(file: string): Promise<string> {
	const exports = Object.entries((await import(pathToFileURL(file).href)) as object);
	const declarations = exports.map(([name, value]) => {
		if (['number', 'string', 'boolean'].includes(typeof value))
			return `export const ${name} = ${JSON.stringify(value)};`;
		// A stub cannot take the place of a class or an object. esbuild reports an import of an export that is missing.
		if (typeof value !== 'function' || /^class\b/.test(String(value))) return '';
		return `export const ${name} = (...args) => load().${name}(...args);`;
	});
	return [
		'let loaded;',
		`const load = () => (loaded ??= ${MARKER}(import(${JSON.stringify(`./${path.basename(file)}`)})));`,
		...declarations,
	].join('\n');
}

/** Replaces the `import()`s of stubs in a chunk with a `require`, which returns the module instead of a promise. */
export function loadStubsSynchronously(code: string): string {
	const edited = code.replaceAll(MARKED_IMPORT, 'require($1)');
	if (edited.includes(MARKER)) throw new Error('A chunk contains the import() of a stub in an unexpected form.');
	return edited;
}
