/**
 * Joins the chunks that a thread loads at its start into one bundle. The other chunks stay files of their own, the bundle's parts.
 *
 * esbuild puts modules that several entry points use into chunks of their own, and a chunk uses the exports of another through
 * getters. In the joined bundle, modules use each other's variables directly, as if it had never been split, and a part copies the
 * variables that it uses when it is loaded.
 */
import path from 'node:path';
import { type BuildOptions, build, type OutputFile, type Plugin, type TransformOptions, transform } from 'esbuild';

/** A chunk that esbuild has made: an ES module that is not minified. */
interface Chunk {
	/** The chunk's file name. */
	readonly name: string;
	readonly code: string;
	readonly imports: readonly ChunkImport[];
}

/** A static import of one chunk by another. */
interface ChunkImport {
	/** The file name of the imported chunk. */
	readonly chunk: string;
	/** The imported names, as the imported chunk exports them, and the names of the importing chunk's variables. */
	readonly names: readonly (readonly [exported: string, local: string])[];
}

/** Options of a build whose output is not written to files. */
export type BundleOptions = BuildOptions &
	Required<Pick<BuildOptions, 'platform' | 'target' | 'minifySyntax' | 'minifyWhitespace'>> & { readonly write: false };

/** The form in which esbuild prints an import of another chunk. */
const IMPORT_STATEMENT = /^import (?:\{([^}]*)\} from )?"\.\/([^"]+)";$/gm;

/** A function that a joined bundle exports. Returns the bundle's variables that parts use. */
const SHARED_VARIABLES = 'sharedVariables';

/**
 * Joins chunks. Returns the names and the code of the bundle and of its parts. The variables of the bundle that a part uses must not
 * change after the part has been loaded, and no part may be loaded while the bundle is being evaluated.
 *
 * @param outputFiles esbuild's output.
 * @param bundle The name of the joined bundle.
 * @param entries File names of the chunks of the entry points, in the order in which they are evaluated.
 * @param options How the bundle is built.
 * @param scriptOptions Further options, which make a script of a bundle or part.
 */
export async function joinChunks(
	outputFiles: readonly Pick<OutputFile, 'path' | 'text'>[],
	bundle: string,
	entries: readonly string[],
	options: BundleOptions,
	scriptOptions: Pick<TransformOptions, 'format' | 'supported'>,
): Promise<(readonly [name: string, code: string])[]> {
	const chunks = new Map(outputFiles.map(file => [path.basename(file.path), chunkOf(file)]));
	const joinedChunks = reachableChunks(chunks, entries);
	const parts = [...chunks.values()].filter(({ name }) => !joinedChunks.has(name));
	refuseCycles(chunks, parts);
	const shared = new SharedVariables(
		parts.flatMap(({ imports }) => imports).filter(({ chunk }) => joinedChunks.has(chunk)),
	);
	const chunkPlugin: Plugin = {
		name: 'chunks',
		setup(builder) {
			builder.onResolve({ filter: /^\.\// }, ({ path: specifier }) => {
				const name = specifier.slice(2);
				return joinedChunks.has(name) ? { path: name, namespace: 'chunk' } : { path: specifier, external: true };
			});
			builder.onLoad({ filter: /.*/, namespace: 'chunk' }, ({ path: name }) => ({ contents: chunks.get(name)!.code }));
		},
	};
	const { outputFiles: built } = await build({
		...options,
		...scriptOptions,
		plugins: [chunkPlugin],
		stdin: { contents: [...entries.map(entry => `import './${entry}';`), shared.exportCode()].join('\n') },
	});
	const { platform, target, minifySyntax, minifyWhitespace } = options;
	const partCodes = parts.map(async ({ name, code }) => {
		const partCode = code.replaceAll(IMPORT_STATEMENT, (_, names: string | undefined, imported: string) => {
			const isJoined = joinedChunks.has(imported);
			if (names === undefined) return isJoined ? '' : `require("./${imported}");`;
			const properties = importedNames(names).map(
				([exported, local]) => `${isJoined ? shared.keyOf(imported, exported) : exported}: ${local}`,
			);
			const source = isJoined ? `require("./${bundle}").${SHARED_VARIABLES}()` : `require("./${imported}")`;
			return `const { ${properties} } = ${source};`;
		});
		const transformed = await transform(partCode, {
			...scriptOptions,
			...{ platform, target, minifySyntax, minifyWhitespace },
		});
		return [name, transformed.code] as const;
	});
	return [[bundle, built[0]!.text], ...(await Promise.all(partCodes))];
}

