/**
 * Simplifies what esbuild writes around the exports of a chunk. When esbuild converts an ECMAScript module to CommonJS, it defines
 * each export as a property with a getter, copies all of them to another object, and does so again for each `import()`. Defining
 * the thousand exports of the program in this way takes milliseconds of each start.
 */

/** How esbuild exports the names of a module. */
const EXPORTS = /__export\(stdin_exports,\{([^{}]*)\}\);module\.exports=__toCommonJS\(stdin_exports\);/;

/** How esbuild lists the names for Node's `import()`, in code that never runs. */
const NAMES_FOR_NODE = /0&&\(module\.exports=\{[^{}]*\}\);/;

/** How esbuild imports a chunk by `import()`. */
const CHUNK_IMPORT = /__toESM\(require\("\.\/([^"]+)"\)\)/g;

/** How esbuild imports a module of Node. */
const NODE_IMPORT = /\b(import_\w+)=__toESM\((require\("[^"./][^"]*"\))(?:,1)?\)/g;

/**
 * Returns a chunk that exports its values as ordinary properties, once it has run. The chunk must not be part of an import cycle.
 *
 * @param code A chunk as esbuild converts it to CommonJS.
 * @param isCommonJs Reports whether a chunk, given by its name, is a CommonJS package. Such a package gets its default export when
 * it is imported.
 * @throws {Error} If an export changes after the chunk has run.
 */
export function plainExports(code: string, isCommonJs: (chunk: string) => boolean): string {
	const exported = EXPORTS.exec(code)?.[1];
	if (exported === undefined) return code;
	const properties = exported.split(',').map(entry => entry.split(':()=>') as [name: string, value: string]);
	for (const [, value] of properties) {
		if (value !== undefined && countAssignments(code, value) > 1) throw new Error(`The export ${value} changes.`);
	}
	const simplified = code
		.replace(EXPORTS, '')
		.replace(NAMES_FOR_NODE, '')
		.replace(CHUNK_IMPORT, (whole, chunk: string) => (isCommonJs(chunk) ? whole : `require("./${chunk}")`))
		.replace(NODE_IMPORT, (whole, name: string, required: string) =>
			usesOnlyDefault(code, name) ? `${name}={default:${required}}` : whole,
		);
	const members = properties.filter(([, value]) => value !== undefined).map(([name, value]) => `${name}:${value}`);
	return `${simplified}\nmodule.exports={${['__esModule:!0', ...members].join(',')}};`;
}

/** Counts the assignments to a variable, including the one that defines it. */
function countAssignments(code: string, variable: string): number {
	const name = `(?<![.\\w$#])${variable.replaceAll('$', '\\$')}`;
	return code.match(new RegExp(`${name}(?:=(?![=>])|\\+\\+|--|[-+*/%&|^?]+=)`, 'g'))?.length ?? 0;
}

/** Reports whether a chunk uses only the default export of a module. */
function usesOnlyDefault(code: string, name: string): boolean {
	const uses = code.match(new RegExp(`\\b${name}\\b(?!=)(?:\\.\\w+)?`, 'g')) ?? [];
	return uses.every(use => use === `${name}.default`);
}