/** The variables of a joined bundle that its parts use. */
class SharedVariables {
	/** The name of each variable for the parts, by chunk, and by the name with which the chunk exports it. */
	readonly #keys = new Map<string, Map<string, string>>();
	/** How often each name is exported. Several chunks may export the same name. */
	readonly #useCounts = new Map<string, number>();

	constructor(imports: readonly ChunkImport[]) {
		for (const { chunk, names } of imports) {
			const keys = this.#keys.getOrInsertComputed(chunk, () => new Map());
			for (const [exported] of names) keys.getOrInsertComputed(exported, () => this.#newKey(exported));
		}
	}

	#newKey(exported: string): string {
		const useCount = this.#useCounts.get(exported) ?? 0;
		this.#useCounts.set(exported, useCount + 1);
		return useCount === 0 ? exported : `${exported}$${useCount}`;
	}

	keyOf(chunk: string, exported: string): string {
		return this.#keys.get(chunk)!.get(exported)!;
	}

	/** Returns the code of the bundle's export. The object is only made for the first part that is loaded. */
	exportCode(): string {
		const imports = [...this.#keys].map(([chunk, keys]) => {
			const names = [...keys].map(([exported, key]) => `${exported} as ${key}`);
			return `import { ${names} } from './${chunk}';`;
		});
		const keys = [...this.#keys.values()].flatMap(keysOfChunk => [...keysOfChunk.values()]);
		return `${imports.join('\n')}
			let variables;
			export function ${SHARED_VARIABLES}() { return variables ??= { ${keys} }; }`;
	}
}

function chunkOf({ path: file, text }: Pick<OutputFile, 'path' | 'text'>): Chunk {
	const imports = [...text.matchAll(IMPORT_STATEMENT)].map(([, names, chunk]) => ({
		chunk: chunk!,
		names: names === undefined ? [] : importedNames(names),
	}));
	return { name: path.basename(file), code: text, imports };
}

/** Parses the names of an import, such as `a, b as c`. */
function importedNames(names: string): (readonly [exported: string, local: string])[] {
	return names
		.split(',')
		.map(name => name.trim())
		.filter(name => name !== '')
		.map(name => {
			const [exported, local] = name.split(' as ') as [string, string?];
			return [exported, local ?? exported];
		});
}

/** Returns the names of the chunks that are evaluated when those in `entries` are. */
function reachableChunks(chunks: ReadonlyMap<string, Chunk>, entries: readonly string[]): Set<string> {
	const reached = new Set<string>();
	const add = (name: string): void => {
		if (reached.has(name)) return;
		reached.add(name);
		for (const { chunk } of chunks.get(name)!.imports) if (chunks.has(chunk)) add(chunk);
	};
	for (const entry of entries) add(entry);
	return reached;
}

/** Throws if parts import each other in a cycle: one of them would copy variables that are not initialized yet. */
function refuseCycles(chunks: ReadonlyMap<string, Chunk>, parts: readonly Chunk[]): void {
	for (const { name, imports } of parts) {
		const reached = reachableChunks(
			chunks,
			imports.map(({ chunk }) => chunk).filter(chunk => chunks.has(chunk)),
		);
		if (reached.has(name)) throw new Error(`The chunk ${name} imports itself through ${[...reached].join(', ')}.`);
	}
}
